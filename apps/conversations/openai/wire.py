"""Between OpenAI's chat completions and the loop's messages. Pure.

Wire format: https://platform.openai.com/docs/api-reference/chat (request, response and ``chat.completion.chunk``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from apps.conversations.citations.markers import CitablePassage, Cited, answer_cite
from apps.conversations.display.marks import marks_found, question_of
from apps.conversations.openai.files import audio_read, file_read, image_read
from basics.errors import Invalid
from runs.models import Run
from toolloop.media import Media
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage
from toolloop.service import STANDARD

_CALL_ID = re.compile(r"call_g(\d{1,18})_(\d{1,18})")

_FINISH = {"length": "length", "filter": "content_filter", "refusal": "content_filter"}

ToolChoice = Literal["auto", "required", "none"]


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request, read.

    Attributes:
        system: what its system and developer messages say.
        history: the other messages, in order.
        answers: the results of client tools that end the history: call id -> text.
    """

    system: str
    history: list[ModelMessage]
    answers: dict[str, str] = field(default_factory=dict)


def messages_read(
    messages: Sequence[Mapping[str, Any]],
    *,
    places: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
) -> ParsedRequest:
    """Read the messages of a request.

    Args:
        places: what each message is called in errors.
        names: tools of calls that wait from before the first message: call id -> name.

    Raises:
        Invalid: a message cannot be used; the error names its place.
    """
    system: list[str] = []
    history: list[ModelMessage] = []
    names = dict(names or {})
    answers: dict[str, str] = {}
    for index, message in enumerate(messages):
        where = places[index] if places else f"messages[{index}]"
        role = message.get("role")
        if role in ("system", "developer"):
            system.append(_text(message.get("content"), where))
        elif role == "user":
            answers = {}
            history.append(_user(message.get("content"), where))
        elif role == "assistant":
            answers = {}
            turn = turn_read(message, where)
            names = {call.id: call.name for call in turn.tool_calls}
            history.append(turn)
        elif role == "tool":
            call_id = str(message.get("tool_call_id") or "")
            if call_id not in names:
                raise _invalid(where, "It doesn't answer a call in the previous assistant message.")
            content = _text(message.get("content"), where)
            answers[call_id] = content
            history.append(ToolResult(call_id, names[call_id], content))
        else:
            raise _invalid(
                f"{where}.role", f"“{role}” isn't one of system, developer, user, assistant and tool."
            )
    whole = "input" if places is not None else "messages"
    if not history:
        raise _invalid(whole, "Send at least one user message.")
    if isinstance(history[-1], Turn):
        raise _invalid(whole, "The last message is from the assistant, so there is nothing to answer.")
    return ParsedRequest("\n\n".join(filter(None, system)), history, answers)


def _text(content: Any, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _invalid(f"{where}.content", "Send a text or a list of parts.")
    texts = []
    for number, part in enumerate(content):
        text = part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str):
            raise _invalid(f"{where}.content[{number}]", "Only text parts are allowed here.")
        texts.append(text)
    return "\n".join(texts)


def _user(content: Any, where: str) -> UserMessage:
    if not isinstance(content, list):
        return UserMessage(_text(content, where))
    texts: list[str] = []
    media: list[Media] = []
    for number, part in enumerate(content):
        place = f"{where}.content[{number}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "image_url" and isinstance(part.get("image_url"), dict):
            media.append(image_read(str(part["image_url"].get("url") or ""), place))
        elif kind == "input_audio" and isinstance(part.get("input_audio"), dict):
            media.append(audio_read(part["input_audio"], place))
        elif kind == "file" and isinstance(part.get("file"), dict):
            read = file_read(part["file"], place)
            if isinstance(read, str):
                texts.append(read)
            else:
                media.append(read)
        elif kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            raise _invalid(place, "Send parts of the types text, image_url, input_audio and file.")
    return UserMessage("\n".join(texts), parts=tuple(media))


def turn_read(message: Mapping[str, Any], where: str) -> Turn:
    """Read a message of the assistant; raises Invalid, which names ``where``."""
    calls = []
    given = message.get("tool_calls") or []
    if not isinstance(given, list):
        raise _invalid(f"{where}.tool_calls", "Send a list of calls.")
    for number, call in enumerate(given):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(call.get("id"), str):
            raise _invalid(
                f"{where}.tool_calls[{number}]", "A call needs an id and a function with name and arguments."
            )
        raw = str(function.get("arguments") or "{}")
        calls.append(ToolCall(call["id"], str(function.get("name") or ""), _object(raw), raw))
    return Turn(
        provider="client",
        model="client",
        text=_text(message.get("content"), where),
        tool_calls=tuple(calls),
        stop="tools" if calls else "end",
    )


def _object(raw: str) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _invalid(field_name: str, problem: str) -> Invalid:
    return Invalid("invalid", f"{field_name}: {problem}", data={"fields": {field_name: [problem]}})


def call_id_of(run_id: int, decision_id: int) -> str:
    """Return the id by which a client answers a call that waits for it."""
    return f"call_g{run_id}_{decision_id}"


