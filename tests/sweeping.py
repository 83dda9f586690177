"""Empty the test database after a test that commits, as Django's ``flush`` does, for what its few rows cost.

``flush`` truncates every table (a hundred, with six hundred indexes: each becomes a new file) and then sends
``post_migrate``, which raises all walls anew: half a second after a test that wrote twenty rows. Here one statement
finds the tables that hold rows, and those rows are deleted: over a connection of the sweep's own, which stays open. On a
new one Postgres spends 80 ms on reading its catalog of all tables, on the plan of that statement, and on one for each
foreign key.
"""

from __future__ import annotations

import time
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

import psycopg
from django.core.management.color import no_style
from django.db import InterfaceError, InternalError, OperationalError, connection, connections

from tenancy.database.base import as_login_role
from tenancy.fields import SET_NULL, TenantForeignKey
from tenancy.row_security import constraint_name, tenant_foreign_keys, tenant_models
from tests.databases import tenants_apart
from tests.servers import database_url

# What migrate fills and every test finds.
_KEPT = {"django_content_type", "auth_permission"}
# Beyond this all tables are truncated: the dead rows of a big one would slow the searches of the next tests.
_MANY_ROWS = 2000
# All that points to a row goes with it, so nobody has to ask a hundred tables who points to a workspace. Set for a whole
# connection: each change makes Postgres plan everything again. On a server that isn't ours (DATABASE_URL) nobody may set
# it, and the order of the deletions keeps every key.
_UNASKED = """SELECT set_config('session_replication_role', 'replica', false)
              WHERE has_parameter_privilege('session_replication_role', 'SET')"""
# As DISCARD ALL does, which would also forget what is prepared and planned.
_RESET = "CLOSE ALL; RESET ROLE; RESET ALL; UNLISTEN *; SELECT pg_advisory_unlock_all()"
_PATIENCE_S, _PAUSE_S, _HELD_MS = 120.0, 0.02, 500
_lines: dict[str, psycopg.Connection[Any]] = {}


def after_commits(*_: Any) -> None:
    """Leave the next test what this one found: an empty database, and a connection on which nothing is set.

    Django would open another connection for the next test: see above what that takes.
    """
    for one in connections.all(initialized_only=True):
        if one.connection is None:
            continue
        is_plain = one.alias == connection.alias and one.get_autocommit() and not one.in_atomic_block
        if not (is_plain and one.is_usable()):
            one.close()
            continue
        with as_login_role(), one.cursor() as cursor:
            cursor.execute(_RESET)
    sweep()


def constraints_are_to_check(one: Any) -> bool:
    """Check what a commit would check, before a test is rolled back, in one statement instead of Django's three.

    Args:
        one: the test's connection; one that the test has ended, or broken, has nothing to check.

    Returns:
        False: nothing is left for Django to check.

    Raises:
        DatabaseError: the test's rows could not be committed.
    """
    if one.needs_rollback or one.connection is None:
        return False
    try:
        # Not deferred again, as Django would do it: the rollback that follows takes it back.
        with one.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except (OperationalError, InterfaceError, InternalError):
        pass  # the connection has ended, or the transaction had failed already
    return False


def sweep() -> None:
    """Delete every row but those of Django's own registers; sequences go on, as after ``flush``.

    As TRUNCATE does, it waits for what a running server is writing: its row could point to one deleted here. Not for ever:
    a test that failed may have left a worker that stands still in a transaction. And not with tables in hand, but for those
    that TRUNCATE takes from who reads them: who writes another one first and one of these next would wait for it in turn.
    """
    line, until = _line(), time.monotonic() + _PATIENCE_S
    while True:
        try:
            with line.transaction():
                line.execute(f"SET LOCAL lock_timeout = '{_HELD_MS}ms'; {_locked()}")
                _empty(line)
            return
        except psycopg.errors.LockNotAvailable:
            if time.monotonic() > until:
                raise
        time.sleep(_PAUSE_S)


