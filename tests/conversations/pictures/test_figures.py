"""Charts and pictures from tools: from a real MCP server into an answer, its shares and its files, and behind the walls."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import docx
import pypdfium2
import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.test import Client, override_settings
from django.urls import reverse
from mcp.server.mcpserver import MCPServer
from mcp.types import ImageContent, TextContent, ToolAnnotations
from PIL import Image

from apps.conversations.chat.frames import answer_frames
from apps.conversations.display.figures import turn_figures
from apps.conversations.display.presentation import turn_view_new
from apps.conversations.models import Conversation, Picture, Turn
from apps.conversations.sharing.services import share_create
from apps.conversations.transcript.selectors import turn_list
from apps.conversations.turns.conversations import conversation_delete
from apps.tools.models import ToolGrant, ToolSource
from basics.pictures import picture_clean
from exports.files import workspace_export
from runs.approvals.services import call_decide
from runs.models import ChunkRead, PendingDecision, Run
from runs.retention import runs_empty
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.conversations.chat.test_stream import messages, page_of, parts, reload, target
from tests.conversations.dom import apply, shape
from tests.conversations.memory.test_walls import Model, browser, model  # noqa: F401
from tests.conversations.support import answer, ask, fresh
from tests.runs.support import events_of
from tests.tools.connectors.mcp_support import served
from tests.tools.sources.support import granted, source_made
from toolloop.deferred import Decision
from toolloop.messages import ToolResult
from toolloop.providers.scripted import ScriptedProvider, call, calls, says
from toolloop.tools.charting import chart_made

pytestmark = pytest.mark.django_db(transaction=True)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
SALES = {
    "kind": "bar",
    "title": "Sales <b>by</b> month",
    "labels": ["Jan", "Feb", "=cmd|' /C calc'!A0"],
    "y_label": "EUR",
    "series": [{"name": "2025", "values": [10, -4.5, None]}, {"name": "2026", "values": [12, 9, 30000]}],
}


def png(width: int = 40, height: int = 20, colour: str = "teal") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "PNG")
    return out.getvalue() + b"<script>trailing()</script>"


def bomb(side: int = 30_000) -> bytes:
    """A PNG of a few hundred bytes that claims 900 million pixels."""
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = zlib.compress(b"\0" * 100_000)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", pixels) + part(b"IEND", b"")


def image(content: bytes, said: str = "image/png") -> ImageContent:
    return ImageContent(type="image", data=base64.b64encode(content).decode(), mime_type=said)


@pytest.fixture
def studio(cast: Cast) -> Iterator[ToolSource]:
    """A source whose server returns pictures, good ones and hostile ones."""
    server = MCPServer("studio")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
    def render(what: str) -> list[Any]:
        """Draw."""
        many = [image(bomb(side=6_300))] * 3  # as large as one may be, two as large as all may be
        hostile = [image(SVG, "image/svg+xml"), image(bomb()), image(png()[:60]), *many]
        return [
            TextContent(type="text", text="Drawn."),
            *[image(png())] * (2 if what == "twice" else 1),
            *(hostile if what == "hostile" else []),
        ]

    @server.tool(annotations=ToolAnnotations(read_only_hint=False))
    def hang(where: str) -> str:
        """Hang it."""
        return f"Hung in the {where}."

    with override_settings(FETCH_NETWORKS=["127.0.0.0/8"]), served(server) as url:
        source = source_made(cast.tenant, "mcp", url=url, settings={"trust_hints": True})
        granted(cast.tenant, source.name)
        yield source


KEY = chart_made(**dict(SALES.items())).key  # type: ignore[arg-type]


def picture_key() -> str:
    return hashlib.sha256(picture_clean(png()).content).hexdigest()[:8]


@pytest.fixture
async def drawn(
    cast: Cast,
    lane_threads: Executor,
    model: Model,  # noqa: F811
    studio: ToolSource,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Turn, ScriptedProvider]:
    """An answer with a chart that it names and a picture that it doesn't, by a model that takes images."""
    provider = model(
        calls(call("shop_render", what="hostile")),
        calls(call("draw_chart", **SALES)),
        says(
            f"Here it is.\n\n![By month](figure:{KEY})\n\nAnd ![no](figure:00000000) ![x](https://evil.example/x.png) end."
        ),
    )
    monkeypatch.setattr("runs.result_files.takes_media", lambda name, kind, profile: True)
    turn: Turn = await sync_to_async(ask)(cast, "Draw the sales.", role="admin")
    await answer(turn, lane_threads)
    return await sync_to_async(fresh)(turn), provider


