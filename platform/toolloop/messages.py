"""Normalised messages: what a history is made of, whatever provider wrote it.

Every class round-trips through JSON (``to_json`` / ``message_from_json``), so that a journal can store a history and a
later process can go on with it. A provider's own form of its turn travels verbatim in ``Turn.native`` and is echoed to
the same provider and model only; any other provider gets the normalised form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from toolloop.media import Media
from toolloop.tokens import Usage as Usage

StopReason = Literal["end", "tools", "length", "refusal", "filter", "pause", "context", "error", "stopped"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call a model asked for. ``arguments`` is None when ``raw`` was no JSON object; ``problem`` then says why."""

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str = ""
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "arguments": self.arguments,
            "raw": self.raw,
            "problem": self.problem,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ToolCall:
        return cls(
            data["id"], data["name"], data.get("arguments"), data.get("raw", ""), data.get("problem", "")
        )


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person (or the application on their behalf) said; ``notice`` marks what the loop itself added.

    ``parts`` are images and PDF files that belong to it; the model sees them before the text.
    """

    text: str
    notice: bool = False
    parts: tuple[Media, ...] = ()

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {"role": "user", "text": self.text}
        if self.notice:
            data["notice"] = True
        if self.parts:
            data["parts"] = [part.to_json() for part in self.parts]
        return data


@dataclass(frozen=True, slots=True)
class Citation:
    """A source that the provider names for a stretch of a turn's text.

    Attributes:
        url, title: of the source; a stored file has no URL but perhaps ``file_id``.
        start, end: characters of ``Turn.text`` that rest on it, None where the provider does not say.
        quote: words of the source, "" where they are not given.
        file_id: the provider's name of a stored file.
        passage: id of a passage that one of our own tools gave; its mark stands in the text. See ``toolloop.passages``.
    """

    url: str = ""
    title: str = ""
    start: int | None = None
    end: int | None = None
    quote: str = ""
    file_id: str = ""
    passage: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "title": self.title,
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
            "file_id": self.file_id,
            "passage": self.passage,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Citation:
        return cls(**{k: data[k] for k in cls.__slots__ if k in data})


@dataclass(frozen=True, slots=True)
class Turn:
    """One finished model turn.

    Attributes:
        provider, model, account: key of the native echo; it goes back only where all three are equal.
        native: the provider's own items for this turn, JSON, verbatim; None for a turn that was never native.
        stop: normalised reason; ``stop_detail`` keeps the provider's own word.
        citations: what the provider says the text rests on: of its own searches, and of passages of our tools.
        service_tier: in which tier the provider says it was served, in our words; "" where it says nothing.
    """

    provider: str
    model: str
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop: StopReason = "end"
    stop_detail: str = ""
    native: list[dict[str, Any]] | None = None
    usage: Usage = field(default_factory=Usage)
    request_id: str = ""
    account: str = ""
    citations: tuple[Citation, ...] = ()
    service_tier: str = ""

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "role": "assistant",
            "provider": self.provider,
            "model": self.model,
            "text": self.text,
            "reasoning": self.reasoning,
            "tool_calls": [c.to_json() for c in self.tool_calls],
            "stop": self.stop,
            "stop_detail": self.stop_detail,
            "native": self.native,
            "usage": self.usage.to_json(),
            "request_id": self.request_id,
            "account": self.account,
        }
        if self.citations:
            data["citations"] = [citation.to_json() for citation in self.citations]
        if self.service_tier:
            data["service_tier"] = self.service_tier
        return data


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call.

    Attributes:
        content: text for the model, cut at the run's output limit.
        payload: JSON value for the application, always whole.
        error_code: why ``is_error``: ``unknown_tool``, ``invalid_arguments``, ``truncated``, ``tool_error``,
            ``exception``, ``timeout``, ``cancelled``, ``limit``, ``lost``, ``rejected``, or a code of the journal's own.
        parts: images and PDF files for the model, beside ``content``.
        whole_chars: characters of the whole output, where ``content`` is not all of it; for the journal, not stored.
    """

    call_id: str
    name: str
    content: str
    is_error: bool = False
    payload: Any = None
    error_code: str = ""
    parts: tuple[Media, ...] = ()
    whole_chars: int | None = None

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "role": "tool",
            "call_id": self.call_id,
            "name": self.name,
            "content": self.content,
            "is_error": self.is_error,
            "payload": self.payload,
            "error_code": self.error_code,
        }
        if self.parts:
            data["parts"] = [part.to_json() for part in self.parts]
        return data


ModelMessage = UserMessage | Turn | ToolResult


def message_from_json(data: dict[str, Any]) -> ModelMessage:
    """Rebuild the message that ``to_json`` wrote. Raises ValueError for an unknown role."""
    role = data.get("role")
    if role == "user":
        return UserMessage(data["text"], bool(data.get("notice")), _parts(data))
    if role == "tool":
        return ToolResult(
            data["call_id"],
            data["name"],
            data["content"],
            bool(data.get("is_error")),
            data.get("payload"),
            data.get("error_code", ""),
            _parts(data),
        )
    if role == "assistant":
        return Turn(
            provider=data["provider"],
            model=data["model"],
            text=data.get("text", ""),
            reasoning=data.get("reasoning", ""),
            tool_calls=tuple(ToolCall.from_json(c) for c in data.get("tool_calls", ())),
            stop=data.get("stop", "end"),
            stop_detail=data.get("stop_detail", ""),
            native=data.get("native"),
            usage=Usage.from_json(data.get("usage", {})),
            request_id=data.get("request_id", ""),
            account=data.get("account", ""),
            citations=tuple(Citation.from_json(c) for c in data.get("citations", ())),
            service_tier=data.get("service_tier", ""),
        )
    raise ValueError(f"unknown message role {role!r}")


def _parts(data: dict[str, Any]) -> tuple[Media, ...]:
    return tuple(Media.from_json(part) for part in data.get("parts", ()))
