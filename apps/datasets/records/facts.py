"""What a row tells of its making besides its record: turns, whether it came to its end, and its passage. Pure.

They stand in rows of REST and of the formats that keep everything (JSON Lines, CSV, Parquet, Hugging Face). They follow from
the record; where a file says otherwise (a row that somebody else's loop has made), ``Record.meta`` keeps what it says. Rows
that were asked about one passage have the same ``source_chunk_id``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apps.datasets.records.parts import EMPTY_ANSWERS
from apps.datasets.records.record import Record, from_values, to_values
from basics.errors import Invalid
from basics.texts import gettext as _

FACTS = ("iterations", "is_complete", "source_chunk_id")
QUESTIONS = "questions"
"""Key of an object that holds several questions about one passage; what stands beside it goes for each of them."""
_TYPES = {"iterations": int, "is_complete": bool, "source_chunk_id": str}


def facts_of(record: Record) -> dict[str, Any]:
    """Return ``iterations`` (turns of the loop that answered), ``is_complete`` and ``source_chunk_id`` ("" for none)."""
    kept = {name: record.meta[name] for name in FACTS if name in record.meta}
    chunk = next((s.chunk_id for s in record.sources if s.chunk_id is not None), None)
    return {
        "iterations": len(record.steps),
        "is_complete": bool(record.answer.strip()) or record.expected in EMPTY_ANSWERS,
        "source_chunk_id": "" if chunk is None else str(chunk),
    } | kept


def values_with_facts(record: Record) -> dict[str, Any]:
    """Return a record as JSON values, its facts beside its fields."""
    values = to_values(record)
    return {**values, **facts_of(record), "meta": {k: v for k, v in values["meta"].items() if k not in FACTS}}


def record_with_facts(values: Mapping[str, Any]) -> Record:
    """Return the record of JSON values with facts or without; one that does not follow from the record goes into ``meta``.

    Raises:
        Invalid: a field, or a fact, is wrong.
    """
    told = {name: _fact(name, values[name]) for name in FACTS if values.get(name) is not None}
    plain = {name: value for name, value in values.items() if name not in FACTS}
    record = from_values(plain)
    own = facts_of(record)
    if other := {name: value for name, value in told.items() if value != own[name]}:
        record = from_values({**to_values(record), "meta": {**record.meta, **other}})
    return record


def _fact(name: str, value: Any) -> Any:
    if name == "source_chunk_id" and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if type(value) is not _TYPES[name] or (isinstance(value, int) and value < 0):
        kinds = {
            "iterations": "a whole number from 0",
            "is_complete": "true or false",
            "source_chunk_id": "a text",
        }
        raise Invalid(
            "row_invalid",
            _("%(name)s is %(kinds)s.") % {"name": name, "kinds": kinds[name]},
            data={"fields": {name: [f"Send {kinds[name]}."]}},
        )
    return value


def questions_of(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of an object: itself, or each of its ``questions`` with what stands beside them.

    Raises:
        Invalid: ``questions`` is no list of objects, or is empty.
    """
    several = values.get(QUESTIONS)
    if several is None:
        yield dict(values)
        return
    if not isinstance(several, list) or not several or not all(isinstance(q, dict) for q in several):
        raise Invalid("row_invalid", _("“questions” is a list of objects, each with a question."))
    shared = {name: value for name, value in values.items() if name != QUESTIONS}
    for one in several:
        yield {**shared, **one}
