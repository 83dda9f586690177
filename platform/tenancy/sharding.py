"""What a Postgres that is sharded by tenant (Citus) asks of the schema, read from the catalog of any Postgres.

A tenant's table has a column ``tenant_id``; all others are shared, and become reference tables there.
"""

from __future__ import annotations

from collections.abc import Collection
from graphlib import TopologicalSorter
from typing import Any

from django.db.migrations.recorder import MigrationRecorder

ROUTINES = {
    "audit_seal": "seals what one workspace's transaction wrote, under that workspace's lock",
    "audit_seal_new": "trigger: calls audit_seal for the row that was inserted",
    "audit_unsealed": "trigger: changes the row that is inserted, no table",
    "budget_settle": "trigger: charges the budgets of the workspace of the row that was inserted",
    "collections_identifier_hits": "reads by the tenant of the setting that row-level security reads",
    "datasets_rows_found": "reads by the tenant of the setting that row-level security reads",
    "vector_graphs_follow": "trigger: writes the graphs of the workspace of the rows that were inserted or deleted",
}
"""Functions of triggers on tenants' tables and SECURITY DEFINER functions, and why each touches one tenant only.

On Citus triggers need ``citus.enable_unsafe_triggers``, and a function that asks tenants' tables has to run where the shard is.
"""

_TENANTS = """tenants AS (
    SELECT t.oid, t.relname, a.attnum, a.attnotnull FROM pg_class t
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
    WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'p'))"""
_NO_KEY = f"""WITH {_TENANTS}
SELECT t.relname FROM tenants t
WHERE NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = t.oid AND x.indisprimary
                  AND t.attnum = ANY ((x.indkey::int2[])[0:x.indnkeyatts - 1])) ORDER BY 1"""  # noqa: S608
_NARROW = f"""WITH {_TENANTS}
SELECT t.relname, i.relname FROM tenants t JOIN pg_index x ON x.indrelid = t.oid JOIN pg_class i ON i.oid = x.indexrelid
WHERE (x.indisunique OR x.indisexclusion) AND NOT x.indisprimary
    AND NOT t.attnum = ANY ((x.indkey::int2[])[0:x.indnkeyatts - 1]) ORDER BY 1, 2"""  # noqa: S608
_NULLABLE = f"WITH {_TENANTS} SELECT relname FROM tenants WHERE NOT attnotnull ORDER BY 1"  # noqa: S608
_REFERENCES = f"""WITH {_TENANTS}
SELECT f.conrelid::regclass::text, f.conname, pg_get_constraintdef(f.oid), child.oid IS NOT NULL,
    coalesce((SELECT true FROM generate_subscripts(f.conkey, 1) n
              WHERE f.conkey[n] = child.attnum AND f.confkey[n] = parent.attnum), false)
FROM pg_constraint f JOIN tenants parent ON parent.oid = f.confrelid LEFT JOIN tenants child ON child.oid = f.conrelid
WHERE f.contype = 'f' ORDER BY 1, 2"""  # noqa: S608
_SETS = f"""WITH {_TENANTS}
SELECT f.conrelid::regclass::text, f.conname FROM pg_constraint f
JOIN tenants child ON child.oid = f.conrelid JOIN tenants parent ON parent.oid = f.confrelid
WHERE f.contype = 'f' AND (f.confdeltype IN ('n', 'd') OR f.confupdtype IN ('n', 'd', 'c')) ORDER BY 1, 2"""  # noqa: S608
_TRIGGERS = f"""WITH {_TENANTS}
SELECT t.relname, g.tgname, p.proname FROM pg_trigger g JOIN tenants t ON t.oid = g.tgrelid
JOIN pg_proc p ON p.oid = g.tgfoid WHERE NOT g.tgisinternal ORDER BY 1, 2"""  # noqa: S608
_DEFINERS = """
SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') ORDER BY 1"""
_TABLES = f"""WITH {_TENANTS}
SELECT c.relname, t.oid IS NOT NULL FROM pg_class c LEFT JOIN tenants t ON t.oid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> %s ORDER BY 1"""  # noqa: S608
_ALL_REFERENCES = """
SELECT f.conrelid::regclass::text, f.confrelid::regclass::text, f.conname, pg_get_constraintdef(f.oid)
FROM pg_constraint f WHERE f.contype = 'f' AND f.connamespace = 'public'::regnamespace ORDER BY 1, 3"""
_TRIGGERS_TOLD = f"""WITH {_TENANTS}
SELECT t.relname, g.tgname, pg_get_triggerdef(g.oid) FROM pg_trigger g JOIN tenants t ON t.oid = g.tgrelid
WHERE NOT g.tgisinternal ORDER BY 1, 2"""  # noqa: S608


