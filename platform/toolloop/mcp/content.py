"""What a server answers, as text for the model and a payload for the application."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from toolloop.errors import MediaRefused
from toolloop.mcp.text import output_clean, text_clean
from toolloop.media import Media
from toolloop.tools.context import ToolOutput

_EMPTY = "Done; there is no output."


def output_of_result(result: Any, *, images: bool) -> ToolOutput:
    """Return a tool's result: text for the model, and structured content, or what is neither text nor shown, as the payload.

    Args:
        result: of the SDK.
        images: show images to the model; else, and where one is no image that providers take, a note says what it was.
    """
    lines: list[str] = []
    parts: list[Media] = []
    others: list[Any] = []
    for block in result.content:
        part = _image(block) if images else None
        if part is None:
            lines.append(_block(block))
            others.append(block)
        else:
            parts.append(part)
    text = "\n".join(filter(None, lines))
    structured = result.structured_content
    if not text and structured is not None:
        text = json.dumps(structured, ensure_ascii=False)
    payload = structured
    if payload is None and any(block.type != "text" for block in others):
        payload = {"content": [_dumped(block) for block in others]}
    empty = "The result is shown as images." if parts else _EMPTY
    return ToolOutput(text or empty, payload, tuple(parts))


def output_of_resource(contents: Sequence[Any]) -> ToolOutput:
    """Return what a resource holds; its binary parts are in the payload only."""
    text = "\n".join(_resource(item) for item in contents)
    return ToolOutput(text or _EMPTY, {"contents": [_dumped(item) for item in contents]})


def output_of_prompt(result: Any) -> ToolOutput:
    """Return a prompt's messages, each after the name of its role."""
    lines = [f"{message.role}: {_block(message.content)}" for message in result.messages]
    messages = [_dumped(message) for message in result.messages]
    return ToolOutput("\n\n".join(lines) or _EMPTY, {"messages": messages})


def listing_text(items: Sequence[Any], form: Any) -> str:
    """Return a list of things, a line each, shortened."""
    return "\n".join(text_clean(form(item).replace("\n", " "), 500) for item in items) or "None."


def _image(block: Any) -> Media | None:
    if block.type != "image":
        return None
    try:
        content = base64.b64decode(block.data, validate=True)
        media = Media.from_bytes(content, block.mime_type)
    except (MediaRefused, binascii.Error):
        return None
    return media if media.kind == "image" else None  # a server that says so need not mean it


def _block(block: Any) -> str:
    kind = block.type
    if kind == "text":
        return output_clean(block.text)
    if kind in ("image", "audio"):
        return f"[{kind}, {_short(block.mime_type)}, about {_bytes(block.data)} bytes: not shown]"
    if kind == "resource":
        return _resource(block.resource)
    return f"[resource {_short(block.name)}: {_short(block.uri)}]"


def _resource(item: Any) -> str:
    if hasattr(item, "text"):
        return output_clean(item.text)
    kind = _short(item.mime_type or "unknown type")
    return f"[{_short(item.uri)}, {kind}, about {_bytes(item.blob)} bytes: not shown]"


def _bytes(base64_text: str) -> int:
    return len(base64_text) * 3 // 4


def _short(text: object) -> str:
    return text_clean(str(text), 200)


def _dumped(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
