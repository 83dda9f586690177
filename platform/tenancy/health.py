"""Is this process able to work: checks that web, worker and doctor share, each a plain function that never raises."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tenancy.database import replica
from tenancy.database.direct import pooler_found

logger = logging.getLogger(__name__)
_matched = False
_listens = False
_POOLER_KEPT_S = 30.0
REPLICA_FIX = "Start the replica, or correct GROUNDWORK_REPLICA_URL."
_pooler: tuple[float, Check] | None = (
    None  # when one was found, by the clock of this process, and what is said of it
)


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


def database_checks() -> list[Check]:
    """Return what was found about the database, its direct line, its replica and its migrations. All others need the first."""
    found = [guarded("database", check_database, "Start the database, or correct DATABASE_URL.")]
    if not found[0].ok:
        return found
    return [
        *found,
        guarded("listen", check_listen, "See GROUNDWORK_LISTEN_URL."),
        *([check_replica()] if replica.is_set() else []),
        guarded("migrations", check_migrations, "Run: python manage.py migrate"),
    ]


def check_database() -> Check:
    """One statement over this process's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return Check("database", True, f"PostgreSQL {connection.pg_version // 10000}")  # type: ignore[attr-defined]


def check_listen() -> Check:
    """No transaction pooler is in the way of notifications; once there was none, this process does not look again.

    What was found stays for 30 seconds: /readyz is public, and each look opens two connections.
    """
    global _listens, _pooler
    if _pooler is not None and time.monotonic() - _pooler[0] < _POOLER_KEPT_S:
        return _pooler[1]
    if not _listens:
        if wrong := pooler_found():
            logger.warning("readiness check listen failed: %s", wrong)
            fix = "Set GROUNDWORK_LISTEN_URL to the Postgres server itself."
            found = Check("listen", False, "leads through a transaction pooler", fix, error=wrong)
            _pooler = time.monotonic(), found
            return found
        _listens = True
    _pooler = None
    return Check("listen", True, "direct")


def check_replica() -> Check:
    """Whether this process reads its replica. One that is away is named and fails nothing: the main database is read."""
    if replica.watch.is_there():
        return Check("replica", True, "in use")
    if replica.watch.reason == replica.NOT_LOOKED:
        return Check("replica", True, "being looked for; reads go to the main database")
    return Check("replica", True, "away; reads go to the main database", REPLICA_FIX)


def check_migrations() -> Check:
    """The schema is that of this code: every migration of the code is applied, and no other.

    A process that has once found its own schema stays ready when a newer one comes, and names it: the next release's
    migrations leave the code before them working, and all processes would otherwise stop taking requests before the
    first of the new release can start.
    """
    global _matched
    applied = _applied()
    newer = _named(_unknown(applied))
    if _matched:
        return Check(
            "migrations",
            True,
            "all applied" if not newer else f"all applied, and by a newer release: {newer}",
            "" if not newer else "Replace this process with one of the newer release.",
        )
    if newer:
        return Check(
            "migrations",
            False,
            f"the database is newer than this code, which does not know: {newer}",
            "Start the release that applied them, or restore the backup made before.",
        )
    if _migration_files() <= applied:
        _matched = True
        return Check("migrations", True, "all applied")
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        missing = _named([f"{m.app_label}.{m.name}" for m, _ in plan])
        return Check("migrations", False, f"not applied: {missing}", "Run: python manage.py migrate")
    _matched = True
    return Check("migrations", True, "all applied")


def _applied() -> set[tuple[str, str]]:
    """Return (app, name) of the migrations that the database has."""
    if not _matched:
        return set(MigrationRecorder(connection).applied_migrations())
    # A worker asks every two seconds. Django would look for the table among all, and make a model of each row.
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        return set(cursor.fetchall())


def migrations_unknown() -> list[str]:
    """Return the migrations that the database has and this code does not know, as ``app.name``, in order."""
    return _unknown(set(MigrationRecorder(connection).applied_migrations()))


def _unknown(applied: set[tuple[str, str]]) -> list[str]:
    unknown = applied - _migration_files()
    # Which migrations one replaces is in its code alone.
    return sorted(f"{app}.{name}" for app, name in unknown - _migrations_of_code()) if unknown else []


@cache
def _migration_files() -> frozenset[tuple[str, str]]:
    """Return (app, name) of every migration that this code has a module of, without importing one.

    Web server and worker ask at each start. Imported, the migrations take 0.15 CPU seconds and 5 MB in each of them.
    """
    found = set()
    for app in apps.get_app_configs():
        package, _ = MigrationLoader.migrations_module(app.label)
        if package is None:
            continue
        try:
            folders = import_module(package).__path__
        except ModuleNotFoundError:
            continue  # an app without tables
        found |= {
            (app.label, one.name)
            for one in iter_modules(folders)
            if not one.ispkg and one.name[0] not in "_~"  # as Django's loader takes them
        }
    return frozenset(found)


@cache
def _migrations_of_code() -> frozenset[tuple[str, str]]:
    """Return (app, name) of every migration that this code has, and of those that one of them replaces."""
    migrations = MigrationLoader(None).disk_migrations
    replaced = {one for migration in migrations.values() for one in migration.replaces}
    return frozenset(migrations) | replaced


def _named(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def guarded(name: str, check: Callable[[], Check], fix: str) -> Check:
    """Return what a check finds; an error of it is a finding too: whatever it is, this part does not work."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - any failure is the answer here
        # /readyz is public: the driver's message, which names hosts, goes to the log and the doctor only.
        logger.warning("readiness check %s failed: %s", name, error)
        return Check(name, False, type(error).__name__, fix, error=str(error).strip())


def as_json(checks: Iterable[Check]) -> dict[str, Any]:
    """Return the body of a /readyz: ``status`` is "ready" or "not_ready", ``checks`` has each by its name."""
    found = list(checks)
    return {
        "status": "ready" if all(c.ok for c in found) else "not_ready",
        "checks": {
            c.name: {"ok": c.ok, "detail": c.detail, **({"fix": c.fix} if c.fix else {})} for c in found
        },
    }
