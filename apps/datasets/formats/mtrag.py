"""MTRAG: read only. Conversations over passages, one row for each turn, with the turns before it.

Layout: github.com/IBM/mt-rag-benchmark, ``human/generation_tasks``: lines with ``task_id``, ``input`` (what was said, the question
last), ``targets`` (the answer), ``contexts`` (the passages it rests on) and ``answerability``. The files write NaN, which is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_noop

from apps.datasets.formats.base import ReadOnly, RowError
from apps.datasets.formats.lines import objects, read_object
from apps.datasets.records.parts import Behaviour, RecordSource, RowType, TraceMessage
from apps.datasets.records.record import Record, check
from basics.errors import Invalid
from basics.texts import gettext as _

_SPEAKERS = {"user": "user", "agent": "assistant"}
_NO_ANSWER = ("UNANSWERABLE", "CONVERSATIONAL")
MAX_TAG = 60


class Mtrag(ReadOnly):
    """Turns of conversations with the passages that their answers rest on."""

    name = "mtrag"
    title = "MTRAG"
    purpose = gettext_noop("Turns of conversations about passages, as in IBM's benchmark. Import only.")
    suffix = ".jsonl"
    media_type = "application/x-ndjson"

    def read(self, path: Path) -> Iterator[Record | RowError]:
        """Yield a record for each turn."""
        with path.open("rb") as file:
            for number, text in objects(file):
                yield text if isinstance(text, RowError) else read_object(number, text, _record)


def _record(values: Mapping[str, Any]) -> Record:
    said = [_message(part) for part in values["input"]]
    if not said or said[-1].role != "user":
        raise Invalid("row_invalid", _("The last message must be the user's question."))
    answer = str(values["targets"][0]["text"])
    known = {str(word).upper() for word in _list(values.get("answerability"))}
    is_unanswerable = "UNANSWERABLE" in known
    tags = ("mtrag", *(str(word).lower()[:MAX_TAG] for word in sorted(known)))
    sources = (
        ()
        if known.intersection(_NO_ANSWER)
        else tuple(_source(c, values) for c in values.get("contexts") or ())
    )
    has_more = len(said) > 1
    kind: Any = RowType.MULTI_TURN if has_more else ""
    return check(
        Record(
            question=said[-1].content,
            answer=answer,
            id=str(values["task_id"]),
            type=RowType.UNANSWERABLE if is_unanswerable else kind,
            expected=Behaviour.ABSTAIN if is_unanswerable else Behaviour.ANSWER,
            sources=sources,
            tags=tags,
            messages=(*said, TraceMessage("assistant", answer)) if has_more else (),
            meta={"turn": values["turn"], "conversation": str(values.get("conversation_id", ""))}
            if isinstance(values.get("turn"), int)
            else {},
        )
    )


def _message(part: Mapping[str, Any]) -> TraceMessage:
    role: Any = _SPEAKERS.get(part["speaker"])
    if role is None:
        raise Invalid(
            "row_invalid",
            _("A speaker must be user or agent, not “%(part)s”.") % {"part": str(part["speaker"])[:40]},
        )
    return TraceMessage(role, str(part["text"]))


def _source(context: Mapping[str, Any], values: Mapping[str, Any]) -> RecordSource:
    return RecordSource(
        document=str(context.get("title") or context["document_id"]),
        quote=str(context["text"]),
        collection=str(values.get("collection") or ""),
    )


def _list(value: Any) -> list[Any]:
    """Return a list; NaN stands for an empty one."""
    return value if isinstance(value, list) else []
