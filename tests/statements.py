"""The statements that this process sends to the database, from whichever thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tenancy.database.cursors import BinaryCursor, ScopedCursor


@contextmanager
def statements_noted() -> Iterator[list[str]]:
    """Yield a list to which each statement is added as it is sent, with its values still apart.

    What opens and ends transactions isn't among them, nor what puts the scope in force: it travels with the next statement.
    """
    sent: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for cursor in (ScopedCursor, BinaryCursor):
            for name in ("execute", "executemany"):
                _watch(patch, cursor, name, sent)
        yield sent


def _watch(patch: pytest.MonkeyPatch, cursor: Any, name: str, sent: list[str]) -> None:
    original = getattr(cursor, name)

    def noted(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append(" ".join(str(query).split()))
        return original(self, query, *args, **kwargs)

    patch.setattr(cursor, name, noted)
