"""Images and PDF files in the form of each wire, and what each wire takes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from toolloop.errors import UnsupportedFeature
from toolloop.media import Media
from toolloop.messages import ToolResult, Turn
from toolloop.providers.base import ModelRequest

_MB: Final = 1024 * 1024
_NAMES: Final = {"image": "images", "pdf": "PDF files"}


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """What a provider takes in one request, in bytes of base64.

    Attributes:
        image: of one image.
        total: of all files together.
        fetches: kinds for which it takes a URL and fetches it.
    """

    image: int
    total: int
    fetches: frozenset[str] = frozenset()


NO_MEDIA: Final = MediaLimits(0, 0)
OPENAI_MEDIA: Final = MediaLimits(50 * _MB, 50 * _MB, frozenset({"image", "pdf"}))
XAI_MEDIA: Final = MediaLimits(20 * _MB, 50 * _MB, frozenset({"image"}))
# Of the 32 MB that a request may have, some are left for the rest of it.
ANTHROPIC_MEDIA: Final = MediaLimits(5 * _MB, 30 * _MB, frozenset({"image", "pdf"}))
GOOGLE_MEDIA: Final = MediaLimits(20 * _MB, 20 * _MB)
# Whoever lets a local server fetch URLs lets a user reach into its network.
COMPATIBLE_MEDIA: Final = MediaLimits(20 * _MB, 50 * _MB)


def media_check(
    request: ModelRequest, limits: MediaLimits, *, provider: str, image: bool, pdf: bool
) -> None:
    """Refuse a request whose files this model cannot be given.

    Args:
        request: its whole history counts.
        limits: of the provider.
        provider: for the message.
        image, pdf: whether the model takes them.

    Raises:
        UnsupportedFeature: before anything is sent, saying which file and why.
    """
    total = 0
    for message in request.messages:
        if isinstance(message, Turn) or not message.parts:
            continue
        for part in message.parts:
            shown = f"the file {part.name!r}" if part.name else f"the {part.kind}"
            if not (pdf if part.kind == "pdf" else image):
                raise UnsupportedFeature(
                    f"The model {request.model!r} of {provider} takes no {_NAMES[part.kind]}: "
                    f"choose another model, or leave out {shown}."
                )
            if part.url and part.kind not in limits.fetches:
                raise UnsupportedFeature(
                    f"{provider} does not fetch {_NAMES[part.kind]}: send the bytes of {shown}, not its URL."
                )
            if part.kind == "image" and len(part.data) > limits.image:
                raise UnsupportedFeature(
                    f"{provider} takes at most {_megabytes(limits.image)} MB for one image: "
                    f"make {shown} smaller."
                )
            total += len(part.data)
    if total > limits.total:
        raise UnsupportedFeature(
            f"The files of this conversation are too large for {provider} together: "
            f"at most {_megabytes(limits.total)} MB."
        )


def responses_content(text: str, parts: Iterable[Media]) -> str | list[dict[str, Any]]:
    """Return the content of an item of the Responses API; plain text stays plain."""
    blocks = [_responses_part(part) for part in parts]
    if not blocks:
        return text
    return [*blocks, {"type": "input_text", "text": text}] if text else blocks


def _responses_part(part: Media) -> dict[str, Any]:
    if part.kind == "image":
        return {"type": "input_image", "image_url": part.data_url, "detail": "auto"}
    if part.url:
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_file", "filename": _pdf_name(part), "file_data": part.data_url}


def chat_content(text: str, parts: Iterable[Media]) -> str | list[dict[str, Any]]:
    """Return the content of a user message of chat completions; plain text stays plain."""
    blocks = [_chat_part(part) for part in parts]
    if not blocks:
        return text
    return [*blocks, {"type": "text", "text": text}] if text else blocks


def _chat_part(part: Media) -> dict[str, Any]:
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": part.data_url}}
    return {"type": "file", "file": {"filename": _pdf_name(part), "file_data": part.data_url}}


def anthropic_blocks(parts: Iterable[Media]) -> list[dict[str, Any]]:
    """Return blocks of the Messages API."""
    return [_anthropic_block(part) for part in parts]


def _anthropic_block(part: Media) -> dict[str, Any]:
    source: dict[str, Any] = {"type": "base64", "media_type": part.media_type, "data": part.data}
    if part.url:
        source = {"type": "url", "url": part.url}
    block: dict[str, Any] = {"type": "image", "source": source}
    if part.kind == "pdf":
        block["type"] = "document"
        if part.name:
            block["title"] = part.name
    return block


def gemini_parts(parts: Iterable[Media]) -> list[dict[str, Any]]:
    """Return parts of a Gemini content."""
    return [{"inlineData": {"mimeType": part.media_type, "data": part.data}} for part in parts]


def result_label(result: ToolResult) -> str:
    """Say whose files follow, on wires where a tool's result itself can hold only text."""
    return f"[Files that belong to the result of {result.name}:]"


def _pdf_name(part: Media) -> str:
    return part.name or "document.pdf"


def _megabytes(encoded: int) -> int:
    return encoded * 3 // 4 // _MB
