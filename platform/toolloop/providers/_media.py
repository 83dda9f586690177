"""Images, PDF files, sound and other files in the form of each wire, and what each wire takes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from toolloop.errors import UnsupportedFeature
from toolloop.media import Media
from toolloop.media_types import AUDIO, KINDS, NAMES, Kind, file_name
from toolloop.messages import ToolResult, Turn
from toolloop.providers.base import ModelRequest
from toolloop.providers.profiles import Profile

_MB: Final = 1024 * 1024
_NEEDS: Final[dict[Kind, str]] = {
    "image": "image_input",
    "pdf": "pdf_input",
    "audio": "audio_input",
    "office": "file_input",
    "text": "file_input",
}
"""The profile's field that a kind of file needs."""


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """What a provider takes in one request, in bytes of base64.

    Attributes:
        image: of one image.
        total: of all files together.
        fetches: kinds for which it takes a URL and fetches it.
        audio: media types of sound that its document names, for models with ``audio_input``.
        files: further kinds that it takes for models with ``file_input``.
    """

    image: int
    total: int
    fetches: frozenset[str] = frozenset()
    audio: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()


NO_MEDIA: Final = MediaLimits(0, 0)
# https://developers.openai.com/api/docs/guides/file-inputs; sound goes through chat completions alone.
OPENAI_MEDIA: Final = MediaLimits(
    50 * _MB, 50 * _MB, frozenset({"image", "pdf", "office", "text"}), files=frozenset({"office", "text"})
)
XAI_MEDIA: Final = MediaLimits(20 * _MB, 50 * _MB, frozenset({"image"}))
# Of the 32 MB that a request may have, some are left for the rest of it.
ANTHROPIC_MEDIA: Final = MediaLimits(
    5 * _MB, 30 * _MB, frozenset({"image", "pdf"}), files=frozenset({"text"})
)
# https://ai.google.dev/gemini-api/docs/audio names these; text is a document without pages there.
GOOGLE_MEDIA: Final = MediaLimits(
    20 * _MB,
    20 * _MB,
    audio=frozenset({"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac"}),
    files=frozenset({"text"}),
)
# Whoever lets a local server fetch URLs lets a user reach into its network.
COMPATIBLE_MEDIA: Final = MediaLimits(20 * _MB, 50 * _MB, audio=frozenset({"audio/wav", "audio/mpeg"}))


LIMITS: Final[dict[str, MediaLimits]] = {
    "openai": OPENAI_MEDIA,
    "xai": XAI_MEDIA,
    "anthropic": ANTHROPIC_MEDIA,
    "google": GOOGLE_MEDIA,
    "compatible": COMPATIBLE_MEDIA,
}
"""Of each provider that has models."""


def takes_media(provider: str, media_type: str, profile: Profile) -> bool:
    """Tell whether a provider's model can be given files of a type; for whoever asks before there is a request."""
    return is_taken(media_type, LIMITS.get(provider, NO_MEDIA), profile)


def media_check(request: ModelRequest, limits: MediaLimits, *, provider: str, profile: Profile) -> None:
    """Refuse a request whose files this model cannot be given.

    Args:
        request: its whole history counts.
        limits: of the provider.
        provider: for the message.
        profile: of the model.

    Raises:
        UnsupportedFeature: before anything is sent, saying which file and why.
    """
    total = 0
    for message in request.messages:
        if isinstance(message, Turn) or not message.parts:
            continue
        for part in message.parts:
            shown = f"the file {part.name!r}" if part.name else f"the {part.kind}"
            if not is_taken(part.media_type, limits, profile):
                what = NAMES[part.kind]
                if part.kind == "audio" and profile.audio_input:
                    what = f"audio of the type {part.media_type}"
                raise UnsupportedFeature(
                    f"The model {request.model!r} of {provider} doesn't accept {what}: choose another "
                    f"model, or leave out {shown}."
                )
            if part.url and part.kind not in limits.fetches:
                raise UnsupportedFeature(
                    f"{provider} does not fetch {NAMES[part.kind]}: send the bytes of {shown}, not its URL."
                )
            if part.kind == "image" and len(part.data) > limits.image:
                raise UnsupportedFeature(
                    f"{provider} takes at most {_megabytes(limits.image)} MB for one image: "
                    f"make {shown} smaller."
                )
            total += len(part.data)
    if total > limits.total:
        raise UnsupportedFeature(
            f"The files of this conversation are too large for {provider}: together at most "
            f"{_megabytes(limits.total)} MB."
        )


def is_taken(media_type: str, limits: MediaLimits, profile: Profile) -> bool:
    """Tell whether a model can be given files of a type."""
    kind = KINDS[media_type]
    if not getattr(profile, _NEEDS[kind]):
        return False
    if kind == "audio":
        return media_type in limits.audio
    return kind in ("image", "pdf") or kind in limits.files


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
    return {
        "type": "input_file",
        "filename": file_name(part.name, part.media_type),
        "file_data": part.data_url,
    }


def chat_content(text: str, parts: Iterable[Media]) -> str | list[dict[str, Any]]:
    """Return the content of a user message of chat completions; plain text stays plain."""
    blocks = [_chat_part(part) for part in parts]
    if not blocks:
        return text
    return [*blocks, {"type": "text", "text": text}] if text else blocks


def _chat_part(part: Media) -> dict[str, Any]:
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": part.data_url}}
    if part.kind == "audio":
        sound = {"data": part.data, "format": AUDIO[part.media_type]}
        return {"type": "input_audio", "input_audio": sound}
    name = file_name(part.name, part.media_type)
    return {"type": "file", "file": {"filename": name, "file_data": part.data_url}}


def anthropic_blocks(parts: Iterable[Media]) -> list[dict[str, Any]]:
    """Return blocks of the Messages API."""
    return [_anthropic_block(part) for part in parts]


def _anthropic_block(part: Media) -> dict[str, Any]:
    source: dict[str, Any] = {"type": "base64", "media_type": part.media_type, "data": part.data}
    if part.url:
        source = {"type": "url", "url": part.url}
    elif part.kind == "text":
        source = {"type": "text", "media_type": "text/plain", "data": part.text}
    block: dict[str, Any] = {"type": "image", "source": source}
    if part.kind in ("pdf", "text"):
        block["type"] = "document"
        if part.name:
            block["title"] = part.name
    return block


def gemini_parts(parts: Iterable[Media]) -> list[dict[str, Any]]:
    """Return parts of a Gemini content."""
    # Its document calls MP3 by a name of its own.
    types = {"audio/mpeg": "audio/mp3"}
    return [
        {"inlineData": {"mimeType": types.get(p.media_type, p.media_type), "data": p.data}} for p in parts
    ]


def result_label(result: ToolResult) -> str:
    """Say whose files follow, on wires where a tool's result itself can hold only text."""
    return f"[Files that belong to the result of {result.name}:]"


def _megabytes(encoded: int) -> int:
    return encoded * 3 // 4 // _MB
