"""Images and PDF files as parts of messages: what is taken, stored, counted and cleared."""

from __future__ import annotations

import base64
import io
import json
import struct
import zipfile
from typing import Any

import pytest

from tests.toolloop.helpers import converse
from toolloop.compaction import history_compact
from toolloop.errors import MediaRefused
from toolloop.history import history_merge
from toolloop.media import MAX_MEDIA_BYTES, Media
from toolloop.messages import (
    Citation,
    ModelMessage,
    ToolCall,
    ToolResult,
    Turn,
    UserMessage,
    message_from_json,
)
from toolloop.providers.scripted import call, calls, says
from toolloop.tools import ToolOutput, tool
from toolloop.usage import text_tokens

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(60))
JPEG = b"\xff\xd8\xff\xe0" + b"j" * 20
GIF = b"GIF89a" + b"g" * 20
WEBP = b"RIFF\x10\x00\x00\x00WEBPVP8 " + b"w" * 20
PDF = b"%PDF-1.7\n" + b"/Type /Page\n" * 3 + b"/Type /Pages\n"


@pytest.mark.parametrize(
    ("content", "media_type", "kind"),
    [
        (PNG, "image/png", "image"),
        (JPEG, "image/jpeg", "image"),
        (GIF, "image/gif", "image"),
        (WEBP, "image/webp", "image"),
        (PDF, "application/pdf", "pdf"),
    ],
)
def test_type_is_recognised_when_none_is_given(content: bytes, media_type: str, kind: str) -> None:
    part = Media.from_bytes(content, name="f")
    assert (part.media_type, part.kind) == (media_type, kind)
    assert base64.b64decode(part.data) == content
    assert part == Media.from_bytes(content, media_type, "f")


@pytest.mark.parametrize(
    ("content", "media_type", "message"),
    [
        (b"", "", "is empty"),
        (b"<svg/>", "image/svg+xml", "said to be image/svg.xml but holds text/plain"),
        (b"\x00\x01\x02", "", "one of image/png"),
        (PNG, "image/jpeg", "said to be image/jpeg but holds image/png"),
        (b"MZ" + PNG, "image/png", "one of"),
        (PNG + b"\0" * MAX_MEDIA_BYTES, "", "larger than 50 MB"),
    ],
    ids=["empty", "svg", "bytes", "lie", "exe", "large"],
)
def test_file_is_refused_when_no_provider_takes_it(content: bytes, media_type: str, message: str) -> None:
    with pytest.raises(MediaRefused, match=message):
        Media.from_bytes(content, media_type)