async def test_a_chart_and_a_picture_are_shown_handed_on_and_gone_with_their_conversation(
    cast: Cast, drawn: tuple[Turn, ScriptedProvider], tmp_path: Path
) -> None:
    turn, provider = drawn
    result = provider.requests[-1].messages[2]
    assert isinstance(result, ToolResult)
    assert [part.media_type for part in result.parts] == ["image/png"]
    assert b"trailing" not in base64.b64decode(result.parts[0].data), "not the file that came"
    for said in (
        "Drawn.",
        "image/svg+xml",
        "million pixels",
        "damaged",
        "pixels together",
        f"figure:{picture_key()}",
    ):
        assert said in result.content
    await sync_to_async(seen)(cast, turn)
    await sync_to_async(handed_on)(cast, turn)
    await sync_to_async(walled)(cast, turn)
    await sync_to_async(moved_and_erased)(cast, turn, tmp_path)


def seen(cast: Cast, turn: Turn) -> None:
    client, slug, talk = browser(cast.admin), cast.tenant.slug, turn.conversation_id
    page = client.get(reverse("conversations:detail", args=[slug, talk])).content.decode()
    work, blocks = page.split('class="md blocks"')
    row = picture_row(cast)
    assert f'src="pictures/{row.pk}/"' in work
    assert 'class="graph"' not in work
    assert 'class="graph"' in blocks
    assert "By month</figcaption>" in blocks
    assert "evil.example" not in page
    assert "Sales &lt;b&gt;by&lt;/b&gt; month" in blocks
    assert "<b>by" not in page
    assert "&#x27;=cmd|" in blocks.split("<pre hidden")[1], "no formula in what a spreadsheet reads"
    response = client.get(reverse("conversations:picture", args=[slug, talk, row.pk]))
    assert (response["Content-Type"], response["X-Content-Type-Options"]) == ("image/png", "nosniff")
    assert response["Content-Disposition"] == "inline"
    assert Image.open(io.BytesIO(response.content)).size == (
        40,
        20,
    )
    again = client.get(response.wsgi_request.path, HTTP_IF_NONE_MATCH=response["ETag"])
    assert again.status_code == 304
    assert again["Cache-Control"] == "private, no-cache"
    assert client.get(response.wsgi_request.path + "?download=1")["Content-Disposition"].startswith(
        "attachment"
    )


def handed_on(cast: Cast, turn: Turn) -> None:
    talk, pk = turn.conversation_id, picture_row(cast).pk
    with tenant_scope(cast.tenant.pk):
        key = api_key_create(
            tenant=cast.tenant, actor=cast.actor("admin"), name="k", scopes=["conversation.read"]
        )[1]
    rest: dict[str, Any] = {"HTTP_AUTHORIZATION": f"Bearer {key}"}
    client = Client()
    told = client.get(reverse("api:turns-detail", args=[talk, turn.pk]), **rest).json()["figures"]
    assert [(f["key"], f["picture_id"], f["chart"] is None) for f in told] == [
        (picture_key(), pk, True),
        (KEY, 0, False),
    ]
    assert told[1]["chart"]["series"][0]["y"] == [10, -4.5, None]
    assert client.get(reverse("api:pictures-detail", args=[talk, pk]), **rest)["Content-Type"] == "image/png"
    export = reverse("conversations:export", args=[cast.tenant.slug, talk])
    reader = browser(cast.admin)
    text = reader.get(export + "?form=markdown").content.decode()
    assert "data:image/png;base64," in text
    assert "| Jan | 10 | 12 |" in text
    assert f"figure:{KEY}" not in text
    copied = reader.get(reverse("conversations:turn-answer", args=[cast.tenant.slug, talk, turn.pk]))
    assert "| Jan | 10 | 12 |" in copied.content.decode()
    assert "base64" not in copied.content.decode()
    with zipfile.ZipFile(io.BytesIO(reader.get(export + "?form=docx").content)) as word:
        sizes = [Image.open(io.BytesIO(word.read(f"word/media/picture{n}.png"))).size for n in (1, 2)]
        assert sizes == [(40, 20), (1920, 1020)]
        assert 'descr="shop_render"' in word.read("word/document.xml").decode()
    docx.Document(io.BytesIO(reader.get(export + "?form=docx").content))
    with pypdfium2.PdfDocument(reader.get(export + "?form=pdf").content) as pages:
        kinds = [thing.type for page in pages for thing in page.get_objects()]
        assert kinds.count(pypdfium2.raw.FPDF_PAGEOBJ_IMAGE) == 2
    assert json.loads(reader.get(export + "?form=json").content)["turns"][0]["figures"][0]["content"]