def breaches(cursor: Any) -> list[str]:
    """Return what keeps the schema from being sharded, in words; empty when nothing does.

    Args:
        cursor: of any role: only the catalog is read.
    """

    def rows(sql: str) -> list[tuple[Any, ...]]:
        cursor.execute(sql)
        return list(cursor.fetchall())

    found = [f"{table}: its primary key lacks tenant_id, or it has none" for (table,) in rows(_NO_KEY)]
    found += [f"{table}: the unique index {name} lacks tenant_id" for table, name in rows(_NARROW)]
    found += [f"{table}: tenant_id may be empty" for (table,) in rows(_NULLABLE)]
    for table, name, definition, is_tenants, has_tenant in rows(_REFERENCES):
        if not is_tenants:
            found.append(f"{table}: {name} refers to a tenant's table from a shared one")
        elif not has_tenant:
            found.append(f"{table}: {name} lacks tenant_id: {definition}")
    found += [f"{table}: {name} changes rows when what they refer to goes" for table, name in rows(_SETS)]
    found += [
        f"{table}: the trigger {name} calls {routine}, and nothing tells why that touches one tenant only"
        for table, name, routine in rows(_TRIGGERS)
        if routine not in ROUTINES
    ]
    found += [
        f"{routine} is SECURITY DEFINER, and nothing tells why it touches one tenant only"
        for (routine,) in rows(_DEFINERS)
        if routine not in ROUTINES
    ]
    return found


def distribution(cursor: Any, *, leave: Collection[str] = ()) -> list[str]:
    """Return the statements that distribute the schema on Citus, in their order.

    Shared tables are copied to every machine, those first that others refer to. References of tenants' tables are dropped and
    laid again at the end: Citus takes none to a table that isn't distributed yet, some of ours lead in circles, and a table
    that refers to a shared one would become a third kind, which can't be distributed any more once it has an identity column.
    Triggers are dropped too: the rows that are there already would set them off again as they move.

    Args:
        cursor: of any role: only the catalog is read.
        leave: tables that are distributed already.
    """
    cursor.execute(_TABLES, [MigrationRecorder.Migration._meta.db_table])
    is_tenants: dict[str, bool] = dict(cursor.fetchall())
    cursor.execute(_ALL_REFERENCES)
    references = [r for r in cursor.fetchall() if r[0] in is_tenants and r[1] in is_tenants]
    laid_last = [r for r in references if is_tenants[r[0]] and r[0] not in leave]
    cursor.execute(_TRIGGERS_TOLD)
    triggers = [t for t in cursor.fetchall() if t[0] not in leave]
    order = TopologicalSorter[str]({table: set() for table in is_tenants if not is_tenants[table]})
    for child, parent, _, _ in references:
        if not is_tenants[child] and child != parent:
            order.add(child, parent)
    tenants = sorted((t for t in is_tenants if is_tenants[t]), key=lambda t: (t not in leave, t))
    return [
        *(f'ALTER TABLE "{child}" DROP CONSTRAINT "{name}"' for child, _, name, _ in laid_last),
        *(f'DROP TRIGGER "{name}" ON "{table}"' for table, name, _ in triggers),
        *(
            f"SELECT create_reference_table('\"{table}\"')"
            for table in order.static_order()
            if table not in leave
        ),
        *(
            f"SELECT create_distributed_table('\"{table}\"', 'tenant_id', colocate_with => '{_with(tenants, table)}')"
            for table in tenants
            if table not in leave
        ),
        *(f'ALTER TABLE "{child}" ADD CONSTRAINT "{name}" {told}' for child, _, name, told in laid_last),
        *(told for _, _, told in triggers),
    ]


def _with(tenants: list[str], table: str) -> str:
    return "none" if table == tenants[0] else f'"{tenants[0]}"'


def has_citus(cursor: Any) -> bool:
    """Tell whether the database has the extension."""
    cursor.execute("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')")
    return bool(cursor.fetchone()[0])
