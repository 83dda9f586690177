"""A hundred workspaces at every door behind PgBouncer, and what the scope of each transaction costs.

Needs pgbouncer. Prints tables and writes results/pooler.json: answers that were not the asker's own (none may be), and the
microseconds that role and tenant add to a statement outside and inside a transaction, medians of rounds in turn.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import _stack
from benchmarks._common import write_result

WORKSPACES, REQUESTS, AT_ONCE = 100, 10_000, 12
ROUNDS, STATEMENTS = 40, 200


def doors() -> dict[str, Any]:
    """Send all requests through a pooler of four server connections and count the right answers."""
    from tests.many_tenants import visit, workspaces_make
    from tests.pgbouncer import SERVER_CONNECTIONS, pooled
    from tests.servers import Stack, database_url

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="groundwork-pooler-")))
        url = stack.enter_context(pooled(folder / "pooler"))
        product = Stack(
            folder,
            DATABASE_URL=url,
            GROUNDWORK_LISTEN_URL=database_url(),
            DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"],
        )
        stack.callback(product.stop)
        workspaces = workspaces_make(WORKSPACES)
        product.start()
        began = time.monotonic()
        found = visit(lambda: product.port, workspaces, requests=REQUESTS, at_once=AT_ONCE)
        seconds = time.monotonic() - began
    for problem in found.wrong[:20]:
        print(problem)
    return {
        "workspaces": WORKSPACES,
        "requests": REQUESTS,
        "server_connections": SERVER_CONNECTIONS,
        "right": found.right,
        "wrong": len(found.wrong),
        "seconds": round(seconds, 1),
    }


def cost() -> dict[str, float]:
    """Return the microseconds of a statement: with no scope (the login role), alone with one, in a transaction of ten."""
    from django.db import connection, transaction

    from tenancy.database.base import as_login_role
    from tenancy.scope import tenant_scope

    def ask(count: int) -> None:
        for _ in range(count):
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                cursor.fetchall()

    def plain() -> None:
        with as_login_role():
            ask(STATEMENTS)

    def scoped() -> None:
        with tenant_scope(1):
            ask(STATEMENTS)

    def plain_tens() -> None:
        with as_login_role():
            tens()

    def scoped_tens() -> None:
        with tenant_scope(1):
            tens()

    def tens() -> None:
        for _ in range(STATEMENTS // 10):
            with transaction.atomic():
                ask(10)

    ways: dict[str, Callable[[], None]] = {
        "plain": plain,
        "scoped": scoped,
        "plain_transaction_of_10": plain_tens,
        "scoped_transaction_of_10": scoped_tens,
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            taken[name].append((time.perf_counter() - began) * 1e6)
    medians = {name: statistics.median(values) for name, values in taken.items()}
    return {
        "statement_us": round(medians["plain"] / STATEMENTS, 1),
        "added_to_a_statement_us": round((medians["scoped"] - medians["plain"]) / STATEMENTS, 1),
        "added_to_a_transaction_us": round(
            (medians["scoped_transaction_of_10"] - medians["plain_transaction_of_10"]) / (STATEMENTS / 10), 1
        ),
    }


def main() -> None:
    """Measure both and write the result."""
    with _stack.database():
        found = {"cost": cost(), "doors": doors()}
    print(found)
    write_result("pooler", found)
    sys.exit(1 if found["doors"]["wrong"] else 0)


if __name__ == "__main__":
    main()