def walled(cast: Cast, turn: Turn) -> None:
    """A colleague sees it through a link alone, another workspace never, and nobody what rests on a document they lost."""
    slug, pk = cast.tenant.slug, picture_row(cast).pk
    url = reverse("conversations:picture", args=[slug, turn.conversation_id, pk])
    for member in (cast.owner, cast.member, cast.viewer, cast.outsider):
        assert browser(member).get(url).status_code == 404
    with tenant_scope(cast.other_tenant.pk):
        assert Picture.objects.count() == 0
    with tenant_scope(cast.tenant.pk):
        row = Conversation.objects.get(pk=turn.conversation_id)
        share = share_create(tenant=cast.tenant, actor=cast.actor("admin"), conversation=row)
    page = reverse("conversations:shared", args=[slug, share.key])
    shown = browser(cast.member).get(page).content.decode()
    assert f'src="pictures/{pk}/"' in shown
    assert 'class="graph"' in shown
    assert browser(cast.member).get(f"{page}pictures/{pk}/").status_code == 200
    assert browser(cast.member).get(f"{page}pictures/{pk + 1}/").status_code == 404
    assert browser(cast.outsider).get(f"{page}pictures/{pk}/").status_code == 404
    with tenant_scope(cast.tenant.pk):
        ChunkRead.objects.create(
            tenant=cast.tenant,
            run_id=turn.run_id,
            chunk_id=1,
            document_id=2**40,
            document_name="Gone.pdf",
            tool="x",
        )
    detail = reverse("conversations:detail", args=[slug, turn.conversation_id])
    for who, address in ((cast.member, page), (cast.admin, detail)):
        shown = browser(who).get(address).content.decode()
        assert 'src="pictures/' not in shown
        assert 'class="graph"' not in shown
    assert browser(cast.admin).get(url).status_code == 404
    assert browser(cast.member).get(f"{page}pictures/{pk}/").status_code == 404


def moved_and_erased(cast: Cast, turn: Turn, folder: Path) -> None:
    workspace_export(cast.tenant, folder / "all.zip")
    with zipfile.ZipFile(folder / "all.zip") as archive:
        rows = [json.loads(line) for line in archive.read("rows/conversations.Picture.jsonl").splitlines()]
    assert base64.b64decode(rows[0]["content"]) == picture_clean(png()).content
    with tenant_scope(cast.tenant.pk):
        row = Conversation.objects.get(pk=turn.conversation_id)
        with transaction.atomic():
            runs_empty([Run.objects.get(pk=turn.run_id)], "Removed.")
            assert not Picture.objects.exists()
            assert not any(turn_figures(t) for t in turn_list(actor=cast.actor("admin"), conversation=row))
            transaction.set_rollback(True)
        conversation_delete(tenant=cast.tenant, actor=cast.actor("admin"), conversation=row)
        assert not Picture.objects.exists()


def picture_row(cast: Cast) -> Picture:
    with tenant_scope(cast.tenant.pk):
        return Picture.objects.get()


async def test_the_same_figures_in_two_cards_have_ids_of_their_own(
    cast: Cast,
    lane_threads: Executor,
    model: Model,  # noqa: F811
    studio: ToolSource,
) -> None:
    again = SALES | {"title": "Sales again"}
    key = chart_made(**dict(again.items())).key  # type: ignore[arg-type]
    model(
        calls(call("shop_render", what="twice"), call("draw_chart", **SALES), call("draw_chart", **again)),
        calls(call("shop_render", what="plain"), call("draw_chart", **SALES), call("draw_chart", **again)),
        says(f"![Once](figure:{key})"),
    )
    turn: Turn = await sync_to_async(ask)(cast, "Draw it twice.", role="admin")
    await answer(turn, lane_threads)

    def read() -> tuple[str, int]:
        address = reverse("conversations:detail", args=[cast.tenant.slug, turn.conversation_id])
        with tenant_scope(cast.tenant.pk):
            pictures = Picture.objects.count()
        return browser(cast.admin).get(address).content.decode(), pictures

    page, pictures = await sync_to_async(read)()
    ids = re.findall(r' id="([^"]+)"', page)
    assert (pictures, page.count('class="graph"'), page.count('class="see"')) == (1, 3, 1), (
        "the server's picture is kept and shown once"
    )
    assert [one for one, times in Counter(ids).items() if times > 1] == []
    named = re.findall(r'(?:data-copy|popovertarget)="(r\d[^"]+)"', page)
    assert len(set(named)) == 4
    assert set(named) <= set(ids), "each button works on a figure of its own card"


