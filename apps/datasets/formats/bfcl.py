"""The Berkeley Function Calling Leaderboard: read only. Each row is a request, the functions, and the calls that are right.

Layout: github.com/ShishirPatil/gorilla, berkeley-function-call-leaderboard, ``bfcl_eval/data``: lines with ``id``, ``question``
(turns of messages) and ``function``; the right calls stand in a file of the same name under ``possible_answer``, with every
allowed value of each argument. A ZIP brings both; lines alone must have ``ground_truth`` beside the question. Categories of
several turns run against programs of the leaderboard, so that they cannot be read as rows.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.archive import archive_open, member_open, members
from apps.datasets.formats.base import ReadOnly, RowError
from apps.datasets.formats.lines import objects, read_object
from apps.datasets.formats.openai_chat import message_in
from apps.datasets.records.parts import Behaviour, RowType, ToolCall, ToolSpec, TraceMessage
from apps.datasets.records.record import Record, check
from basics.errors import Invalid
from basics.texts import gettext as _

ALLOWED = "allowed_arguments"
"""Where ``Record.meta`` has, per call in order, the allowed values of each argument; "" in a list: it may be left out."""
ANSWERS = "possible_answer"
_SCHEMA = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


class Bfcl(ReadOnly):
    """Requests with the function calls that answer them."""

    name = "bfcl"
    title = "BFCL"
    purpose = gettext_noop(
        "Requests with the correct function calls. Import only: a ZIP of questions and possible answers."
    )
    suffix = ".zip"
    media_type = "application/zip"

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield a record for each request."""
        if not zipfile.is_zipfile(path):
            with path.open("rb") as file:
                yield from _rows(file, {}, "")
            return
        with archive_open(path) as archive:
            names = [n for end in (".json", ".jsonl") for n in members(archive, end)]
            questions = [n for n in names if ANSWERS not in PurePosixPath(n).parts]
            if not questions:
                raise Invalid("file_unreadable", _("The archive has no question file (.json or .jsonl)."))
            for name in questions:
                stem = PurePosixPath(name).stem
                right: dict[str, Any] = {}
                for other in names:
                    if other not in questions and PurePosixPath(other).stem == stem:
                        with member_open(archive, other) as file:
                            right |= _answers(file)
                with member_open(archive, name) as file:
                    yield from _rows(file, right, name)


def _answers(file: Any) -> dict[str, Any]:
    """Return the right calls by the id of their question; lines that are none are missed with their question."""
    found: dict[str, Any] = {}

    def keep(values: Mapping[str, Any]) -> Record:
        found[str(values["id"])] = values["ground_truth"]
        return Record("")

    for number, text in objects(file):
        if not isinstance(text, RowError):
            read_object(number, text, keep)
    return found


def _rows(file: Any, right: Mapping[str, Any], part: str) -> Iterator[Record | RowError]:
    for number, text in objects(file):
        if isinstance(text, RowError):
            yield text
        else:
            yield read_object(number, text, lambda values: _record(values, right), part)


def _record(values: Mapping[str, Any], right: Mapping[str, Any]) -> Record:
    name = str(values["id"])
    turns = values["question"]
    if len(turns) != 1:
        raise Invalid(
            "row_invalid",
            _("Only single-turn requests can be read; multi-turn ones need BFCL's own programs."),
        )
    asked = [message_in(message) for message in turns[0]]
    user = [message.content for message in asked if message.role == "user"]
    if not user:
        raise Invalid("row_invalid", _("There is no user message, so there is no question."))
    functions = values["function"]
    tools = tuple(_tool(spec) for spec in ([functions] if isinstance(functions, Mapping) else functions))
    truth = values.get("ground_truth", right.get(name))
    common: dict[str, Any] = {"question": user[-1], "id": name, "tools": tools, "tags": ("bfcl",)}
    if truth is None and "irrelevance" not in name:
        raise Invalid(
            "row_invalid",
            _("The correct calls are missing: import a ZIP that also has the folder possible_answer."),
        )
    if not truth:
        # No function fits: the right behaviour is to call none.
        behaviour: dict[str, Any] = {"type": RowType.UNANSWERABLE, "expected": Behaviour.ABSTAIN}
        return check(Record(**common, **behaviour, messages=tuple(asked) if len(asked) > 1 else ()))
    wanted = [(call, dict(arguments)) for one in truth for call, arguments in one.items()]
    calls = tuple(
        ToolCall(
            f"call_{n}",
            call,
            {key: choices[0] for key, choices in arguments.items() if choices and choices[0] != ""},
        )
        for n, (call, arguments) in enumerate(wanted)
    )
    return check(
        Record(
            **common,
            answer="\n".join(_shown(call) for call in calls),
            messages=(*asked, TraceMessage("assistant", "", calls)),
            meta={ALLOWED: [arguments for _, arguments in wanted]},
        )
    )


def _shown(call: ToolCall) -> str:
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"


def _tool(spec: Mapping[str, Any]) -> ToolSpec:
    schema: Any = _schema(spec.get("parameters") or {})
    return ToolSpec(spec["name"], spec.get("description") or "", schema)


def _schema(value: Any) -> Any:
    """Return a schema in the words of JSON Schema: BFCL names some types as Python does."""
    if isinstance(value, Mapping):
        return {
            name: _SCHEMA.get(part, part) if name == "type" and isinstance(part, str) else _schema(part)
            for name, part in value.items()
        }
    return [_schema(part) for part in value] if isinstance(value, list) else value
