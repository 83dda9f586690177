"""Who loses access loses it now: whatever was lost, on whatever face, the loser reads and calls nothing of it any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client

from apps.collections.documents.access import document_access_set
from apps.collections.models import Document
from apps.conversations.answering import tasks
from apps.conversations.models import Conversation, Turn
from apps.conversations.sharing.services import share_create
from apps.conversations.toolset import bundle as conversation_tools
from apps.conversations.turns.lost_titles import titles_withhold
from apps.datasets.models import Dataset, DatasetRow
from apps.datasets.rows.selectors import row_list
from runs.models import ChunkRead, PendingDecision, Run, RunStatus, ToolCall
from runs.stream import aclose
from runs.withheld import HIDDEN
from tenancy.actors import Actor
from tenancy.permissions import KEY_SCOPES, ROLE_ACTIONS
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create, member_role_change
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask, fresh, make_library, title_made
from tests.losses import LOSSES, close_workspace, deactivate, narrow, remove, revoke
from toolloop.providers.scripted import ScriptedProvider, call, calls, says
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "zebrafalcon"
SECRET = f"The reserve price of the {CANARY} is 77341 crowns."
OPEN = "The notice period is 30 days."
BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture
def libraries(cast: Cast) -> tuple[Library, Library]:
    """The document that will be lost, and one that everybody keeps."""
    return (
        make_library(cast, "Secrets", "Reserve.pdf", [SECRET]),
        make_library(cast, "Rules", "Notice.pdf", [OPEN]),
    )


@pytest.fixture
async def told(cast: Cast, libraries: Any, found: Any, lane_threads: Executor, monkeypatch: Any) -> Turn:
    """A finished answer that says the canary in every way an answer can."""
    secret, kept = (library.chunks[0].pk for library in libraries)
    turn: Turn = await sync_to_async(ask)(cast, "What do we know?")
    await answer(
        turn,
        lane_threads,
        monkeypatch,
        [
            calls(call("search_documents", query="what do we know")),
            says(f"I look for {CANARY}. ", call("search_documents", query=f"price of {CANARY}")),
            says(f"{SECRET[:-1]} [c{secret}]. {OPEN[:-1]} [c{kept}]. So {CANARY} it is."),
        ],
    )
    return turn


def key_of(cast: Cast, role: str = "member") -> str:
    with tenant_scope(cast.tenant.pk):
        actor = cast.actor("owner" if role == "owner" else role)
        scopes = sorted(KEY_SCOPES & ROLE_ACTIONS[role])
        maker = Actor(actor.kind, actor.tenant_id, actor.actions | {"key.manage"}, actor.user_id, role=role)
        return api_key_create(tenant=cast.tenant, actor=maker, name="tests", scopes=scopes)[1]


def signed_in(cast: Cast, role: str) -> Client:
    client = Client()
    client.force_login(cast.user(role), backend=BACKEND)
    return client


def body(response: Any) -> str:
    if not response.streaming:
        return str(response.content.decode())

    async def read() -> bytes:
        try:
            return b"".join([part async for part in response.streaming_content])
        finally:
            await aclose()  # a pool that is opening when its loop ends can hold the end up for ever

    return asyncio.run(read()).decode()


def faces(cast: Cast, turn: Turn, role: str = "member") -> dict[str, str]:
    """Return what every place says of an answer to its person, on pages and in REST."""
    page = f"/t/{cast.tenant.slug}"
    chat = f"{page}/chat/{turn.conversation_id}"
    with tenant_scope(cast.tenant.pk):
        pks = list(ToolCall.objects.filter(run_id=turn.run_id).values_list("pk", flat=True))
    client, key = signed_in(cast, role), {"HTTP_AUTHORIZATION": f"Bearer {key_of(cast, role)}"}
    pages = [
        f"{chat}/",
        f"{chat}/runs/{turn.run_id}/stream/",
        f"{chat}/runs/{turn.run_id}/trace/",
        *(f"{chat}/runs/{turn.run_id}/calls/{pk}/output/" for pk in pks),
        f"{chat}/export/?form=json",
        f"{chat}/export/?form=markdown",
        f"{chat}/turns/{turn.pk}/answer.md",
        f"{page}/tools/calls/",
        *(f"{page}/tools/calls/{pk}/" for pk in pks),
        f"{page}/tools/calls/file/?form=csv",
        f"{page}/tools/calls/file/?form=jsonl",
        f"{page}/tools/reads/",
        f"{page}/chat/?q=x",
    ]
    rest = [
        f"conversations/{turn.conversation_id}/turns",
        f"conversations/{turn.conversation_id}/turns/{turn.pk}",
        f"conversations/{turn.conversation_id}/export",
        f"runs/{turn.run_id}",
        f"runs/{turn.run_id}/events",
        f"runs/{turn.run_id}/trace",
        f"conversations/search?q={CANARY}",
        "conversations/search?q=notice",
        "tool-calls",
        *(f"tool-calls/{pk}" for pk in pks),
        "tool-calls/file?form=csv",
    ]
    said = {path: client.get(path) for path in pages}
    said |= {f"/api/v1/{path}": client.get(f"/api/v1/{path}", **dict[str, Any](key)) for path in rest}
    return {path: f"{r.status_code} {body(r)}" for path, r in said.items()}


def restrict(cast: Cast, library: Library) -> None:
    with tenant_scope(cast.tenant.pk):
        document_access_set(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            document=library.document,
            is_restricted=True,
            roles=["owner"],
        )


def delete(cast: Cast, library: Library) -> None:
    with tenant_scope(cast.tenant.pk):
        Document.objects.filter(pk=library.document.pk).delete()


@pytest.mark.parametrize("lose", [restrict, delete])
async def test_words_of_a_lost_document_are_on_no_face(
    cast: Cast, libraries: Any, told: Turn, lose: Callable[[Cast, Library], None]
) -> None:
    def look() -> None:
        with tenant_scope(cast.tenant.pk):
            Conversation.objects.filter(pk=told.conversation_id).update(title=f"On the {CANARY}")
            shared = share_create(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                conversation=Conversation.objects.get(pk=told.conversation_id),
            )
        link = f"/t/{cast.tenant.slug}/chat/shared/{shared.key}/"
        before = faces(cast, told)
        saying = {path for path, text in before.items() if CANARY in text}
        missing = {path: text[:200] for path, text in before.items() if not text.startswith("200")}
        assert not missing
        assert len(saying) > 12, sorted(before.keys() - saying)
        assert CANARY in signed_in(cast, "viewer").get(link).content.decode()
        lose(cast, libraries[0])
        with tenant_scope(cast.tenant.pk):
            lost = libraries[0].document.pk
            titles_withhold(tenant=cast.tenant, actor=cast.actor("owner"), document=lost)
        after = faces(cast, told)
        assert not {path for path, text in after.items() if CANARY in text.lower()}
        assert not {path for path, text in after.items() if "77341" in text}
        # What rests on the other document is still there.
        chat = f"/t/{cast.tenant.slug}/chat/{told.conversation_id}/"
        assert "notice period is 30 days" in after[chat]
        assert HIDDEN[1:] in after[chat]
        assert "notice period is 30 days" in after[f"/api/v1/runs/{told.run_id}/events"]
        reader = signed_in(cast, "viewer").get(link).content.decode()
        assert CANARY not in reader
        assert HIDDEN[1:] in reader
        if lose is restrict:
            assert CANARY in signed_in(cast, "owner").get(link).content.decode()

    await sync_to_async(look, thread_sensitive=False)()


async def test_model_of_the_next_question_is_not_told_what_was_lost(
    cast: Cast, libraries: Any, told: Turn, lane_threads: Executor, monkeypatch: Any
) -> None:
    await sync_to_async(restrict)(cast, libraries[0])
    heard: list[Any] = []

    class Listening(ScriptedProvider):
        async def stream(self, request: Any) -> AsyncIterator[Any]:  # type: ignore[override]
            heard.append(request)
            async for event in super().stream(request):
                yield event

    row = (await sync_to_async(fresh)(told)).conversation
    turn = await sync_to_async(ask)(cast, "And now?", conversation=row)
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: Listening([says("Nothing.")]))
    await answer(turn, lane_threads)
    assert heard
    assert "notice period is 30 days" in str(heard[0].messages)
    assert CANARY not in str(heard)


@pytest.mark.parametrize("lose", LOSSES)
async def test_streams_end_when_their_reader_loses_access(
    cast: Cast, libraries: Any, lose: Callable[[Cast], None]
) -> None:
    turn = await sync_to_async(ask)(cast)  # nobody works on it, so nothing but the loss ends a stream
    key = await sync_to_async(key_of)(cast)
    client, rest = AsyncClient(), AsyncClient()
    await sync_to_async(client.force_login)(cast.user("member"), backend=BACKEND)
    asked = {"model": "extractive", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    with_key: Any = {"headers": {"Authorization": f"Bearer {key}"}}
    opened = [
        await rest.get(f"/api/v1/runs/{turn.run_id}/events", **with_key),
        await rest.post("/api/v1/chat/completions", asked, content_type="application/json", **with_key),
        await rest.post(
            "/api/v1/responses",
            {"model": "extractive", "stream": True, "input": "Hi"},
            content_type="application/json",
            **with_key,
        ),
    ]
    if lose not in (revoke, narrow):
        page = f"/t/{cast.tenant.slug}"
        opened += [
            await client.get(f"{page}/chat/{turn.conversation_id}/runs/{turn.run_id}/stream/"),
            await client.get(f"{page}/tools/approvals/stream/"),
            await client.get(f"{page}/collections/{libraries[0].collection.pk}/stream/"),
        ]
    assert [r.status_code for r in opened] == [200] * len(opened)

    async def read(response: Any) -> bytes:
        return b"".join([part async for part in response.streaming_content])

    reading = [asyncio.create_task(read(response)) for response in opened]
    await asyncio.sleep(0)
    await sync_to_async(lose)(cast)
    async with asyncio.timeout(30):  # two looks at most; the rest is for a busy machine
        bodies = await asyncio.gather(*reading)
    assert all(b"signed out" in said or b"error" in said for said in bodies), bodies


@pytest.mark.parametrize("lose", [remove, deactivate, close_workspace])
async def test_run_of_who_has_left_makes_no_further_call(
    cast: Cast, libraries: Any, found: Any, lane_threads: Executor, monkeypatch: Any, lose: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    asked = []

    class Leaving(ScriptedProvider):
        async def stream(self, request: Any) -> AsyncIterator[Any]:  # type: ignore[override]
            asked.append(request)
            await sync_to_async(lose)(cast)
            async for event in super().stream(request):
                yield event

    script = [calls(call("search_documents", query="a")), says("Never.")]
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: Leaving(script))
    await answer(turn, lane_threads)
    row = await sync_to_async(fresh)(turn)
    assert (len(asked), len(found)) == (1, 0)
    assert (row.run.status, row.run.error_code) == (RunStatus.FAILED, "actor_gone")


@pytest.mark.parametrize("lose", [remove, deactivate])
async def test_conversation_of_who_has_left_is_named_by_no_model(
    cast: Cast, libraries: Any, found: Any, lane_threads: Executor, monkeypatch: Any, lose: Any
) -> None:
    turn = await sync_to_async(ask)(cast)
    await answer(turn, lane_threads, monkeypatch, [says(OPEN)])

    def title() -> str:
        with tenant_scope(cast.tenant.pk):
            Run.objects.filter(turns__pk=turn.pk).update(model="compatible/default/llama")
            return title_made(cast, turn)

    def asks(**_: Any) -> None:
        raise LookupError("a model is asked")

    monkeypatch.setattr("apps.conversations.turns.titles.completion_prepare", asks)
    with pytest.raises(LookupError, match="a model is asked"):
        await sync_to_async(title)()
    await sync_to_async(lose)(cast)
    assert await sync_to_async(title)() == ""


async def test_lower_role_counts_for_the_next_call(
    cast: Cast, libraries: Any, found: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    """The rule allows members; its person is a viewer by the time the tool is called."""
    from apps.tools.permissions.services import grant_create

    def rules() -> None:
        with tenant_scope(cast.tenant.pk):
            grant_create(
                tenant=cast.tenant,
                actor=cast.actor("owner"),
                effect="deny",
                target_kind="tool",
                target="search_documents",
                subject_kind="role",
                subject="viewer",
            )

    def lower() -> None:
        with tenant_scope(cast.tenant.pk):
            member_role_change(
                tenant=cast.tenant, actor=cast.actor("owner"), member_id=cast.member.pk, role="viewer"
            )

    await sync_to_async(rules)()
    turn = await sync_to_async(ask)(cast)

    class Lowering(ScriptedProvider):
        async def stream(self, request: Any) -> AsyncIterator[Any]:  # type: ignore[override]
            await sync_to_async(lower)()
            async for event in super().stream(request):
                yield event

    script = [calls(call("search_documents", query="a")), says("So be it.")]
    monkeypatch.setattr(tasks, "provider_for", lambda tenant, model: Lowering(script))
    await answer(turn, lane_threads)
    row = await sync_to_async(fresh)(turn)
    assert row.run.status == RunStatus.COMPLETED
    assert not found

    def denied() -> list[str]:
        with tenant_scope(cast.tenant.pk):
            return list(ToolCall.objects.filter(run=turn.run_id).values_list("error_code", flat=True))

    assert await sync_to_async(denied)() == ["denied"]


@pytest.mark.parametrize("lose", [remove, deactivate])
def test_what_waits_for_who_has_left_ends_and_says_why(cast: Cast, lose: Any) -> None:
    from runs.services import orphans_end
    from tests.runs.support import make_run

    run, _ = make_run(cast)
    with tenant_scope(cast.tenant.pk):
        Run.objects.filter(pk=run.pk).update(status=RunStatus.PARKED)
        PendingDecision.objects.create(
            tenant=cast.tenant,
            run=run,
            step=0,
            call_id="a",
            name="pay",
            kind="approval",
            expires_at="2999-01-01T00:00:00Z",
            approver_kind="role",
            approver="admin",
        )
    lose(cast)
    if lose is deactivate:
        assert orphans_end() == 1
    with tenant_scope(cast.tenant.pk):
        row, waiting = Run.objects.get(pk=run.pk), PendingDecision.objects.get(run=run)
    assert (row.status, row.error_code) == (RunStatus.FAILED, "actor_gone")
    assert waiting.status == "cancelled"
    assert "no longer a member" in waiting.decision_reason
    page = signed_in(cast, "admin").get(f"/t/{cast.tenant.slug}/tools/approvals/{waiting.pk}/")
    assert "no longer a member" in page.content.decode()


def test_who_shares_is_told_what_readers_will_not_see(cast: Cast, libraries: Any) -> None:
    turn = ask(cast, role="owner")
    with tenant_scope(cast.tenant.pk):
        ChunkRead.objects.create(
            tenant=cast.tenant,
            run_id=turn.run_id,
            user_id=cast.owner.user_id,
            chunk_id=libraries[0].chunks[0].pk,
            document_id=libraries[0].document.pk,
            document_name="Reserve.pdf",
            tool="search_documents",
        )
        Run.objects.filter(pk=turn.run_id).update(status=RunStatus.COMPLETED, answer="Yes.")
        Turn.objects.filter(pk=turn.pk).update(is_active=False)
    page = f"/t/{cast.tenant.slug}/chat/{turn.conversation_id}/shares/"
    owner = signed_in(cast, "owner")
    assert "data-limited" not in owner.get(page, headers={"HX-Request": "true"}).content.decode()
    with tenant_scope(cast.tenant.pk):
        document_access_set(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            document=libraries[0].document,
            is_restricted=True,
            users=[cast.owner.user_id],
        )
    said = owner.get(page, headers={"HX-Request": "true"}).content.decode()
    assert "data-limited" in said
    assert "Reserve.pdf" in said
    made = Client().post(
        f"/api/v1/conversations/{turn.conversation_id}/shares",
        headers={"Authorization": f"Bearer {key_of(cast, 'owner')}"},
    )
    assert made.status_code == 201
    assert made.json()["limited_sources"] == ["Reserve.pdf"]


def test_rows_of_a_dataset_go_with_the_right_to_their_documents(cast: Cast, libraries: Any) -> None:
    with tenant_scope(cast.tenant.pk):
        dataset = Dataset.objects.create(tenant=cast.tenant, slug="d", name="D")
        for library in libraries:
            name, document = library.document.name, library.document.pk
            DatasetRow.objects.create(
                tenant=cast.tenant,
                dataset=dataset,
                content_hash=name,
                question="Q",
                answer=library.chunks[0].text,
                sources=[{"document": name, "document_id": document, "quote": "q"}],
            )
    restrict(cast, libraries[0])
    with tenant_scope(cast.tenant.pk):
        seen = {
            role: [row.answer for row in row_list(actor=cast.actor(role), dataset=dataset)]
            for role in ("owner", "member")
        }
    assert seen == {"owner": [SECRET, OPEN], "member": [OPEN]}


async def test_call_that_the_loss_has_cut_says_so_and_not_that_somebody_stopped_it(
    cast: Cast, libraries: Any, lane_threads: Executor, monkeypatch: Any
) -> None:
    """Whether a tool learns of the loss by itself or is cut by it, its call is stored the same way."""

    @tool
    async def wait() -> str:
        """Wait for ever."""
        await sync_to_async(remove)(cast)
        await asyncio.Event().wait()
        return "Never."

    monkeypatch.setattr(conversation_tools, "TOOLSET", Toolset([*conversation_tools.TOOLSET, wait]))
    turn = await sync_to_async(ask)(cast)
    await answer(turn, lane_threads, monkeypatch, [calls(call("wait")), says("Never.")])

    def stored() -> ToolCall:
        with tenant_scope(cast.tenant.pk):
            return ToolCall.objects.get(run=turn.run_id)

    row = await sync_to_async(stored)()
    assert (row.status, row.error_code) == ("failed", "actor_gone")
    assert "no longer a member" in row.content
    assert (await sync_to_async(fresh)(turn)).run.error_code == "actor_gone"
