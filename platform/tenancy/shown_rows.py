"""Rows as one reader may see them: what they may not read is taken out of each row as it is fetched."""

from __future__ import annotations

from typing import Any, Self, TypeVar

from django.db.models import Model

from tenancy.actors import Actor
from tenancy.models import TenantQuerySet

M = TypeVar("M", bound=Model)


class ShownRows(TenantQuerySet[M]):
    """Rows that are for reading: what is withheld from ``reader`` is gone from them, so none may be saved whole."""

    reader: Actor | None = None

    @classmethod
    def of(cls, model: type[M], reader: Actor) -> Self:
        """Return the rows of a model that a reader may see."""
        rows = cls(model)
        rows.reader = reader
        return rows.visible_to(reader)

    def withhold(self, reader: Actor, rows: list[Any]) -> None:
        """Take out of fetched rows what the reader may not see; what is written here decides for every page and address."""
        raise NotImplementedError

    def _fetch_all(self) -> None:
        is_fresh = self._result_cache is None
        super()._fetch_all()
        if is_fresh and self.reader is not None:
            rows = [row for row in self._result_cache or () if isinstance(row, self.model)]
            if rows:
                self.withhold(self.reader, rows)

    def _clone(self) -> Self:
        copy: Self = super()._clone()  # type: ignore[misc]
        copy.reader = self.reader
        return copy
