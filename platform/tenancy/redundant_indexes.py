"""Indexes that another index of their table makes needless: it begins with the same columns, in the same order.

Postgres serves from an index (a, b) whatever one on (a) would, so the second only costs: each write fills it, and each plan looks
at it. Django makes one for every foreign key; ``db_index=False`` says that another index begins with the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_REDUNDANT = """
WITH indexes AS (
    SELECT t.relname AS of_table, i.relname AS name, i.relam AS method, m.amname = 'btree' AS is_ordered, x.indnatts AS held,
        x.indnkeyatts AS size, x.indisunique AS is_unique, x.indisvalid AS is_valid,
        x.indclass::oid[] AS classes, x.indcollation::oid[] AS collations, x.indoption::int2[] AS options,
        coalesce(pg_get_expr(x.indpred, x.indrelid), '') AS rows,
        ARRAY(SELECT pg_get_indexdef(x.indexrelid, n, true) FROM generate_series(1, x.indnkeyatts) n) AS columns,
        x.indisexclusion OR x.indisreplident OR EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = x.indexrelid) AS is_needed
    FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_am m ON m.oid = i.relam
    WHERE t.relnamespace = 'public'::regnamespace)
SELECT a.of_table, a.name, a.columns, min(b.name) FROM indexes a
JOIN indexes b ON b.of_table = a.of_table AND b.name <> a.name AND b.method = a.method AND b.rows = a.rows AND b.is_valid
    AND b.columns[1:a.size] = a.columns AND (a.size = b.size OR a.is_ordered)
    AND b.classes[0:a.size - 1] = a.classes[0:a.size - 1] AND b.collations[0:a.size - 1] = a.collations[0:a.size - 1]
    AND b.options[0:a.size - 1] = a.options[0:a.size - 1]
WHERE NOT a.is_unique AND NOT a.is_needed AND a.held = a.size
    AND (b.held > a.held OR b.is_unique OR b.name < a.name)
GROUP BY 1, 2, 3 ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Redundant:
    """An index that can go.

    Attributes:
        table: whose it is.
        name: the index's.
        columns: what it orders by; names as Postgres quotes them, or expressions.
        other: an index that begins with the same.
    """

    table: str
    name: str
    columns: tuple[str, ...]
    other: str

    def __str__(self) -> str:
        return (
            f"{self.table}: {self.other} begins with ({', '.join(self.columns)}), so {self.name} is needless"
        )


def redundant_indexes(cursor: Any) -> list[Redundant]:
    """Return the indexes that are the beginning of another one: same table, method, operators, order and condition.

    Unique indexes and those of constraints never are: they say what rows may hold.

    Args:
        cursor: of any role: only the catalog is read.
    """
    cursor.execute(_REDUNDANT)
    return [
        Redundant(table, name, tuple(columns), other) for table, name, columns, other in cursor.fetchall()
    ]
