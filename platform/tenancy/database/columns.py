"""Models from statements that are written by hand: for reads on the way to an answer's first word.

There the ORM's own work is felt: making a join of four tables takes it longer than Postgres needs to answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models

M = TypeVar("M", bound=models.Model)


class Columns(Generic[M]):
    """All columns of a table in the SELECT or RETURNING of a statement; ``str()`` is their list.

    Args:
        model: whose table.
        alias: what the statement calls the table.
    """

    def __init__(self, model: type[M], alias: str) -> None:
        self._model = model
        fields = model._meta.concrete_fields
        self._names = [field.attname for field in fields]
        self._sql = ", ".join(f'{alias}."{field.column}"' for field in fields)
        self._converted = [(at, field) for at, field in enumerate(fields) if hasattr(field, "from_db_value")]

    def __str__(self) -> str:
        return self._sql

    def take(self, values: Iterator[Any]) -> M:
        """Return the model of the next columns of a row, and leave those behind them."""
        found = list(islice(values, len(self._names)))
        for at, field in self._converted:
            found[at] = converted(field, found[at])
        return self._model.from_db(DEFAULT_DB_ALIAS, self._names, found)


def converted(field: Any, value: Any) -> Any:
    """Return a value that comes from the database as the ORM gives it."""
    convert = getattr(field, "from_db_value", None)
    return value if convert is None else convert(value, None, connection)
