"""Walls between tenants, raised in the database after every migrate: no wall, no grant.

For each ``TenantModel`` table: keys that contain the tenant (``tenancy.wide_keys``), row-level security enabled and forced, one policy for the application's role (its own
tenant, by the bare ``current_setting`` form, whose value the planner sees), one for the platform role (every row), the
composite foreign keys of ``TenantForeignKey``; and only then the rights to read and write it. A new table is walled
without its author doing anything, and one that is not walled cannot be used at all.

No role needs BYPASSRLS, so this runs on managed Postgres too. Needs PostgreSQL 16 or later (GRANT ... WITH SET).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import cache, partial
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connection, models

from tenancy.database.base import APP_ROLE, PLATFORM_ROLE, as_login_role
from tenancy.fields import CASCADE, SET_NULL, TenantForeignKey
from tenancy.models import TenantModel
from tenancy.upgrades.locks import waiting_long
from tenancy.upgrades.operations import has_rows, index_left, tables_with_rows
from tenancy.wide_keys import keys_widen, tables_wide, whole

POLICY = "tenant_isolation"
PLATFORM_POLICY = "platform_access"
PREDICATE = "tenant_id = nullif(current_setting('app.tenant_id', true), '')::bigint"
_POLICIES = ((POLICY, APP_ROLE, PREDICATE), (PLATFORM_POLICY, PLATFORM_ROLE, "true"))
# Tables of a schema of their own, which ``wall_statements`` has walled.
_BARE_ELSEWHERE = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname <> 'public'
  AND n.nspname NOT LIKE 'pg\\_%%' AND n.nspname <> 'information_schema'
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND 2 = (SELECT count(*) FROM pg_policies p
           WHERE p.schemaname = n.nspname AND p.tablename = c.relname AND p.policyname IN (%s, %s)))
ORDER BY 1
"""
_ACTION_CODES = {"CASCADE": "c", "RESTRICT": "r", "SET NULL": "n", "NO ACTION": "a"}

_functions: dict[str, tuple[str, frozenset[str]]] = {}


def register_function(signature: str, sql: str, *, tables: Iterable[str]) -> None:
    """Let ``row_security_apply`` create a function and give its use to the application's roles alone.

    For SECURITY DEFINER functions, which look past row-level security (an operator that is not leakproof cannot use
    its index under it): such a function states the tenant predicate itself and pins its search_path.

    Args:
        signature: ``name(type, ...)``.
        sql: a CREATE OR REPLACE FUNCTION statement.
        tables: tables that must exist first.
    """
    _functions[signature] = (sql, frozenset(tables))


def tenant_models() -> list[type[TenantModel]]:
    """Return every concrete, managed model that belongs to a tenant."""
    return [
        m
        for m in apps.get_models(include_auto_created=True)
        if issubclass(m, TenantModel) and m._meta.managed and not m._meta.proxy
    ]


def tenant_foreign_keys(model: type[models.Model]) -> list[TenantForeignKey]:
    """Return the fields of a model that need a composite constraint."""
    return [f for f in model._meta.local_fields if isinstance(f, TenantForeignKey)]


def is_of_an_owner(model: type[models.Model]) -> bool:
    """Tell whether each row belongs to another row of its tenant and goes with it, so that its tenant is there while it is."""
    return any(not f.null and f.db_on_delete == CASCADE for f in tenant_foreign_keys(model))


def constraint_name(model: type[models.Model], field: TenantForeignKey) -> str:
    """Return the composite constraint's name (PostgreSQL cuts names at 63 bytes)."""
    return f"{model._meta.db_table}_{field.column}_wall"[-63:]


def row_security_apply(connection: Any, *, contract: bool = False) -> None:
    """Bring keys, roles, policies, composite references and grants to what the models say. Idempotent.

    Args:
        connection: Django's.
        contract: no server of the version before runs, so change also what those can't live without.

    Raises:
        DatabaseError: the login role may not create roles; the statements an operator must run stand in docs/running.md.
    """
    with as_login_role(), connection.cursor() as cursor:
        roles_make(cursor)
        # Nobody has a right on tables without walls. Then all is one transaction, where each of a thousand statements
        # else is one, so that nobody waits long for a table.
        with nullcontext() if _used(cursor) else whole(connection):
            _apply(cursor, set(connection.introspection.table_names(cursor)), contract=contract)