async def test_a_run_that_waited_for_an_approval_goes_on_with_the_pictures_it_had_seen(
    cast: Cast,
    lane_threads: Executor,
    model: Model,  # noqa: F811
    studio: ToolSource,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tenant_scope(cast.tenant.pk):
        await sync_to_async(ToolGrant.objects.create)(
            tenant=cast.tenant, effect="ask", target_kind="tool", target="shop_hang"
        )
    script = [
        calls(call("shop_render", what="plain")),
        calls(call("shop_hang", where="hall")),
        says("It hangs."),
    ]
    monkeypatch.setattr(
        "runs.result_files.takes_media", lambda name, kind, profile: kind.startswith("image/")
    )
    turn: Turn = await sync_to_async(ask)(cast, "Draw it and hang it.", role="admin")
    await answer(turn, lane_threads, monkeypatch, script)

    def approve() -> None:
        with tenant_scope(cast.tenant.pk):
            row = PendingDecision.objects.get()
            who: Any = {"tenant": cast.tenant, "actor": cast.actor("admin")}
            call_decide(**who, run=row.run, decision_id=row.pk, decision=Decision("approve"))

    await sync_to_async(approve)()
    provider = ScriptedProvider(script, by_history=True)
    monkeypatch.setattr("apps.conversations.answering.tasks.provider_for", lambda tenant, name: provider)
    await answer(turn, lane_threads)
    asked = [message for message in provider.requests[-1].messages if isinstance(message, ToolResult)]
    assert [len(result.parts) for result in asked] == [1, 0]
    kept = await sync_to_async(picture_row)(cast)
    assert base64.b64decode(asked[0].parts[0].data) == bytes(kept.content)
    assert (await sync_to_async(fresh)(turn)).said["assistant"] == "It hangs."


async def test_a_live_page_ends_as_a_reload_shows_it_and_a_model_without_eyes_is_told_so(
    cast: Cast,
    lane_threads: Executor,
    model: Model,  # noqa: F811
    studio: ToolSource,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = model(
        calls(call("shop_render", what="plain")),
        calls(call("draw_chart", **SALES)),
        says(["Look:\n\n", f"![By month](figure:{KEY})\n\n", "Done."]),
    )
    turn: Turn = await sync_to_async(ask)(cast, "Draw.")
    await answer(turn, lane_threads)
    result = provider.requests[-1].messages[2]
    assert isinstance(result, ToolResult)
    assert result.parts == ()
    assert "can't be shown to you" in result.content
    assert await sync_to_async(picture_row)(cast)
    turn = await sync_to_async(fresh)(turn)
    events = await sync_to_async(events_of)(turn.run)

    async def one_by_one(tenant_id: int, run: int, seq: int) -> AsyncGenerator[Any, None]:
        for event in events:
            yield [event]

    monkeypatch.setattr("apps.conversations.chat.frames.events_follow", one_by_one)
    page = page_of(cast, turn, turn_view_new(turn, turn.run, ""))
    places = []
    async for piece in answer_frames(target(cast, turn), 0):
        for ident, event, data in messages(piece):
            if ident is not None and not event:
                apply(page, data)
                drawn = [
                    json.dumps(shape(page.find(f"r{turn.run_id}-{name}"))) for name in ("work", "blocks")
                ]
                places.append(tuple("graph" in html for html in drawn))
    assert (True, False) in places
    assert places[-1] == (False, True)
    assert (True, True) not in places
    final = await sync_to_async(reload)(cast, turn)
    assert parts(page, turn.run_id) == parts(final, turn.run_id)
