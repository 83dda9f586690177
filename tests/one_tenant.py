"""Statements that a sharded Postgres refuses or sends to every machine, found while the tests run.

Two rules. ``FOR UPDATE SKIP LOCKED`` on a tenant's table has to run in that tenant's scope: a sweep reads what is due
everywhere without a lock, and then locks in each workspace by itself. And each statement of the product on a tenant's table
says whose rows it means (``tests.routing``), unless ``ACROSS`` tells why it asks all of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any

from tenancy.database import cursors
from tenancy.database.cursors import LOGIN, scope_wanted
from tests.routing import tables_loose

ROOT = Path(__file__).resolve().parent.parent
_NAMES = re.compile(r'(?:FROM|JOIN|UPDATE)\s+"?(\w+)', re.IGNORECASE)
_PRODUCT = (str(ROOT / "apps"), str(ROOT / "platform"))
_BELOW = str(ROOT / "platform" / "tenancy" / "database")  # whoever asks stands above it

ACROSS: dict[str, str] = {}
"""Where the product asks all tenants at once, by "module" or "module:function", and why."""


class AcrossTenants(AssertionError):
    """A statement asks, or locks, rows of several tenants at once."""


@cache
def _tables() -> frozenset[str]:
    from tenancy.row_security import tenant_models

    return frozenset(m._meta.db_table for m in tenant_models())


def check(sql: str, scope: str) -> None:
    """Refuse a statement that skips locked rows of tenants' tables outside of one tenant's scope.

    Raises:
        AcrossTenants: with the tables.
    """
    if "SKIP LOCKED" not in sql or scope.isdecimal():
        return
    if found := _tables().intersection(_NAMES.findall(sql)):
        raise AcrossTenants(f"locks rows across tenants: {', '.join(sorted(found))}")


@lru_cache(maxsize=65536)
def loose(sql: str) -> tuple[str, ...]:
    """Return the tenants' tables of a statement of which it doesn't say whose rows it means."""
    return tuple(tables_loose(sql, _tables()))


def place() -> str:
    """Return "module:function" of the product's code that asks, "" where it is a test that does."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_PRODUCT) and not path.startswith(_BELOW):
            return f"{frame.f_globals['__name__']}:{frame.f_code.co_name}"
        if path.startswith(str(ROOT / "tests")) and path != __file__:
            return ""
        frame = frame.f_back
    return ""


def check_routed(sql: str) -> None:
    """Refuse a statement of the product that asks all tenants, at a place that isn't in ``ACROSS``.

    Raises:
        AcrossTenants: with the place and the tables.
    """
    found = loose(sql)
    if not found:
        return
    asker = place()
    if asker and asker not in ACROSS and asker.partition(":")[0] not in ACROSS:
        raise AcrossTenants(f"{asker} asks all tenants for {', '.join(found)}: {sql[:1000]}")


def _seen(query: Any) -> None:
    scope = scope_wanted()
    if scope == LOGIN:
        return
    sql = query if isinstance(query, str) else query.as_string(None) if hasattr(query, "as_string") else None
    if sql is not None:
        check(sql, scope)
        check_routed(sql)


def watch() -> None:
    """Check every statement of this process from now on."""
    for kind in (cursors.ScopedCursor, cursors.ScopedServerCursor, cursors.BinaryCursor, cursors.BinaryServerCursor):
        _checked(kind, "execute")
    _checked(cursors._Scoped, "executemany")
    _checked(cursors._Scoped, "stream")
    _checked(cursors._Scoped, "copy")


def _checked(kind: Any, name: str) -> None:
    sends: Callable[..., Any] = getattr(kind, name)

    @wraps(sends)
    def checked(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        _seen(query)
        return sends(self, query, *args, **options)

    setattr(kind, name, checked)