def call_ids_read(ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return (run id, decision id) of those ids that ``call_id_of`` made."""
    found = {text: _CALL_ID.fullmatch(text) for text in ids}
    return {text: (int(m[1]), int(m[2])) for text, m in found.items() if m}


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """What a run has to say to its client, finished or waiting.

    Attributes:
        text: with citation markers as ``[1]``.
        calls: client tools to run now.
        finish_reason: in OpenAI's words.
        citations: the sources of the markers, as ``groundwork.citations``.
        marks: sentences of ``text`` that its reader should check, as ``groundwork.marks``.
        removed_citations: markers that named no retrieved passage.
        waiting: names of calls that wait for somebody's approval here.
        notice: says so to the person who reads the answer, "" while nothing waits.
        service_tier: in which the last turn was served, in OpenAI's words; "" where nobody has said.
    """

    run_id: int
    created: int
    model: str
    text: str
    calls: list[dict[str, Any]]
    finish_reason: str
    usage: dict[str, Any]
    citations: list[dict[str, Any]]
    marks: list[dict[str, Any]]
    removed_citations: int
    waiting: list[str]
    status: str
    notice: str = ""
    service_tier: str = ""

    @property
    def shown(self) -> str:
        """The text as a client shows it: with the notice below."""
        return "\n\n".join(part for part in (self.text, self.notice) if part)

    def extension(self) -> dict[str, Any]:
        """Return what stands beside OpenAI's fields, under ``groundwork``."""
        return {
            "run": self.run_id,
            "status": self.status,
            "citations": self.citations,
            "marks": self.marks,
            "removed_citations": self.removed_citations,
            "waiting": self.waiting,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the response of a request without ``stream``."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": self.shown or (None if self.calls else ""),
            "refusal": None,
        }
        if self.calls:
            message["tool_calls"] = self.calls
        return {
            "id": f"chatcmpl-{self.run_id}",
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
            ],
            "usage": self.usage,
            **self.served(),
            "groundwork": self.extension(),
        }

    def served(self) -> dict[str, Any]:
        """Return OpenAI's field about the tier, if there is something to say."""
        return {"service_tier": self.service_tier} if self.service_tier else {}


def chunk(
    answer_id: int,
    created: int,
    model: str,
    delta: Mapping[str, Any],
    finish_reason: str | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """Return one ``chat.completion.chunk``."""
    return {
        "id": f"chatcmpl-{answer_id}",
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}],
        **extra,
    }


def chunks_last(answer: RunAnswer, *, with_usage: bool) -> Iterator[dict[str, Any]]:
    """Return what ends a stream: the calls, the reason, and the usage where it was asked for."""
    head = (answer.run_id, answer.created, answer.model)
    none: dict[str, Any] = {"usage": None} if with_usage else {}
    for index, call in enumerate(answer.calls):
        yield chunk(*head, {"tool_calls": [{"index": index, **call}]}, **none)
    last: dict[str, Any] = {"groundwork": answer.extension(), **answer.served(), **none}
    yield chunk(*head, {}, answer.finish_reason, **last)
    if with_usage:
        yield {**chunk(*head, {}), "choices": [], "usage": answer.usage, **answer.served()}


def usage_json(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's usage in OpenAI's words."""
    read, written = int(usage.get("input_total", 0)), int(usage.get("output_total", 0))
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": int(usage.get("cached_read", 0))},
        "completion_tokens_details": {"reasoning_tokens": int(usage.get("reasoning", 0))},
    }


def citations_json(cited: Cited) -> list[dict[str, Any]]:
    """Return the sources of an answer, with the ids that every other door of the platform uses."""
    return [
        {
            "number": source.number,
            "chunk": source.passage.chunk_id,
            "document": source.passage.document_id,
            "document_name": source.passage.document_name,
            "collection": source.passage.collection_name,
            "page": source.page,
            "quote": source.quote,
            "header": source.header,
        }
        for source in cited.sources
    ]


class GrowingText:
    """The text of an answer as it grows, as a client sees it: numbers for markers, and never less than before."""

    def __init__(self) -> None:
        self._shown = ""

    def more(self, text: str, passages: Mapping[int, CitablePassage]) -> str:
        """Return what is new of a text that has grown."""
        whole = answer_cite(text, passages).text
        if not whole.startswith(self._shown):
            # A turn was begun anew (a worker died, a connection broke). What was sent cannot be taken back: the client
            # reads the new words below the old ones, and the finished answer has the new ones alone.
            self._shown = whole
            return f"\n\n{whole}"
        new = whole[len(self._shown) :]
        self._shown = whole
        return new


def answer_of(
    run: Run,
    *,
    model: str,
    text: str,
    told: str,
    passages: Mapping[int, CitablePassage],
    pending: Sequence[tuple[int, str, Mapping[str, Any]]],
    approvals: Sequence[str],
    notice: str,
    usage: Mapping[str, Any],
    stop: str,
    service_tier: str = "",
    is_marked: bool = True,
) -> RunAnswer:
    """Put together what a run has to say.

    Args:
        model: as the client named it.
        text: everything the run has said.
        told: the part of it that an earlier response told.
        pending: client calls that wait: (decision id, name, arguments).
        approvals: names of calls that wait for approval here.
        notice: says so in words.
        usage: what this part of it used, in our words.
        stop: why its last turn ended, in the loop's words.
        service_tier: in which that turn was served, in the loop's words.
        is_marked: whether it is compared with its sources; what is withheld in part can't be.
    """
    cited, growing = answer_cite(text, passages), GrowingText()
    growing.more(told, passages)
    new = growing.more(text, passages).lstrip("\n")
    calls = [
        {
            "id": call_id_of(run.pk, decision),
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for decision, name, arguments in pending
    ]
    reason = "tool_calls" if calls else _FINISH.get(stop, "stop")
    marks = marks_found(new, cited.sources, question_of(run.request)) if is_marked else []
    return RunAnswer(
        run_id=run.pk,
        created=int(run.created_at.timestamp()),
        model=model,
        text=new,
        calls=calls,
        finish_reason=reason,
        usage=usage_json(usage),
        citations=citations_json(cited),
        marks=[mark.to_json() for mark in marks],
        removed_citations=cited.removed,
        waiting=list(approvals),
        status=run.status,
        notice=notice,
        service_tier="default" if service_tier == STANDARD else service_tier,
    )
