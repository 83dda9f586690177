"""What the database reads for a statement: counted in its plan, whatever the machine's load."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext


def scans_of(queries: CaptureQueriesContext) -> Iterator[tuple[str, str, int]]:
    """Run captured SELECT statements again; yields each one's scans as table, kind and rows looked at in vain."""
    for query in list(queries):
        _, is_read, rest = query["sql"].partition(
            "SELECT "
        )  # what sets role and workspace may stand in front
        if is_read:
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) SELECT " + rest)
                found = cursor.fetchone()[0]
            plan = json.loads(found) if isinstance(found, str) else found
            yield from _scans(plan[0]["Plan"])


def _scans(node: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    if "Relation Name" in node:
        vain = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        yield node["Relation Name"], f"{node['Node Type']} {node.get('Index Name', '')}".strip(), int(vain)
    for below in node.get("Plans", ()):
        yield from _scans(below)
