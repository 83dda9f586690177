"""A row of a dataset as a plain value: its parts, its checks, its JSON form and its content hash. Pure.

One value serves generation, review, versions, exports and evaluations. Sources are anchored to documents and characters,
not to chunks, so that they survive another chunking. JSON is the wire form everywhere; the hash is the SHA-256 of its
canonical form (sorted keys, no spaces, UTF-8), so that equal rows have equal hashes on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from apps.datasets.records.parts import (
    EMPTY_ANSWERS,
    STRICT,
    Behaviour,
    Difficulty,
    RecordSource,
    RowType,
    Score,
    Split,
    Step,
    ToolSpec,
    TraceMessage,
)
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told

MAX_BYTES = 1_000_000
"""How long a record's JSON may be. A trace of a hundred tool calls has about a fifth of this."""
MAX_QUESTION = 20_000


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a dataset.

    Attributes:
        id: the row's name in its dataset; not part of the content hash.
        answer: the reference answer; may be empty where the right behaviour is to give none, and in rows for
            retrieval, which have sources alone.
        rejected: a worse answer to the same question, for preference pairs.
        type, difficulty, split: "" where not known.
        rationale: why the question is worth asking.
        scores: by judges and people, no name twice.
        question: in a conversation of several turns, the last thing its user says; ``messages`` holds those before it.
        messages: the whole trace, from the question to the answer that is its last message; none where only these two are known.
        tools: what the trace could call.
        language: BCP 47 tag; "" is unknown.
        timestamp: when the row was made, ISO 8601; "" is unknown. Not part of the content hash: when does not change what.
        meta: further facts that a format or a pipeline keeps; JSON values.
    """

    __pydantic_config__ = STRICT

    question: str
    answer: str = ""
    id: str = ""
    rejected: str = ""
    type: RowType | Literal[""] = ""
    difficulty: Difficulty | Literal[""] = ""
    expected: Behaviour = Behaviour.ANSWER
    rationale: str = ""
    steps: tuple[Step, ...] = ()
    sources: tuple[RecordSource, ...] = ()
    scores: tuple[Score, ...] = ()
    tags: tuple[str, ...] = ()
    split: Split | Literal[""] = ""
    messages: tuple[TraceMessage, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    language: str = ""
    timestamp: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content_hash(self) -> str:
        """Return the SHA-256 (hex) of the canonical JSON of everything but id and timestamp."""
        return hash_of(to_values(self))

    @property
    def licenses(self) -> tuple[str, ...]:
        """Return the licences of the sources, sorted, each once; "" stands for an unknown one."""
        return tuple(sorted({source.license for source in self.sources}))

    @property
    def earlier(self) -> tuple[TraceMessage, ...]:
        """Return what user and assistant said before the question, of a conversation of several turns."""
        asked = [at for at, message in enumerate(self.messages) if message.role == "user"]
        before = self.messages[: asked[-1]] if asked else ()
        return tuple(m for m in before if m.content and m.role in ("user", "assistant"))


FIELDS = tuple(f.name for f in fields(Record))
UNHASHED = frozenset({"id", "timestamp"})
"""Fields that say which row it is, and when it was made, but not what it says."""
_ADAPTER: TypeAdapter[Record] = TypeAdapter(Record)


def hash_of(values: Mapping[str, Any]) -> str:
    """Return ``Record.content_hash`` of the record with these values (``to_values``)."""
    content = {name: value for name, value in values.items() if name not in UNHASHED}
    return hashlib.sha256(canonical(content)).hexdigest()


def canonical(values: Any) -> bytes:
    """Return JSON values in their one canonical form. Raises ValueError for NaN and infinity."""
    return json.dumps(
        values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def to_values(record: Record) -> dict[str, Any]:
    """Return a record as JSON values, every field present but cost and sources of steps that have none."""
    values = asdict(record)
    for step in values["steps"]:
        for name in ("cost_usd", "sources"):
            if not step[name] and step[name] != 0:
                del step[name]
    for name in ("type", "difficulty", "expected", "split"):
        values[name] = str(values[name])
    return values


def to_json(record: Record) -> str:
    """Return a record as one line of JSON."""
    return json.dumps(to_values(record), ensure_ascii=False, allow_nan=False)


def from_values(values: Mapping[str, Any]) -> Record:
    """Return the record of JSON values, checked. Raises Invalid, which names every field that is wrong."""
    try:
        text = canonical(dict(values))
    except (TypeError, ValueError, RecursionError) as error:
        raise _invalid({"row": [_("The row isn't valid JSON: %(error)s.") % {"error": error}]}) from error
    return from_json(text)


def from_json(text: str | bytes) -> Record:
    """Return the record of a JSON object, checked. Raises Invalid, which names every field that is wrong."""
    if len(text) > MAX_BYTES:
        raise _invalid(
            {
                "row": [
                    _("A row has at most %(max_bytes)s bytes of JSON. Shorten it.")
                    % {"max_bytes": number_told(MAX_BYTES)}
                ]
            }
        )
    try:
        record = _ADAPTER.validate_json(text)
    except ValidationError as error:
        raise _invalid(_named(error)) from error
    return check(record)


def check(record: Record) -> Record:
    """Return the record if it keeps the rules of a row. Raises Invalid, which names every field that does not."""
    problems: dict[str, list[str]] = {}
    for name, message in _problems(record):
        problems.setdefault(name, []).append(message)
    if problems:
        raise _invalid(problems)
    return record


def _problems(record: Record) -> Iterator[tuple[str, str]]:
    try:
        line = to_json(record)
        size = len(line.encode())
    except (TypeError, ValueError) as error:
        yield "row", _("The row can't be written as JSON in UTF-8: %(error)s.") % {"error": error}
        return
    if size > MAX_BYTES:
        yield (
            "row",
            _("A row has at most %(max_bytes)s bytes of JSON. Shorten it.")
            % {"max_bytes": number_told(MAX_BYTES)},
        )
    if "\\u0000" in line:
        yield "row", _("The text has a NUL character, which can't be stored. Remove it.")
    if not record.question.strip():
        yield "question", _("Enter a question.")
    if len(record.question) > MAX_QUESTION:
        yield (
            "question",
            _("A question has at most %(max_question)s characters.")
            % {"max_question": number_told(MAX_QUESTION)},
        )
    if not (record.answer.strip() or record.sources or record.expected in EMPTY_ANSWERS):
        yield (
            "answer",
            _("Enter an answer or a source that contains it, or choose that no answer is expected."),
        )
    for at, step in enumerate(record.steps, start=1):
        if step.step != at:
            yield (
                "steps",
                _("Step %(at)s has the number %(step)s: steps count from 1.") % {"at": at, "step": step.step},
            )
    for at, source in enumerate(record.sources, start=1):
        if not source.quote.strip():
            yield "sources", _("Source %(at)s has no quote.") % {"at": at}
        if source.start < 0 or source.end < source.start or 0 < source.start == source.end:
            yield "sources", _("Source %(at)s ends before it starts.") % {"at": at}
        if source.page is not None and source.page < 1:
            yield (
                "sources",
                _("Source %(at)s has the page %(page)s: pages count from 1.")
                % {"at": at, "page": source.page},
            )
    if record.timestamp and not _is_time(record.timestamp):
        yield "timestamp", _("Write the time as ISO 8601, such as 2026-11-23T10:00:00Z.")
    names = [score.name for score in record.scores]
    if len(set(names)) != len(names):
        yield "scores", _("A score appears twice.")
    if any(not tag.strip() or len(tag) > 60 for tag in record.tags):
        yield "tags", _("A tag has 1 to 60 characters.")
    asked: set[str] = set()
    for at, message in enumerate(record.messages, start=1):
        asked.update(call.id for call in message.tool_calls)
        if message.tool_calls and message.role != "assistant":
            yield "messages", _("Message %(at)s calls a tool, which only the assistant can do.") % {"at": at}
        if message.role == "tool" and message.tool_call_id not in asked:
            yield "messages", _("Message %(at)s answers a call that no earlier message made.") % {"at": at}


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _named(error: ValidationError) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        place = [str(part) for part in problem["loc"] if not str(part).startswith("function-")]
        head = place[0] if place and place[0] in FIELDS else "row"
        where = ".".join(place)
        found.setdefault(head, []).append(f"{where}: {problem['msg']}." if where else f"{problem['msg']}.")
    return found


def _invalid(problems: Mapping[str, Sequence[str]]) -> Invalid:
    first = next(iter(problems.values()))[0]
    return Invalid("row_invalid", first, data={"fields": dict(problems)})