def wav(seconds: int = 1, rate: int = 8_000) -> bytes:
    """Return silence: 8 bit, mono."""
    head = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, rate, 1, 8)
    body = head + b"data" + struct.pack("<I", rate * seconds) + b"\x80" * (rate * seconds)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def office(part: str, **more: str) -> bytes:
    """Return an Open XML file with this main part."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {"[Content_Types].xml": "<Types/>", part: "<x/>", **more}.items():
            # Of no date: the bytes name a test, and all processes must give it the same name.
            archive.writestr(zipfile.ZipInfo(name), text)
    return file.getvalue()


WAV, MP3 = wav(), b"ID3\x04\x00\x00\x00\x00\x00\x00" + b"\xff\xfb\x90\x64" * 20
OGG = b"OggS\x00\x02" + b"\x00" * 22 + b"OpusHead" + b"\x01" * 40
FLAC, M4A = b"fLaC\x00\x00\x00\x22" + b"f" * 60, b"\x00\x00\x00\x20ftypM4A " + b"\x00" * 40
WEBM = b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webm" + b"w" * 40
DOCX, XLSX = office("word/document.xml"), office("xl/workbook.xml")
OPEN_XML = "application/vnd.openxmlformats-officedocument."


@pytest.mark.parametrize(
    ("content", "said", "media_type", "kind"),
    [
        (WAV, "", "audio/wav", "audio"),
        (WAV, "audio/x-wav", "audio/wav", "audio"),
        (MP3, "audio/mp3", "audio/mpeg", "audio"),
        (MP3[10:], "", "audio/mpeg", "audio"),
        (OGG, "audio/ogg; codecs=opus", "audio/ogg", "audio"),
        (FLAC, "", "audio/flac", "audio"),
        (M4A, "audio/m4a", "audio/mp4", "audio"),
        (WEBM, "audio/webm", "audio/webm", "audio"),
        (DOCX, "", f"{OPEN_XML}wordprocessingml.document", "office"),
        (XLSX, "", f"{OPEN_XML}spreadsheetml.sheet", "office"),
        (office("ppt/presentation.xml"), "", f"{OPEN_XML}presentationml.presentation", "office"),
        ("Zoll: 5 €\n".encode(), "", "text/plain", "text"),
        (b"code,duty\n1,5\n", "text/csv; charset=utf-8", "text/csv", "text"),
        (b"\xef\xbb\xbf# T", "text/markdown", "text/markdown", "text"),
    ],
)
def test_sound_office_and_text_are_recognised_by_their_bytes_and_stored(
    content: bytes, said: str, media_type: str, kind: str
) -> None:
    part = Media.from_bytes(content, said, "f")
    assert (part.media_type, part.kind) == (media_type, kind)
    assert Media.from_json(json.loads(json.dumps(part.to_json()))) == part


@pytest.mark.parametrize(
    ("content", "said", "message"),
    [
        (PNG, "audio/wav", "said to be audio/wav but holds image/png"),
        (b"<script>alert(1)</script>", "audio/mpeg", "but holds text/plain"),
        (WAV, "text/plain", "said to be text/plain but holds audio/wav"),
        (b"RIFF\x10\x00\x00\x00AVI LIST" + b"\0" * 20, "audio/wav", "one of"),
        (b"\x00\x00\x00\x20ftypisom" + b"\0" * 40, "audio/mp4", "one of"),
        (b"OggS\x00\x02" + b"\0" * 22 + b"\x80theora" + b"\0" * 20, "audio/ogg", "one of"),
        (b"\xff\xfe" + "text".encode("utf-16-le"), "", "one of"),
        (b"\xff\xe1\x00\x10", "audio/mpeg", "one of"),
        (office("evil.exe"), "", "one of"),
        (b"PK\x03\x04" + b"\0" * 60, f"{OPEN_XML}wordprocessingml.document", "one of"),
        (DOCX, f"{OPEN_XML}spreadsheetml.sheet", "but holds"),
        (b"a\x00b", "text/plain", "one of"),
        (b"\xc3\x28", "text/plain", "one of"),
    ],
)
def test_disguised_content_is_refused(content: bytes, said: str, message: str) -> None:
    with pytest.raises(MediaRefused, match=message):
        Media.from_bytes(content, said, "f")


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        ("audio/wav", PNG),
        ("text/plain", PNG),
        ("text/plain", b"x" * 100 + b"\xff"),
        (f"{OPEN_XML}spreadsheetml.sheet", b"x" * 60),
    ],
)
def test_stored_file_that_is_not_what_it_says_is_refused(media_type: str, content: bytes) -> None:
    data = {"media_type": media_type, "data": base64.b64encode(content).decode(), "name": "f"}
    with pytest.raises(MediaRefused, match="damaged"):
        Media.from_json(data)


def test_a_minute_of_sound_counts_as_such() -> None:
    assert Media.from_bytes(wav(60)).tokens == 60 * 32
    assert Media.from_bytes(b"word " * 300).tokens == 501


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/a.png",
        "file:///etc/passwd",
        "https://user:secret@example.org/a.png",
        "https://",
        "https://[::1",
        "data:image/png;base64,AAAA",
    ],
)
def test_url_is_refused_when_it_is_not_plain_https(url: str) -> None:
    with pytest.raises(MediaRefused):
        Media.from_url(url, "image/png")


def test_part_is_refused_when_it_is_neither_bytes_nor_url() -> None:
    with pytest.raises(MediaRefused, match="either"):
        Media("image/png")
    with pytest.raises(MediaRefused, match="either"):
        Media("image/png", data="AAAA", url="https://example.org/a.png")
    with pytest.raises(MediaRefused, match="image/tiff"):
        Media("image/tiff", data="AAAA")


MESSAGES: list[ModelMessage] = [
    UserMessage("Look.", parts=(Media.from_bytes(PNG, name="a.png"), Media.from_bytes(PDF))),
    UserMessage("", parts=(Media.from_url("https://example.org/é.png", "image/png"),)),
    ToolResult("c", "draw", "Here.", parts=(Media.from_bytes(WEBP),)),
    Turn("p", "m", "text", citations=(Citation("https://x", "X", 0, 4, "words"), Citation())),
    UserMessage("plain"),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_message_is_the_same_when_it_was_stored_as_json(message: ModelMessage) -> None:
    assert message_from_json(json.loads(json.dumps(message.to_json()))) == message


def test_plain_messages_are_stored_as_before() -> None:
    assert UserMessage("x").to_json() == {"role": "user", "text": "x"}
    assert "parts" not in ToolResult("c", "n", "x").to_json()
    assert "citations" not in Turn("p", "m").to_json()


@pytest.mark.parametrize("data", ["", "AAAA", "not base64!", base64.b64encode(JPEG).decode()])
def test_stored_part_is_refused_when_it_was_changed(data: str) -> None:
    stored = Media.from_bytes(PNG).to_json() | {"data": data}
    with pytest.raises(MediaRefused):
        Media.from_json(stored)


def test_bytes_stay_out_of_logs() -> None:
    part = Media.from_bytes(PNG, name="a.png")
    assert part.data not in repr(UserMessage("Look.", parts=(part,)))
    assert "a.png" in repr(part)


def test_tokens_of_files_count_in_the_estimate() -> None:
    bare = text_tokens(UserMessage("Look."))
    assert text_tokens(UserMessage("Look.", parts=(Media.from_bytes(PNG),))) == bare + 1_600
    assert text_tokens(UserMessage("Look.", parts=(Media.from_bytes(PDF),))) == bare + 3 * 2_000
    long = Media.from_bytes(b"%PDF-1.7" + b"x" * 500_000)
    assert text_tokens(ToolResult("c", "n", "", parts=(long,))) >= 10 * 2_000


def test_files_stay_when_messages_are_merged() -> None:
    image, pdf = Media.from_bytes(PNG), Media.from_bytes(PDF)
    merged = history_merge([UserMessage("", parts=(image,)), UserMessage("And?", parts=(pdf,))])
    assert merged == [UserMessage("And?", parts=(image, pdf))]


async def test_files_of_old_results_are_cleared_first_when_a_history_is_compacted() -> None:
    def exchange(index: int) -> list[ModelMessage]:
        made = ToolCall(f"c{index}", "draw", {}, "{}")
        part = Media.from_bytes(PNG)
        return [
            Turn("p", "m", tool_calls=(made,), stop="tools"),
            ToolResult(made.id, "draw", "Here.", parts=(part,)),
        ]

    history: list[ModelMessage] = [UserMessage("Draw."), *exchange(0), *exchange(1), *exchange(2)]
    done = await history_compact(history, 2_000, keep_turns=1)
    results = [message for message in done.messages if isinstance(message, ToolResult)]
    assert [len(result.parts) for result in results] == [0, 0, 1]
    assert "cleared" in results[0].content
    assert done.left_out == 0


async def test_files_of_a_tool_reach_the_model() -> None:
    part = Media.from_bytes(PNG, name="plot.png")

    @tool
    def draw() -> Any:
        """Draw."""
        return ToolOutput("Drawn.", {"w": 1}, (part,))

    talk = await converse([calls(call("draw")), says("A plot.")], draw)
    assert talk.told()[0].parts == (part,)
    assert talk.end.status == "completed"
