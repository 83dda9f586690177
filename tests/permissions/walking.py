"""One test for all rows of a room: the tenants are made once, and each row finds them as they were made.

A row a test would be a thousand tests whose set-up costs more than what they ask. Rows that stand on the same things
(a document, a file in its tree) share them: they are made once, and each row finds them untouched. Every row is tried,
and reported by its name when it fails, whatever the others did; one that passes is not reported, which costs as much as
asking a small page. `make test-fast` tries one row in four.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import pytest
from django.db import connection, transaction
from django.test import Client

from tenancy.models import TenantModel
from tests.factories import make_space
from tests.nightly import FAST
from tests.permissions.rows import Row, room_of
from tests.permissions.world import Side

Check = Callable[..., None]
Sides = dict[str, Side]


class Ground(NamedTuple):
    """What a row stands on: its ids' rows, of one side and for a role, and what changes them before it is called."""

    of: str
    role: str
    labels: tuple[str, ...]
    before: Callable[[Side, str], None] | None

    def make(self, sides: Sides) -> None:
        side = sides[self.of]
        if self.before is not None:
            self.before(side, self.role)
        for label in self.labels:
            side.row(label, self.role)


class _Case(NamedTuple):
    room: str
    title: str
    given: Mapping[str, Any]
    ground: Ground | None = None


def each_row(
    rows: Iterable[Row], *, of: str = "", role: Callable[[Row], str] = lambda row: "owner"
) -> Callable[[Check], Check]:
    """Make of a check of one ``row`` a test for each room.

    The check's sides (``mine``, ``theirs``) are fixtures, handed to it as new copies; it is undone in the database after
    each row.

    Args:
        of: the side of which the check finds the row's ids made and changed (``Row.before``); "" = it makes its own.
        role: for whom.
    """
    return _each([_Case(room_of(row), str(row), {"row": row}, _ground(row, of, role)) for row in rows])


def _ground(row: Row, of: str, role: Callable[[Row], str]) -> Ground | None:
    return Ground(of, role(row), tuple(sorted(set(row.ids.values()))), row.before) if of else None


def each_page(names: str, cases: Iterable[Any]) -> Callable[[Check], Check]:
    """Make of a check of one page of the admin a test for each app, as ``each_row`` does.

    Each side has a row of every model that is asked for, made once for all. Pages are drawn without the list of apps.

    Args:
        names: of the check's parameters that a case gives, with commas between them; the first one is ``model``.
        cases: a model, or a tuple of as many values as there are names.
    """
    walk = _each([_page(names.split(","), case) for case in cases])
    return lambda check: pytest.mark.usefixtures("no_list_of_apps")(walk(check))


def _page(names: list[str], case: Any) -> _Case:
    values: tuple[Any, ...] = case if isinstance(case, tuple) else (case,)
    room = values[0]._meta.app_label
    return _Case(room, "-".join(map(_title, values)), dict(zip(names, values, strict=True)))


def _title(value: Any) -> str:
    if hasattr(value, "_meta"):
        return str(value._meta.label)
    return str(getattr(value, "__name__", value))


def _each(cases: list[_Case]) -> Callable[[Check], Check]:
    rooms: dict[str, list[_Case]] = {}
    for case in cases[::4] if FAST else cases:
        rooms.setdefault(case.room, []).append(case)

    def decorate(check: Check) -> Check:
        names = [name for name in inspect.signature(check).parameters if name not in cases[0].given]

        @wraps(check)
        def test(room: str, subtests: pytest.Subtests, **fixtures: Any) -> None:
            sides = {name: side for name, side in fixtures.items() if isinstance(side, Side)}
            clients = {name: client for name, client in fixtures.items() if isinstance(client, Client)}
            assert len(sides) + len(clients) == len(fixtures), (
                "anything else could carry one case into the next"
            )
            for side in sides.values():
                _prepare(side, rooms[room])
            for ground, here in _by_ground(rooms[room]):
                with _named(f"ground of {here[0].title}", subtests), undone():
                    made = _ground_made(sides, ground)
                    for case in here:
                        with _named(case.title, subtests), undone():
                            found = pickle.loads(made)  # noqa: S301 - made here
                            found |= {name: _copied(client) for name, client in clients.items()}
                            check(**case.given, **found)

        keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        given = [inspect.Parameter(name, keyword) for name in ("room", "subtests", *names)]
        test.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
        del test.__wrapped__
        marked: Check = pytest.mark.parametrize("room", list(rooms))(test)
        return marked

    return decorate


def _by_ground(cases: list[_Case]) -> Iterable[tuple[Ground | None, list[_Case]]]:
    grounds: dict[Ground | None, list[_Case]] = defaultdict(list)
    for case in cases:
        grounds[case.ground].append(case)
    return grounds.items()


def _ground_made(sides: Sides, ground: Ground | None) -> bytes:
    """Return new copies of the sides, standing on it, to be read back for each case: copying takes several times as long."""
    if ground is None:
        return pickle.dumps(sides)
    copies = pickle.loads(pickle.dumps(sides))  # noqa: S301 - made here
    ground.make(copies)
    return pickle.dumps(copies)


@contextmanager
def _named(title: str, subtests: pytest.Subtests) -> Iterator[None]:
    """Report what fails in the block under its name, and go on after it."""
    try:
        yield
    except Exception as failure:
        with subtests.test(title):
            raise failure


def _prepare(side: Side, cases: list[_Case]) -> None:
    side.people.everyone()
    side.sign_in_everyone()
    make_space()  # of every document and passage
    for case in cases:
        model = case.given.get("model")
        if model is not None and issubclass(model, TenantModel):
            side.row(model._meta.label, "owner")


def _copied(client: Client) -> Client:
    """Return a browser with the same cookies, of which the other one learns nothing."""
    other = copy.copy(client)
    other.cookies = copy.deepcopy(client.cookies)
    return other


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
