"""Between a ``Record`` and the columns of a ``DatasetRow``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apps.datasets.models import DatasetRow
from apps.datasets.records.record import Record, from_values, hash_of, to_values

PLAIN = (
    "question",
    "answer",
    "type",
    "difficulty",
    "expected",
    "language",
    "rationale",
    "steps",
    "sources",
    "scores",
    "tags",
    "split",
)
"""Fields of a record that are columns of their own; the others stand in ``extra``."""
EXTRA = ("rejected", "messages", "tools", "timestamp", "meta")
QUALITY = "quality"
"""Where ``Record.meta`` has the weighted scores, 0 to 1."""


def record_of(row: DatasetRow) -> Record:
    """Return a row's content; its id is the row's, and its time, where it has brought none, that of the row."""
    values = (
        {name: getattr(row, name) for name in PLAIN}
        | {"timestamp": row.created_at.isoformat()}
        | dict(row.extra)
    )
    return replace(from_values(values), id=str(row.pk))


def record_columns(record: Record) -> dict[str, Any]:
    """Return the columns of a ``DatasetRow`` that hold a record, its hash among them."""
    values = to_values(record)
    quality = record.meta.get(QUALITY)
    return {
        **{name: values[name] for name in PLAIN},
        "extra": {name: values[name] for name in EXTRA if values[name]},
        "quality": quality if isinstance(quality, int | float) else None,
        "content_hash": hash_of(values),
    }
