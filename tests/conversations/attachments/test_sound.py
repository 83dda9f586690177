"""Sound with a question: who is given it, who may hear it, and what is refused at each door."""

from __future__ import annotations

import base64
import io
import json
import re
from concurrent.futures import Executor
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from apps.conversations.answering import tasks
from apps.conversations.models import Attachment
from apps.conversations.openai.services import CompletionRequest, completion_start
from apps.conversations.openai.wire import messages_read
from basics.errors import Invalid
from jobs.models import Job
from runs.models import Run
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.collections.conftest import embedder, storage  # noqa: F401 - fixtures
from tests.conversations.attachments.desk import NOTE, PNG, Desk, result_in, scripted
from tests.conversations.support import answer, fresh
from tests.markup import flat
from tests.toolloop.test_media import FLAC, M4A, MP3, OGG, WAV
from toolloop.messages import UserMessage
from toolloop.providers.profiles import Profile
from toolloop.providers.scripted import says

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("storage", "embedder")]
MODEL = "google/gemini-3.8-flash"
CLAUDE = "anthropic/claude-sonnet-5-5"
HEARD = {"inlineData": {"mimeType": "audio/wav", "data": base64.b64encode(WAV).decode()}}


class Gemini:
    """The Gemini API, as far as one answer needs it."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(json.loads(request.content))
        parts = [{"text": "A man says hello."}]
        chunk = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
        return httpx2.Response(
            200,
            headers={"content-type": "text/event-stream"},
            content=f"data: {json.dumps(chunk)}\n\n".encode(),
        )


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> Gemini:
    fake = Gemini()
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setattr(
        "runs.providers._http_client", lambda: httpx2.AsyncClient(transport=httpx2.MockTransport(fake))
    )
    return fake


def desk_of(cast: Cast, model: str) -> Desk:
    desk = Desk(cast)
    with tenant_scope(cast.tenant.pk):
        desk.conversation.model = model
        desk.conversation.save(update_fields=["model"])
    return desk


@pytest.mark.asyncio
async def test_sound_goes_to_a_model_that_hears_and_is_named_to_one_that_does_not(
    cast: Cast, gemini: Gemini, lane_threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await sync_to_async(desk_of)(cast, CLAUDE)
    file = await sync_to_async(desk.attach)("call.wav", WAV)
    with pytest.raises(Invalid) as refused:
        await sync_to_async(desk.ask)("What is said?", file)
    assert refused.value.code == "model_hears_no_audio"
    assert refused.value.message.startswith("“call.wav” is a sound recording, and ")
    assert re.search(r"Choose one that can \(.*[Gg]emini.*\), or remove the file\.", refused.value.message)

    def switch() -> None:
        with tenant_scope(cast.tenant.pk):
            desk.conversation.model = MODEL
            desk.conversation.save(update_fields=["model"])

    await sync_to_async(switch)()
    turn = await sync_to_async(desk.ask)("What is said?", file)
    await answer(turn, lane_threads)
    row = await sync_to_async(fresh)(turn)
    assert row.run.status == "completed", row.run.error_message
    assert row.run.answer == "A man says hello."
    (asked,) = [c for c in gemini.bodies[0]["contents"] if HEARD in c["parts"]]
    assert asked == {"role": "user", "parts": [HEARD, {"text": "What is said?"}]}
    assert "you hear it beside the question" in json.dumps(gemini.bodies[0])
    # A model that hears nothing goes on with the conversation, and is told that there is a recording, by its name.
    monkeypatch.setattr(tasks, "loop_model", lambda provider, model: (model, Profile()))
    after = await sync_to_async(desk.ask)("And now?")
    provider = scripted(monkeypatch, [says("I cannot hear it.")])
    await answer(after, lane_threads)
    assert not any(m.parts for m in provider.requests[0].messages if isinstance(m, UserMessage))
    assert "“call.wav”: a sound recording that you cannot hear" in result_in(provider).content


def test_no_model_that_hears_is_said_as_well(cast: Cast) -> None:
    desk = Desk(cast)
    file = desk.attach("call.wav", WAV)
    with pytest.raises(Invalid, match="No model in this workspace can"):
        desk.ask("What is said?", file)


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("a.wav", WAV, "audio/wav"),
        ("a.bin", MP3, "audio/mpeg"),
        ("a.txt", OGG, "audio/ogg"),
        ("a", FLAC, "audio/flac"),
    ],
)
def test_sound_is_known_by_its_bytes(cast: Cast, name: str, data: bytes, media_type: str) -> None:
    row = Desk(cast).attach(name, data)
    assert row.media_type == media_type
    assert row.document is not None
    assert not row.document.is_active  # nothing of it is read


def test_sound_that_nobody_takes_is_refused_and_a_disguise_is_none(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(cast)
    with pytest.raises(Invalid, match=r"is M4A audio, which no model takes\. Save it as MP3"):
        desk.attach("memo.m4a", M4A)
    monkeypatch.setattr("apps.conversations.attachments.services.MAX_AUDIO_BYTES", len(WAV) - 1)
    with pytest.raises(Invalid, match="A recording can have at most") as refused:
        desk.attach("long.wav", WAV)
    assert refused.value.status == 413
    page = desk.attach("page.mp3", b"<script>alert(document.cookie)</script> Costs. " * 3, read=False)
    assert not page.media_type.startswith("audio/")
    client = Client()
    client.force_login(cast.user("member"))
    assert client.get(sound_of(cast, desk, page)).status_code == 404


def sound_of(cast: Cast, desk: Desk, row: Attachment) -> str:
    return f"/t/{cast.tenant.slug}/chat/{desk.conversation.pk}/attachments/{row.pk}/sound/"


def test_portal_plays_sound_to_its_owner_alone(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.user("member"))
    desk = Desk(cast)
    upload = io.BytesIO(WAV)
    upload.name = "call <b>.wav"
    base = f"/t/{cast.tenant.slug}/chat/{desk.conversation.pk}/attachments/"
    chip = client.post(base, {"file": upload}).content.decode()
    with tenant_scope(cast.tenant.pk):
        row = Attachment.objects.get()
    url = sound_of(cast, desk, row)
    assert f'<audio controls preload="metadata" src="{url}"' in flat(chip)
    assert 'data-kind="audio"' in chip
    assert "call <b>" not in chip
    page = client.get(f"/t/{cast.tenant.slug}/chat/{desk.conversation.pk}/")
    assert url in page.content.decode()
    assert "media-src 'self'" in page["Content-Security-Policy"]
    whole = client.get(url)
    assert (whole.status_code, whole.content) == (200, WAV)
    assert whole["Content-Type"] == "audio/wav"
    assert whole["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in whole["Cache-Control"]
    for part, content, told in (
        ("bytes=0-3", b"RIFF", f"bytes 0-3/{len(WAV)}"),
        ("bytes=8-", WAV[8:], f"bytes 8-{len(WAV) - 1}/{len(WAV)}"),
        ("bytes=-4", WAV[-4:], f"bytes {len(WAV) - 4}-{len(WAV) - 1}/{len(WAV)}"),
        ("bytes=8-99999999", WAV[8:], f"bytes 8-{len(WAV) - 1}/{len(WAV)}"),
    ):
        some = client.get(url, headers={"range": part})
        assert (some.status_code, some.content, some["Content-Range"]) == (206, content, told)
    for odd in ("bytes=99999999-", "bytes=5-2", "bytes=-0"):
        assert client.get(url, headers={"range": odd}).status_code == 416
    for other in ("bytes=-", "bytes=0-1,4-5", "lines=1-2", "bytes=a-b"):
        assert client.get(url, headers={"range": other}).content == WAV
    picture = desk.attach("stamp.png", PNG)
    note = desk.attach("note.txt", NOTE, read=False)
    for file in (picture, note):
        assert client.get(sound_of(cast, desk, file)).status_code == 404
    elsewhere = Desk(cast)
    assert client.get(sound_of(cast, elsewhere, row)).status_code == 404
    for role in ("owner", "admin", "viewer", "outsider"):
        stranger = Client()
        stranger.force_login(cast.user(role))
        assert stranger.get(url).status_code in (403, 404), role
    assert Client().get(url).status_code == 302


def test_rest_takes_sound_and_says_what_it_is(cast: Cast) -> None:
    desk = Desk(cast, "owner")
    with tenant_scope(cast.tenant.pk):
        _, key = api_key_create(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            name="k",
            scopes=["conversation.*", "collection.read"],
        )
    client = Client(headers={"authorization": f"Bearer {key}"})
    upload = io.BytesIO(MP3)
    upload.name = "song.mp3"
    files = f"/api/v1/conversations/{desk.conversation.pk}/attachments"
    made = client.post(files, {"file": upload})
    assert made.status_code == 201, made.content
    told = made.json()
    assert (told["kind"], told["state"], told["media_type"]) == ("audio", "ready", "audio/mpeg")
    bad = io.BytesIO(M4A)
    bad.name = "song.mp3"
    refused = client.post(files, {"file": bad})
    assert refused.status_code == 400
    assert "M4A audio" in refused.content.decode()


def started(cast: Cast, model: str, *parts: dict[str, Any]) -> Run:
    asked = messages_read([{"role": "user", "content": [*parts, {"type": "text", "text": "What?"}]}])
    with tenant_scope(cast.tenant.pk):
        return completion_start(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            request=CompletionRequest(model=model, asked=asked),
        )


SOUND = {"type": "input_audio", "input_audio": {"data": base64.b64encode(WAV).decode(), "format": "wav"}}


def test_openai_door_keeps_sound_for_models_that_hear_and_names_them_otherwise(
    cast: Cast, gemini: Gemini
) -> None:
    run = started(cast, MODEL, SOUND)
    (kept,) = run.request["completion"]["history"]
    assert [part["media_type"] for part in kept["parts"]] == ["audio/wav"]
    for model in (CLAUDE, "extractive"):
        with pytest.raises(Invalid, match=re.escape(f"“{model}” takes no audio")) as refused:
            started(cast, model, SOUND)
        assert refused.value.code == "unsupported_content"
        assert MODEL in refused.value.message
    with tenant_scope(cast.tenant.pk):
        assert Job.objects.count() == 1
