"""Images and PDF files on every wire: rendered as it wants them, or refused before anything is sent."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.toolloop.providers.encodings import Call, Script
from tests.toolloop.providers.wires import (
    ANTHROPIC,
    COMPATIBLE,
    GOOGLE,
    OPENAI,
    WIRES,
    XAI,
    Recorder,
    Wire,
    play,
    stored,
)
from tests.toolloop.test_media import DOCX, M4A, MP3, PDF, PNG, WAV, XLSX
from toolloop import errors
from toolloop.events import RunFinished
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.media import Media
from toolloop.messages import ToolResult, UserMessage
from toolloop.tools import Toolset

every_wire = pytest.mark.parametrize("wire", WIRES, ids=str)
IMAGE = Media.from_bytes(PNG, name="scan.png")
FILE = Media.from_bytes(PDF, name="duty.pdf")
IMAGE_64, FILE_64 = base64.b64encode(PNG).decode(), base64.b64encode(PDF).decode()
IMAGE_URL = f"data:image/png;base64,{IMAGE_64}"
FILE_URL = f"data:application/pdf;base64,{FILE_64}"
SEES: dict[str, Any] = {"image_input": True, "pdf_input": True}

ANTHROPIC_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE_64}}
ANTHROPIC_FILE = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": FILE_64},
    "title": "duty.pdf",
}
RESPONSES_IMAGE = {"type": "input_image", "image_url": IMAGE_URL, "detail": "auto"}
RESPONSES_FILE = {"type": "input_file", "filename": "duty.pdf", "file_data": FILE_URL}
CHAT_IMAGE = {"type": "image_url", "image_url": {"url": IMAGE_URL}}
CHAT_FILE = {"type": "file", "file": {"filename": "duty.pdf", "file_data": FILE_URL}}
GEMINI_IMAGE = {"inlineData": {"mimeType": "image/png", "data": IMAGE_64}}
GEMINI_FILE = {"inlineData": {"mimeType": "application/pdf", "data": FILE_64}}
LABEL = "[Files that belong to the result of search_documents:]"


def history_of(wire: Wire, body: dict[str, Any]) -> list[Any]:
    """Return the messages of a request as the wire has them, without what stands for the system prompt."""
    found = body.get("input") or body.get("messages") or body.get("contents")
    assert isinstance(found, list)
    return [message for message in found if message.get("role") != "system"]


async def sent(wire: Wire, *messages: Any, **settings: Any) -> list[Any]:
    recorder = Recorder(wire.encode(Script(text=["x"])))
    given = {**SEES, **settings} if wire is COMPATIBLE else settings
    await play(wire.provider(recorder, **given), wire.request(*messages))
    return history_of(wire, recorder.body)


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (
            OPENAI,
            {
                "role": "user",
                "content": [RESPONSES_IMAGE, RESPONSES_FILE, {"type": "input_text", "text": "Read."}],
            },
        ),
        (COMPATIBLE, {"role": "user", "content": [CHAT_IMAGE, CHAT_FILE, {"type": "text", "text": "Read."}]}),
        (
            ANTHROPIC,
            {"role": "user", "content": [ANTHROPIC_IMAGE, ANTHROPIC_FILE, {"type": "text", "text": "Read."}]},
        ),
        (GOOGLE, {"role": "user", "parts": [GEMINI_IMAGE, GEMINI_FILE, {"text": "Read."}]}),
    ],
    ids=str,
)
async def test_user_message_with_files_is_exactly_this(wire: Wire, message: dict[str, Any]) -> None:
    assert await sent(wire, UserMessage("Read.", parts=(IMAGE, FILE))) == [message]


async def test_user_message_with_an_image_is_exactly_this_on_xai() -> None:
    content = [RESPONSES_IMAGE, {"type": "input_text", "text": "Read."}]
    assert await sent(XAI, UserMessage("Read.", parts=(IMAGE,))) == [{"role": "user", "content": content}]


@every_wire
async def test_no_empty_text_is_sent_when_a_message_is_only_an_image(wire: Wire) -> None:
    (message,) = await sent(wire, UserMessage("", parts=(IMAGE,)))
    assert len(message.get("content") or message["parts"]) == 1


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC, GOOGLE, COMPATIBLE], ids=str)
async def test_files_of_a_result_follow_it(wire: Wire) -> None:
    first = Recorder(wire.encode(Script(calls=[Call("call_a"), Call("call_b")])))
    _, turn = await play(wire.provider(first), wire.request())
    results = [
        ToolResult("call_a", "search_documents", "Found.", parts=(IMAGE, FILE)),
        ToolResult("call_b", "search_documents", "Nothing.", is_error=True),
    ]
    messages = await sent(wire, UserMessage("Go."), stored(turn), *results)
    tail = messages[2:] if wire is not OPENAI else messages[3:]
    text = {"type": "text", "text": LABEL}
    assert (
        tail
        == {
            "openai": [
                {
                    "type": "function_call_output",
                    "call_id": "call_a",
                    "output": [RESPONSES_IMAGE, RESPONSES_FILE, {"type": "input_text", "text": "Found."}],
                },
                {"type": "function_call_output", "call_id": "call_b", "output": "Error: Nothing."},
            ],
            "anthropic": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "call_a",
                            "content": [{"type": "text", "text": "Found."}, ANTHROPIC_IMAGE, ANTHROPIC_FILE],
                        },
                        {
                            "type": "tool_result",
                            "tool_use_id": "call_b",
                            "content": "Nothing.",
                            "is_error": True,
                        },
                    ],
                }
            ],
            "google": [tail[0], {"role": "user", "parts": [{"text": LABEL}, GEMINI_IMAGE, GEMINI_FILE]}],
            # Both results first: nothing may stand between them.
            "compatible": [
                {"role": "tool", "tool_call_id": "call_a", "content": "Found."},
                {"role": "tool", "tool_call_id": "call_b", "content": "Error: Nothing."},
                {"role": "user", "content": [CHAT_IMAGE, CHAT_FILE, text]},
            ],
        }[wire.name]
    )


REMOTE = Media.from_url("https://example.org/a.png", "image/png")
REMOTE_FILE = Media.from_url("https://example.org/a.pdf", "application/pdf")


@pytest.mark.parametrize(
    ("wire", "blocks"),
    [
        (
            OPENAI,
            [
                {"type": "input_image", "image_url": REMOTE.url, "detail": "auto"},
                {"type": "input_file", "file_url": REMOTE_FILE.url},
            ],
        ),
        (
            ANTHROPIC,
            [
                {"type": "image", "source": {"type": "url", "url": REMOTE.url}},
                {"type": "document", "source": {"type": "url", "url": REMOTE_FILE.url}},
            ],
        ),
    ],
    ids=str,
)
async def test_url_is_handed_on_where_the_provider_fetches_it(wire: Wire, blocks: Any) -> None:
    (message,) = await sent(wire, UserMessage("Read.", parts=(REMOTE, REMOTE_FILE)))
    assert message["content"][:2] == blocks


REFUSED = [
    (GOOGLE, None, (REMOTE,), {}, "does not fetch images: send the bytes"),
    (COMPATIBLE, None, (REMOTE,), SEES, "does not fetch images"),
    (COMPATIBLE, None, (IMAGE,), {}, "doesn't accept images"),
    (COMPATIBLE, None, (FILE,), {"image_input": True}, "doesn't accept PDF files"),
    (OPENAI, "gpt-4", (IMAGE,), {}, "'gpt-4' of openai doesn't accept images: choose another model"),
    (OPENAI, "brand-new", (FILE,), {}, "doesn't accept PDF files"),
    (XAI, None, (FILE,), {}, "doesn't accept PDF files"),
    (
        ANTHROPIC,
        None,
        (Media.from_bytes(PNG + b"\0" * 4_000_000, name="big.png"),),
        {},
        "anthropic takes at most 3 MB for one image: make the file 'big.png' smaller",
    ),
    (GOOGLE, None, (Media.from_bytes(PDF + b"\0" * 9_000_000),) * 2, {}, "at most 15 MB"),
]


@pytest.mark.parametrize(
    ("wire", "model", "parts", "settings", "message"),
    REFUSED,
    ids=[f"{row[0]}-{index}" for index, row in enumerate(REFUSED)],
)
async def test_request_is_refused_before_it_is_sent_when_the_model_cannot_take_its_files(
    wire: Wire, model: str | None, parts: tuple[Media, ...], settings: dict[str, Any], message: str
) -> None:
    recorder = Recorder()
    history = [UserMessage("Read.", parts=parts), UserMessage("And now?")]
    events = run_loop(
        LoopInput(model=model or wire.model, system="", history=history, toolset=Toolset()),
        LoopServices(provider=wire.provider(recorder, **settings)),
    )
    end = [event async for event in events][-1]
    assert isinstance(end, RunFinished)
    assert (end.status, end.error_code, end.retryable) == ("failed", "unsupported_feature", False)
    assert message in end.error_message
    assert recorder.requests == []
    assert end.usage.requests == 0


async def test_extractive_answers_refuse_what_they_cannot_see() -> None:
    from toolloop.providers.extractive import ExtractiveProvider

    request = OPENAI.request(UserMessage("Read.", parts=(IMAGE,)), model="passages")
    with pytest.raises(errors.UnsupportedFeature, match="doesn't accept images"):
        async for _ in ExtractiveProvider().stream(request):
            pass


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC, GOOGLE, COMPATIBLE], ids=str)
async def test_files_are_rendered_anew_when_the_provider_changes(wire: Wire) -> None:
    """One stored conversation goes to each provider in its own form."""
    origin = ANTHROPIC if wire is not ANTHROPIC else OPENAI
    first = Recorder(origin.encode(Script(text=["I see."])))
    asked = UserMessage("Read.", parts=(IMAGE,))
    _, turn = await play(origin.provider(first), origin.request(asked))
    messages = await sent(wire, asked, stored(turn), UserMessage("More?"))
    shown = messages[0].get("content") or messages[0]["parts"]
    form = {OPENAI: RESPONSES_IMAGE, ANTHROPIC: ANTHROPIC_IMAGE, GOOGLE: GEMINI_IMAGE}
    assert shown[0] == form.get(wire, CHAT_IMAGE)
    assert "I see." in str(messages[1])


SOUND, SONG = Media.from_bytes(WAV, name="call.wav"), Media.from_bytes(MP3, name="call.mp3")
TABLE = Media.from_bytes(b"code,duty\n1,5 \xe2\x82\xac\n", "text/csv", "duties.csv")
WORDS, SHEET = Media.from_bytes(DOCX, name="memo"), Media.from_bytes(XLSX, name="Sums.XLSX")
OPEN_XML = "application/vnd.openxmlformats-officedocument."


def data_url(part: Media) -> str:
    return f"data:{part.media_type};base64,{part.data}"


@pytest.mark.parametrize(
    ("wire", "parts", "blocks"),
    [
        (
            OPENAI,
            (TABLE, WORDS, SHEET),
            [
                {"type": "input_file", "filename": "duties.csv", "file_data": data_url(TABLE)},
                {"type": "input_file", "filename": "memo.docx", "file_data": data_url(WORDS)},
                {"type": "input_file", "filename": "Sums.XLSX", "file_data": data_url(SHEET)},
            ],
        ),
        (
            COMPATIBLE,
            (SOUND, SONG),
            [
                {"type": "input_audio", "input_audio": {"data": SOUND.data, "format": "wav"}},
                {"type": "input_audio", "input_audio": {"data": SONG.data, "format": "mp3"}},
            ],
        ),
        (
            ANTHROPIC,
            (TABLE,),
            [
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "code,duty\n1,5 \u20ac\n"},
                    "title": "duties.csv",
                }
            ],
        ),
        (
            GOOGLE,
            (SOUND, SONG, TABLE),
            [
                {"inlineData": {"mimeType": "audio/wav", "data": SOUND.data}},
                {"inlineData": {"mimeType": "audio/mp3", "data": SONG.data}},
                {"inlineData": {"mimeType": "text/csv", "data": TABLE.data}},
            ],
        ),
    ],
    ids=str,
)
async def test_sound_and_files_are_exactly_this(
    wire: Wire, parts: tuple[Media, ...], blocks: list[dict[str, Any]]
) -> None:
    settings = {"audio_input": True} if wire is COMPATIBLE else {}
    (message,) = await sent(wire, UserMessage("Listen.", parts=parts), **settings)
    assert (message.get("content") or message["parts"])[:-1] == blocks


@pytest.mark.parametrize(
    ("wire", "part", "message"),
    [
        (OPENAI, SOUND, "doesn't accept audio: choose another model, or leave out the file 'call.wav'"),
        (XAI, SOUND, "doesn't accept audio"),
        (ANTHROPIC, SONG, "doesn't accept audio"),
        (COMPATIBLE, SOUND, "doesn't accept audio"),
        (GOOGLE, Media.from_bytes(M4A, name="a.m4a"), "doesn't accept audio of the type audio/mp4"),
        (ANTHROPIC, WORDS, "doesn't accept office files"),
        (GOOGLE, SHEET, "doesn't accept office files"),
        (XAI, TABLE, "doesn't accept text files"),
        (COMPATIBLE, TABLE, "doesn't accept text files"),
        (GOOGLE, Media.from_url("https://example.org/a.wav", "audio/wav"), "google does not fetch audio"),
    ],
    ids=str,
)
async def test_sound_and_files_that_a_model_lacks_are_refused_before_anything_is_sent(
    wire: Wire, part: Media, message: str
) -> None:
    recorder = Recorder()
    provider = wire.provider(recorder)
    with pytest.raises(errors.UnsupportedFeature, match=message):
        await play(provider, wire.request(UserMessage("Listen.", parts=(part,))))
    assert recorder.requests == []