@cache
def _locked() -> str:
    names = ", ".join(f'"{table}"' for table in _tables())
    return f"LOCK TABLE {names} IN EXCLUSIVE MODE NOWAIT"


def _empty(line: psycopg.Connection[Any]) -> None:
    found = _found(line)
    if max(found.values(), default=0) >= _MANY_ROWS:
        for statement in connection.ops.sql_flush(no_style(), _tables()):
            line.execute(statement)
    elif found:
        clears = [statement for table, statement in _clears() if table in found]
        deletes = [f'DELETE FROM "{table}"' for table in _tables() if table in found]
        line.execute("; ".join(clears + deletes))


def rows_left() -> dict[str, int]:
    """Return the tables that ``sweep`` would empty and how many rows each holds, up to the limit of ``_MANY_ROWS``."""
    return _found(_line())


def _line() -> psycopg.Connection[Any]:
    """Return the sweep's own connection to the database that tests use now; its role is the one that logs in."""
    url = database_url()
    if url not in _lines or not _is_usable(_lines[url]):
        while _lines:  # of another database, which its test may want to drop
            _lines.popitem()[1].close()
        _lines[url] = psycopg.connect(url, autocommit=True)
        _lines[url].execute(_UNASKED)
    return _lines[url]


def _is_usable(line: psycopg.Connection[Any]) -> bool:
    try:
        line.execute("SELECT 1")
    except psycopg.OperationalError:  # tests cut all connections, to see what the product does
        return False
    return True


def restart_ids() -> None:
    """Empty the database, of what a run that was killed has left too, and let its ids begin at 1 again."""
    sweep()
    with as_login_role():
        sequences = [s for s in connection.introspection.sequence_list() if s["table"] in _tables()]
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_by_name_sql(no_style(), sequences):
                cursor.execute(statement)
    tenants_apart()


@cache
def _tables() -> tuple[str, ...]:
    """Return the tables of all models, a table before those its rows may not outlive."""
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    order = TopologicalSorter[str]({name: set() for name in sorted(set(names) - _KEPT)})
    with connection.cursor() as cursor:
        # Keys that are checked at once, not at commit, and those that carry a deletion on: to rows that such a key holds.
        cursor.execute(
            """SELECT child.relname, parent.relname FROM pg_constraint c
               JOIN pg_class child ON child.oid = c.conrelid JOIN pg_class parent ON parent.oid = c.confrelid
               WHERE c.contype = 'f' AND c.confdeltype IN ('a', 'r', 'c') AND NOT c.condeferred AND child.oid <> parent.oid
                 AND NOT c.conname = ANY(%s)""",
            [[constraint_name(field.model, field) for field in _cleared()]],
        )
        for child, parent in cursor.fetchall():
            order.add(parent, child)
    return tuple(order.static_order())


def _cleared() -> list[TenantForeignKey]:
    fields = [field for model in tenant_models() for field in tenant_foreign_keys(model)]
    return [field for field in fields if field.db_on_delete == SET_NULL]


@cache
def _clears() -> tuple[tuple[str, str], ...]:
    """Return the tables with references that are cleared when a row goes, and the statements that clear all of them.

    Some lead in circles, so that no order of tables would do.
    """
    return tuple(
        (table, f'UPDATE "{table}" SET "{field.column}" = NULL WHERE "{field.column}" IS NOT NULL')
        for field in _cleared()
        for table in [field.model._meta.db_table]
    )


def _found(line: psycopg.Connection[Any]) -> dict[str, int]:
    """Return the tables that hold rows, and how many, up to the limit.

    The statement is prepared: to read and plan it takes four times what it takes to run.
    """
    counts = (
        f"SELECT '{table}' AS name, (SELECT count(*) FROM (SELECT FROM \"{table}\" LIMIT {_MANY_ROWS}) r) AS n"
        for table in _tables()
    )
    statement = f"SELECT name, n FROM ({' UNION ALL '.join(counts)}) t WHERE n > 0"
    return dict(line.execute(statement.encode(), prepare=True).fetchall())
