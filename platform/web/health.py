"""Is this installation able to serve: each check a plain function, used by /readyz and the doctor."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from jobs.selectors import queue_size, worker_seen_at
from tenancy.database.direct import pooler_found

logger = logging.getLogger(__name__)
WORKER_FRESH_S = 30
_migrated = False
_listens = False


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: its name, whether it is well, what was found, and what to do where it is not.

    ``error`` is a failure's full text, for the operator's eyes only.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""
    error: str = ""


def readiness() -> list[Check]:
    """Return the checks of /readyz: database, its direct line, migrations, queue, worker. Later ones need the database."""
    found = [guarded("database", check_database, "Start the database, or correct DATABASE_URL.")]
    if not found[0].ok:
        return found
    return [
        *found,
        guarded("listen", check_listen, "See GROUNDWORK_LISTEN_URL."),
        guarded("migrations", check_migrations, "Run: python manage.py migrate"),
        guarded("queue", check_queue, "See the queue's settings: GROUNDWORK_BROKER."),
        guarded("worker", check_worker, "Start a worker: python manage.py worker"),
    ]


def check_database() -> Check:
    """One statement over this process's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return Check("database", True, f"PostgreSQL {connection.pg_version // 10000}")  # type: ignore[attr-defined]


def check_listen() -> Check:
    """No transaction pooler is in the way of notifications; once there was none, this process does not look again."""
    global _listens
    if not _listens:
        wrong = pooler_found()
        if wrong:
            return Check("listen", False, wrong, "Set GROUNDWORK_LISTEN_URL to the Postgres server itself.")
        _listens = True
    return Check("listen", True, "direct")


def check_migrations() -> Check:
    """Every migration of the code is applied; once they are, this process does not look again."""
    global _migrated
    if not _migrated:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if plan:
            names = ", ".join(f"{m.app_label}.{m.name}" for m, _ in plan[:3])
            more = f" and {len(plan) - 3} more" if len(plan) > 3 else ""
            return Check("migrations", False, f"not applied: {names}{more}", "Run: python manage.py migrate")
        _migrated = True
    return Check("migrations", True, "all applied")


def check_queue() -> Check:
    """The queue underneath the jobs answers."""
    return Check("queue", True, f"{queue_size()} waiting")


def check_worker() -> Check:
    """A worker showed itself within ``WORKER_FRESH_S`` seconds."""
    seen = worker_seen_at()
    if seen is None:
        return Check("worker", False, "none has ever run", "Start a worker: python manage.py worker")
    age = (timezone.now() - seen).total_seconds()
    return Check(
        "worker",
        age < WORKER_FRESH_S,
        f"seen {age:.0f} s ago",
        "" if age < WORKER_FRESH_S else "Start a worker: python manage.py worker",
    )


def guarded(name: str, check: Callable[[], Check], fix: str) -> Check:
    """Return what a check finds; an error of it is a finding too: whatever it is, this part does not work."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - any failure is the answer here
        # /readyz is public: the driver's message, which names hosts, goes to the log and the doctor only.
        logger.warning("readiness check %s failed: %s", name, error)
        return Check(name, False, type(error).__name__, fix, error=str(error).strip())


def as_json(checks: list[Check]) -> dict[str, Any]:
    """Return the body of /readyz."""
    return {
        "status": "ready" if all(c.ok for c in checks) else "not_ready",
        "checks": {
            c.name: {"ok": c.ok, "detail": c.detail, **({"fix": c.fix} if c.fix else {})} for c in checks
        },
    }