def _apply(cursor: Any, existing: set[str], *, contract: bool) -> None:
    walled = [m for m in tenant_models() if m._meta.db_table in existing]
    tables = [m._meta.db_table for m in walled]
    # Who clears references when a row goes: our querysets, or the database where servers of the version before run.
    cleared = contract or not _used(cursor)
    free = tables if contract else _unused(cursor, tables)
    keys_widen(cursor, free)
    _secure(cursor, tables)
    wide = tables_wide(cursor)
    for table in _with_spare_key(cursor, wide.intersection(free)):
        _key_spare(cursor, table)
    bound = _bound(cursor)
    filled = cache(
        partial(tables_with_rows, cursor)
    )  # rows that come meanwhile only make a statement take longer
    for model in walled:
        for field in tenant_foreign_keys(model):
            _bind(cursor, model, field, bound=bound, filled=filled, wide=wide, cleared=cleared)
    _unbind(cursor, (m._meta.db_table for m in walled if is_of_an_owner(m)))
    rights: dict[str, list[str]] = {}
    for model in walled:
        rights.setdefault(_rights(model), []).append(model._meta.db_table)
    for right, of_tables in rights.items():
        _grant(cursor, of_tables, right)
    for model in walled:
        if model.append_only:
            _grant_clearing(cursor, model)
    _grant(cursor, _shared_tables(existing, walled), "SELECT, INSERT, UPDATE, DELETE")
    _grant(cursor, ["django_migrations"], "SELECT")  # "is everything migrated?"
    for signature, (sql, needed) in _functions.items():
        if needed <= existing:
            cursor.execute(sql)
            cursor.execute(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC")
            cursor.execute(f"GRANT EXECUTE ON FUNCTION {signature} TO {APP_ROLE}, {PLATFORM_ROLE}")
    cursor.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {APP_ROLE}, {PLATFORM_ROLE}")


def _unused(cursor: Any, tables: list[str]) -> list[str]:
    """Return the tables whose keys no server of the version before needs as they are.

    Those without a wall, which nobody has the right to use yet, and those whose primary key has ``tenant_id``: a unique
    index that came later is new to that version.
    """
    used = _used(cursor) - tables_wide(cursor)
    return [table for table in tables if table not in used]


def _used(cursor: Any) -> set[str]:
    """Return the tables that have a wall, so that a server may use them."""
    cursor.execute(
        "SELECT tablename FROM pg_policies WHERE schemaname = 'public' AND policyname = %s", [POLICY]
    )
    return {name for (name,) in cursor.fetchall()}


def _rights(model: type[TenantModel]) -> str:
    if model.read_only:
        return "SELECT"
    return "SELECT, INSERT" if model.append_only else "SELECT, INSERT, UPDATE, DELETE"


def _shared_tables(existing: set[str], walled: Iterable[type[models.Model]]) -> list[str]:
    """Tables of known models without a tenant; a table that no model knows gets no rights."""
    behind = {m._meta.db_table for m in walled}
    known = {m._meta.db_table for m in apps.get_models(include_auto_created=True)}
    return sorted((existing & known) - behind)


def wall_statements(table: str) -> Iterator[str]:
    """Yield what walls a new table that belongs to no model, with a column ``tenant_id``, and gives the rights to use it.

    Args:
        table: as SQL names it, with its schema.
    """
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
    for policy, role, predicate in _POLICIES:
        yield _policy(table, policy, role, predicate)
    yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {APP_ROLE}, {PLATFORM_ROLE}"


def walls_problem() -> str:
    """Return what is wrong with row-level security, "" where every tenant table has it and both roles can be taken."""
    tables = {m._meta.db_table for m in tenant_models()}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c WHERE c.relname = ANY(%s) AND c.relkind = 'r' "
            "AND c.relrowsecurity AND c.relforcerowsecurity AND 2 = (SELECT count(*) FROM pg_policies p "
            "WHERE p.schemaname = 'public' AND p.tablename = c.relname AND p.policyname IN (%s, %s))",
            [sorted(tables), POLICY, PLATFORM_POLICY],
        )
        missing = sorted(tables - {row[0] for row in cursor.fetchall()})
        cursor.execute(_BARE_ELSEWHERE, [POLICY, PLATFORM_POLICY])
        missing += [name for (name,) in cursor.fetchall()]
        cursor.execute(
            "SELECT count(*) FROM pg_roles WHERE rolname IN (%s, %s) AND NOT rolbypassrls "
            "AND NOT rolsuper AND pg_has_role(session_user, oid, 'SET')",
            [APP_ROLE, PLATFORM_ROLE],
        )
        roles = int(cursor.fetchone()[0])
    if missing:
        return f"no wall around: {', '.join(missing)}"
    return "" if roles == 2 else "the two roles are not set up correctly"


