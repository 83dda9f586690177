"""One test for all rows of a room: the tenants are made once, and each row finds them as they were made.

A row a test would be a thousand tests whose set-up costs more than what they ask. Every row is tried, and reported by
its name when it fails, whatever the others did.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps

import pytest
from django.db import connection, transaction

from tests.permissions.rows import Row, room_of
from tests.permissions.world import Side

Check = Callable[..., None]


def each_row(rows: Iterable[Row]) -> Callable[[Check], Check]:
    """Make of a check of one ``row`` a test for each room.

    The check's sides (``mine``, ``theirs``) are fixtures, handed to it as new copies; it is undone in the database after
    each row.
    """
    rooms: dict[str, list[Row]] = {}
    for row in rows:
        rooms.setdefault(room_of(row), []).append(row)

    def decorate(check: Check) -> Check:
        asked = inspect.signature(check)
        names = [name for name in asked.parameters if name != "row"]

        @wraps(check)
        def test(room: str, subtests: pytest.Subtests, **sides: Side) -> None:
            for side in sides.values():
                side.people.everyone()
                side.sign_in_everyone()
            as_made = pickle.dumps(sides)  # read back for each row: copying them takes several times as long
            for row in rooms[room]:
                with subtests.test(str(row)), undone():
                    check(row, **pickle.loads(as_made))  # noqa: S301 - made here

        keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        given = [inspect.Parameter(name, keyword) for name in ("room", "subtests", *names)]
        test.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
        del test.__wrapped__
        marked: Check = pytest.mark.parametrize("room", list(rooms))(test)
        return marked

    return decorate


@contextmanager
def undone() -> Iterator[None]:
    """Take back what the block wrote, having checked what a commit would check."""
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]  # as the outer one: durable blocks may be inside
    with block:
        try:
            yield
            # As connection.check_constraints(), which would then let go again: here the rollback does.
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        finally:
            transaction.set_rollback(True)
