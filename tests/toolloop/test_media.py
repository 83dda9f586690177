"""Images and PDF files as parts of messages: what is taken, stored, counted and cleared."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.toolloop.helpers import converse
from toolloop.compaction import history_compact
from toolloop.errors import MediaRefused
from toolloop.history import history_merge
from toolloop.media import MAX_MEDIA_BYTES, Media
from toolloop.messages import (
    Citation,
    Message,
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
        (b"<svg/>", "", "none of image/png"),
        (PNG, "image/jpeg", "said to be image/jpeg but holds image/png"),
        (b"MZ" + PNG, "image/png", "none of"),
        (PNG + b"\0" * MAX_MEDIA_BYTES, "", "larger than 50 MB"),
    ],
    ids=["empty", "svg", "lie", "exe", "large"],
)
def test_file_is_refused_when_no_provider_takes_it(
    content: bytes, media_type: str, message: str
) -> None:
    with pytest.raises(MediaRefused, match=message):
        Media.from_bytes(content, media_type)


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


MESSAGES: list[Message] = [
    UserMessage("Look.", parts=(Media.from_bytes(PNG, name="a.png"), Media.from_bytes(PDF))),
    UserMessage("", parts=(Media.from_url("https://example.org/é.png", "image/png"),)),
    ToolResult("c", "draw", "Here.", parts=(Media.from_bytes(WEBP),)),
    Turn("p", "m", "text", citations=(Citation("https://x", "X", 0, 4, "words"), Citation())),
    UserMessage("plain"),
]


@pytest.mark.parametrize("message", MESSAGES)
def test_message_is_the_same_when_it_was_stored_as_json(message: Message) -> None:
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
    def exchange(index: int) -> list[Message]:
        made = ToolCall(f"c{index}", "draw", {}, "{}")
        part = Media.from_bytes(PNG)
        return [
            Turn("p", "m", tool_calls=(made,), stop="tools"),
            ToolResult(made.id, "draw", "Here.", parts=(part,)),
        ]

    history: list[Message] = [UserMessage("Draw."), *exchange(0), *exchange(1), *exchange(2)]
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