def roles_make(cursor: Any) -> None:
    """Create the two roles and let the login role become them; nothing happens where it is so already.

    Roles are the whole server's: two databases migrated at once (parallel tests) race here, and the loser retries.
    """
    for attempt in range(8):
        try:
            for role in (APP_ROLE, PLATFORM_ROLE):
                cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
                if not cursor.fetchone():
                    cursor.execute(f"CREATE ROLE {role} NOLOGIN")
                inherit = role == PLATFORM_ROLE  # migrations of the login role see every row
                cursor.execute(
                    """SELECT 1 FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
                       JOIN pg_roles u ON u.oid = m.member
                       WHERE r.rolname = %s AND u.rolname = current_user
                         AND m.set_option AND m.inherit_option = %s""",
                    [role, inherit],
                )
                if not cursor.fetchone():
                    # Two statements, since Citus tells its other machines only one option rightly.
                    cursor.execute(f"GRANT {role} TO CURRENT_USER WITH INHERIT {str(inherit).upper()}")
                    cursor.execute(f"GRANT {role} TO CURRENT_USER WITH SET TRUE")
            cursor.execute(f"GRANT USAGE ON SCHEMA public TO {APP_ROLE}, {PLATFORM_ROLE}")
            return
        except DatabaseError:
            if attempt == 7 or cursor.connection.info.transaction_status != 0:
                raise
            time.sleep(0.05 * 2**attempt)


