"""Statements that a sharded Postgres refuses, found while the tests run: rows that are locked across tenants.

``FOR UPDATE SKIP LOCKED`` on a tenant's table has to run in that tenant's scope; a sweep reads what is due everywhere without a
lock, and then locks in each workspace by itself.
"""

from __future__ import annotations

import re
from functools import cache, wraps
from typing import Any

from tenancy.database import cursors
from tenancy.database.cursors import scope_wanted

_NAMES = re.compile(r'(?:FROM|JOIN|UPDATE)\s+"?(\w+)', re.IGNORECASE)


class AcrossTenants(AssertionError):
    """A statement locks rows of several tenants at once."""


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


def watch() -> None:
    """Check every statement of this process from now on."""
    execute = cursors.ScopedCursor.execute

    @wraps(execute)
    def checked(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        if isinstance(query, str):
            check(query, scope_wanted())
        return execute(self, query, *args, **options)

    cursors.ScopedCursor.execute = checked  # type: ignore[method-assign]
