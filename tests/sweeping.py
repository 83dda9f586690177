"""Empty the test database after a test that commits, as Django's ``flush`` does, for what its few rows cost.

``flush`` truncates every table (a hundred, with six hundred indexes: each becomes a new file) and then sends
``post_migrate``, which raises all walls anew: half a second after a test that wrote twenty rows. Here one statement
finds the tables that hold rows, and those rows are deleted.
"""

from __future__ import annotations

from functools import cache
from graphlib import TopologicalSorter
from typing import Any

from django.core.management.color import no_style
from django.db import connection, transaction

from tenancy.database.base import as_login_role
from tenancy.fields import SET_NULL, TenantForeignKey
from tenancy.row_security import constraint_name, tenant_foreign_keys, tenant_models
from tests.databases import tenants_apart

# What migrate fills and every test finds.
_KEPT = {"django_content_type", "auth_permission"}
# Beyond this all tables are truncated: the dead rows of a big one would slow the searches of the next tests.
_MANY_ROWS = 2000


def sweep(*_: Any) -> None:
    """Delete every row but those of Django's own registers; sequences go on, as after ``flush``."""
    with as_login_role():
        tables = _tables()
        names = ", ".join(f'"{table}"' for table in tables)
        with transaction.atomic(), connection.cursor() as cursor:
            # As TRUNCATE does, wait for what a running server is writing: its row could point to one deleted here. Not for
            # ever: a test that failed may have left a worker that stands still in a transaction.
            cursor.execute("SET LOCAL lock_timeout = '120s'")
            cursor.execute(f"LOCK TABLE {names} IN EXCLUSIVE MODE")
            found = _found(cursor)
            if max(found.values(), default=0) >= _MANY_ROWS:
                for statement in connection.ops.sql_flush(no_style(), tables):
                    cursor.execute(statement)
            elif found:
                clears = [statement for table, statement in _clears() if table in found]
                deletes = [f'DELETE FROM "{table}"' for table in tables if table in found]
                cursor.execute("; ".join(clears + deletes))


def rows_left() -> dict[str, int]:
    """Return the tables that ``sweep`` would empty and how many rows each holds, up to the limit of ``_MANY_ROWS``."""
    with as_login_role(), connection.cursor() as cursor:
        return _found(cursor)


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


def _found(cursor: Any) -> dict[str, int]:
    """Return the tables that hold rows, and how many, up to the limit.

    The statement is prepared once for each connection: to read and plan it takes four times what it takes to run.
    """
    name = f"rows_found_{_MANY_ROWS}"
    cursor.execute("SELECT EXISTS (SELECT FROM pg_prepared_statements WHERE name = %s)", [name])
    if not cursor.fetchone()[0]:
        counts = (
            f"SELECT '{table}' AS name, (SELECT count(*) FROM (SELECT FROM \"{table}\" LIMIT {_MANY_ROWS}) r) AS n"
            for table in _tables()
        )
        cursor.execute(f"PREPARE {name} AS SELECT name, n FROM ({' UNION ALL '.join(counts)}) t WHERE n > 0")
    cursor.execute(f"EXECUTE {name}")
    return dict(cursor.fetchall())