def _secure(cursor: Any, tables: Iterable[str]) -> None:
    cursor.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relrowsecurity AND relforcerowsecurity"
    )
    secured = {name for (name,) in cursor.fetchall()}
    cursor.execute("SELECT tablename, policyname FROM pg_policies WHERE schemaname = 'public'")
    policies = set(cursor.fetchall())
    for table in tables:
        if table not in secured:
            cursor.execute(f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY')
        for policy, role, predicate in _POLICIES:
            if (table, policy) not in policies:
                cursor.execute(_policy(f'"{table}"', policy, role, predicate))


def _policy(table: str, policy: str, role: str, predicate: str) -> str:
    return f"CREATE POLICY {policy} ON {table} TO {role} USING ({predicate}) WITH CHECK ({predicate})"


def _bound(cursor: Any) -> dict[tuple[str, str], tuple[str, bool]]:
    """Return the action at deletion, as Postgres codes it, and whether it is validated, of each (table, foreign key)."""
    cursor.execute(
        """SELECT t.relname, n.conname, n.confdeltype, n.convalidated FROM pg_constraint n JOIN pg_class t ON t.oid = n.conrelid
           WHERE n.contype = 'f' AND t.relnamespace = 'public'::regnamespace"""
    )
    return {(table, name): (action, is_valid) for table, name, action, is_valid in cursor.fetchall()}


def _bind(
    cursor: Any,
    model: type[models.Model],
    field: TenantForeignKey,
    *,
    bound: dict[tuple[str, str], tuple[str, bool]],
    filled: Callable[[], set[str]],
    wide: set[str],
    cleared: bool,
) -> None:
    table, column = model._meta.db_table, field.column
    target = field.related_model._meta.db_table
    key = str(field.target_field.column)
    name = constraint_name(model, field)
    row = bound.get((table, name))
    wanted = [field.db_on_delete]
    if field.db_on_delete == SET_NULL:  # as tenancy.clearing does it, or still as Postgres does
        wanted = ["NO ACTION"] if cleared else [SET_NULL, "NO ACTION"]
    is_right = row is not None and row[0] in {_ACTION_CODES[w] for w in wanted}
    if row and is_right and row[1]:
        return
    is_filled = table in filled()
    if not is_right:
        if target not in wide:
            _key(cursor, target, key)
        action = wanted[0] + (f" ({column})" if wanted[0] == SET_NULL else "")
        # In one statement, so that there is no moment without a wall; rows are checked under a weaker lock below.
        cursor.execute(
            f'ALTER TABLE "{table}" '
            + (f'DROP CONSTRAINT "{name}", ' if row else "")
            + f'ADD CONSTRAINT "{name}" FOREIGN KEY (tenant_id, {column}) '
            f'REFERENCES "{target}" (tenant_id, {key}) ON DELETE {action}'
            + (" NOT VALID" if is_filled else "")
        )
    if is_filled or is_right:
        cursor.execute(f'ALTER TABLE "{table}" VALIDATE CONSTRAINT "{name}"')


def _unbind(cursor: Any, tables: Iterable[str]) -> None:
    """Drop the reference to the tenant of tables whose rows refer to it through their owner.

    It was asked for each row at the end of each transaction: 10 of the 22 us that an event of a run costs the database.
    """
    cursor.execute(
        """SELECT t.relname, n.conname FROM pg_constraint n JOIN pg_class t ON t.oid = n.conrelid
           WHERE n.contype = 'f' AND n.confrelid = 'tenancy_tenant'::regclass AND t.relname = ANY (%s) ORDER BY 1, 2""",
        [list(tables)],
    )
    for table, name in cursor.fetchall():
        cursor.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{name}"')


def _key(cursor: Any, table: str, key: str) -> None:
    """Give a table the unique key that references with a tenant need; writes continue while its index is built."""
    unique = f"{table}_tenant_key"[-63:]
    cursor.execute(
        "SELECT 1 FROM pg_constraint WHERE conname = %s AND conrelid = %s::regclass",
        [unique, f'public."{table}"'],
    )
    if cursor.fetchone():
        return
    left = index_left(cursor, unique)  # by a try that was killed, or stopped by a lock
    if left is None and (cursor.db.in_atomic_block or not has_rows(cursor, table)):
        cursor.execute(f'ALTER TABLE "{table}" ADD CONSTRAINT "{unique}" UNIQUE (tenant_id, {key})')
        return
    if left is None or not left[0]:
        with waiting_long(cursor.db):
            cursor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{unique}"')
            cursor.execute(f'CREATE UNIQUE INDEX CONCURRENTLY "{unique}" ON "{table}" (tenant_id, {key})')
    cursor.execute(f'ALTER TABLE "{table}" ADD CONSTRAINT "{unique}" UNIQUE USING INDEX "{unique}"')


def _with_spare_key(cursor: Any, tables: Iterable[str]) -> list[str]:
    """Return those of the tables that have a unique key for references besides a primary key that would do."""
    uniques = {f"{table}_tenant_key"[-63:]: table for table in tables}
    cursor.execute(
        "SELECT conname FROM pg_constraint WHERE contype = 'u' AND conname = ANY(%s)", [list(uniques)]
    )
    return sorted(uniques[name] for (name,) in cursor.fetchall())


def _key_spare(cursor: Any, table: str) -> None:
    """Let references point to the primary key, and drop the unique key that they had before it contained the tenant.

    In one transaction, so that there is no moment without a wall; rows are checked under a weaker lock afterwards.
    """
    unique = f"{table}_tenant_key"[-63:]
    cursor.execute(
        """SELECT f.conrelid::regclass::text, f.conname, pg_get_constraintdef(f.oid) FROM pg_constraint f
           JOIN pg_constraint u ON u.conindid = f.conindid AND u.contype = 'u'
           WHERE f.contype = 'f' AND u.conname = %s AND u.conrelid = %s::regclass ORDER BY 1, 2""",
        [unique, f'public."{table}"'],
    )
    references = cursor.fetchall()
    with whole(cursor.db):
        for child, name, _ in references:
            cursor.execute(f'ALTER TABLE {child} DROP CONSTRAINT "{name}"')
        cursor.execute(f'ALTER TABLE "{table}" DROP CONSTRAINT "{unique}"')
        for child, name, definition in references:
            told = definition.removesuffix(" NOT VALID")
            cursor.execute(f'ALTER TABLE {child} ADD CONSTRAINT "{name}" {told} NOT VALID')


def _grant(cursor: Any, tables: list[str], rights: str) -> None:
    if tables:
        names = ", ".join(f'"{t}"' for t in tables)
        cursor.execute(f"GRANT {rights} ON {names} TO {APP_ROLE}, {PLATFORM_ROLE}")


def _grant_clearing(cursor: Any, model: type[TenantModel]) -> None:
    """Let rows that nobody may change lose what they refer to, when that is deleted; nothing else of them."""
    for field in tenant_foreign_keys(model):
        if field.db_on_delete == SET_NULL:
            _grant(cursor, [model._meta.db_table], f'UPDATE ("{field.column}")')
