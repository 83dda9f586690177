"""A database as servers before decision 169 left it: keys of tenants' tables without the tenant, and ``ON DELETE SET NULL``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db import connection

from config.embedded.account import programs

_TENANTS = """
SELECT t.relname FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'tenant_id'
WHERE t.relnamespace = 'public'::regnamespace AND t.relkind = 'r' ORDER BY 1
"""
_WIDENED = """
SELECT i.relname, pg_get_indexdef(x.indexrelid), x.indisprimary, n.oid IS NOT NULL
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attname = 'tenant_id'
LEFT JOIN pg_constraint n ON n.conindid = x.indexrelid AND n.contype IN ('p', 'u')
WHERE x.indisunique AND x.indrelid = %s::regclass AND x.indnkeyatts > 1 AND x.indkey[x.indnkeyatts - 1] = a.attnum
"""
_REFERENCES = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND confrelid = %s::regclass AND array_length(conkey, 1) = 2
"""
SCHEMA = """
SELECT 'index', pg_get_indexdef(i.indexrelid), i.indisvalid FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
WHERE t.relnamespace = 'public'::regnamespace
UNION ALL SELECT 'constraint', conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid), convalidated
FROM pg_constraint WHERE conrelid <> 0 ORDER BY 1, 2
"""


def keys_as_before(cursor: Any, *only: str) -> None:
    """Take ``tenant_id`` out of the keys that got it.

    Args:
        cursor: of the login role.
        only: tables; none: all of tenants.
    """
    cursor.execute(_TENANTS)
    for table in only or [name for (name,) in cursor.fetchall()]:
        cursor.execute(_REFERENCES, [table])
        references = cursor.fetchall()
        for child, name, _ in references:
            cursor.execute(f'ALTER TABLE {child} DROP CONSTRAINT "{name}"')
        cursor.execute(_WIDENED, [table])
        for name, definition, is_primary, is_constraint in cursor.fetchall():
            narrow = definition.replace(", tenant_id)", ")")
            columns = re.search(r"USING btree (\(.*)", narrow)
            assert columns is not None
            if not is_constraint:
                cursor.execute(f'DROP INDEX "{name}"')
                cursor.execute(narrow)
                continue
            nulls = " NULLS NOT DISTINCT" if "NULLS NOT DISTINCT" in narrow else ""
            kind = "PRIMARY KEY" if is_primary else f"UNIQUE{nulls}"
            told = columns[1].replace(" NULLS NOT DISTINCT", "")
            cursor.execute(
                f'ALTER TABLE {table} DROP CONSTRAINT "{name}", ADD CONSTRAINT "{name}" {kind} {told}'
            )
        if references:
            key = f"{table}_tenant_key"[-63:]
            # A test that left rows in the table may have left the key too: it is kept where it may be in use.
            cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT IF EXISTS "{key}"')
            cursor.execute(f'ALTER TABLE {table} ADD CONSTRAINT "{key}" UNIQUE (tenant_id, id)')
        for child, name, told in references:
            definition = told
            if told.endswith(f"REFERENCES {table}(tenant_id, id)"):  # NO ACTION, which Postgres leaves out
                column = told.split("(tenant_id, ")[1].split(")")[0]
                definition = f"{told} ON DELETE SET NULL ({column})"
            cursor.execute(f'ALTER TABLE {child} ADD CONSTRAINT "{name}" {definition}')


def schema(cursor: Any) -> list[Any]:
    """Return all indexes and constraints, and whether each is valid."""
    cursor.execute(SCHEMA)
    return list(cursor.fetchall())


def database_url(name: str) -> str:
    """Return the address of another database on the server of the tests."""
    at = connection.settings_dict
    person = ":".join(quote(at[key], safe="") for key in ("USER", "PASSWORD") if at[key])
    return f"postgresql://{person}@{at['HOST']}:{at['PORT']}/{name}"


def dumped(name: str) -> list[str]:
    """Return a database's schema with its rights and policies; the columns of a table in the order of their names."""
    said = subprocess.run(
        [programs(None, Path("/nonexistent")) / "pg_dump", "--schema-only", "-d", database_url(name)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    said = re.sub(r"^(--.*|\\(un)?restrict .*)$", "", said, flags=re.MULTILINE)
    # What a dump gave back says the same with other casts: (ARRAY['a'::varchar])::text[], ARRAY[('a'::varchar)::text].
    said = re.sub(r"::(text|character varying)(\[\])?", "", said)
    statements = (s.strip() for s in said.split(";\n"))
    tables = (re.sub(r"(?s)(^CREATE (?:UNLOGGED )?TABLE [^(]+\()(.*)\)$", _columns, s) for s in statements)
    return sorted(re.sub(r"[()]", "", s) for s in tables)


def _columns(table: re.Match[str]) -> str:
    return table[1] + "\n".join(sorted(line.strip().rstrip(",") for line in table[2].strip().split("\n")))
