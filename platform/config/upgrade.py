"""What ``manage.py upgrade_check`` tells before an upgrade: what will run, what it locks, and what stands in its way."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from backups.models import BackupResult
from backups.results import is_verified
from backups.schedule import last_backup
from basics.sizes import gigabytes
from config import env
from config.embedded import state
from tenancy.database.base import as_login_role
from tenancy.database.direct import pooler_found
from tenancy.database.history import INITIAL, LAST, adoptable
from tenancy.health import Check, check_database, guarded, migrations_unknown
from tenancy.upgrades.effects import Effect, Mark, Work
from tenancy.upgrades.locks import sessions_on
from tenancy.upgrades.rules import effects_of

READ_BYTES_S = 200e6
WRITE_BYTES_S = 20e6
"""Assumed, and told with each estimate: what a small server reads of a table, and writes of a table or index."""
OLD_S = 60.0
"""Seconds after which an open transaction on a table that will be changed is likely to be a forgotten one."""
SPARE_BYTES = 1e9
FRESH_BACKUP = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a migration and the table it meets.

    Args:
        effect: what it does.
        rows: of the table, as the database last estimated them; None where it never did.
        table_bytes: of the table without its indexes.
        all_bytes: with its indexes.
    """

    effect: Effect
    rows: int | None = None
    table_bytes: int = 0
    all_bytes: int = 0

    @property
    def seconds(self) -> float | None:
        """A rough time; None where only the migration knows."""
        if self.effect.is_new:
            return 0.0
        if self.effect.work is Work.DATA:
            return None
        return {
            Work.READ: self.table_bytes / READ_BYTES_S,
            Work.INDEX: self.table_bytes / WRITE_BYTES_S,
            Work.REWRITE: self.all_bytes / WRITE_BYTES_S,
        }.get(self.effect.work, 0.0)

    @property
    def disk_bytes(self) -> float:
        """What it needs at most while it runs: the new table or index, and its log."""
        if self.effect.is_new:
            return 0.0
        return {Work.INDEX: 2.0 * self.table_bytes, Work.REWRITE: 2.0 * self.all_bytes}.get(
            self.effect.work, 0.0
        )


@dataclass(frozen=True, slots=True)
class Planned:
    """A migration that will run."""

    name: str
    steps: list[Step]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found before an upgrade; ``migrations`` is None where it couldn't be told."""

    checks: list[Check]
    migrations: list[Planned] | None

    @property
    def ok(self) -> bool:
        """Nothing is in the way."""
        return all(check.ok for check in self.checks)


def examine_upgrade() -> Report:
    """Return what an upgrade of this database to this code will do; changes nothing."""
    database = guarded("database", check_database, "Start the database, or correct DATABASE_URL.")
    if not database.ok:
        return Report([database], None)
    with as_login_role():
        history = guarded("history", _check_history, "See docs/running.md.")
        checks = [database, history, guarded("direct line", _check_line, "Set GROUNDWORK_LISTEN_URL.")]
        if not history.ok:
            return Report(checks, None)
        planned = _planned()
        checks += [
            guarded("owner", _check_owner, "Run migrations as the role that owns the tables."),
            guarded("in use", lambda: _check_sessions(planned), ""),
            _check_rolling(planned),
            guarded("database disk", lambda: _check_database_disk(planned), ""),
            guarded("data folder", _check_data_folder, "Make the data directory."),
            guarded("backup", _check_backup, ""),
        ]
    return Report(checks, planned)


def _check_history() -> Check:
    """The database is of this version or an earlier one, and its migrations can be continued."""
    executor = MigrationExecutor(connection)
    try:
        is_old = adoptable(connection)
    except CommandError as error:
        return Check("history", False, str(error))
    if is_old:
        return Check("history", True, "from before the migrations were reset; its list is rewritten first")
    if newer := migrations_unknown():
        return Check(
            "history",
            False,
            f"the schema is newer than this code: {newer[-1]} isn't known here",
            "Install the version that made it, or a later one.",
        )
    executor.loader.check_consistent_history(connection)
    return Check("history", True, "continues")


def _check_line() -> Check:
    """Migrations reach the server itself: ``lock_timeout`` and indexes need a session of their own."""
    wrong = pooler_found()
    return Check("direct line", not wrong, wrong or "direct")


def _planned() -> list[Planned]:
    executor = MigrationExecutor(connection)
    if adoptable(connection):
        for app in LAST:
            executor.loader.applied_migrations[app, INITIAL] = executor.loader.disk_migrations[app, INITIAL]
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    effects = effects_of((m.app_label, m.name) for m, _ in plan)
    sizes = _sizes({e.table for found in effects.values() for e in found if e.table})
    return [
        Planned(f"{m.app_label}.{m.name}", [_step(e, sizes) for e in effects[m.app_label, m.name]])
        for m, _ in plan
    ]


def _step(effect: Effect, sizes: dict[str, tuple[int | None, int, int]]) -> Step:
    rows, table_bytes, all_bytes = sizes.get(effect.table, (None, 0, 0))
    return Step(effect, rows, table_bytes, all_bytes)


def _sizes(tables: set[str]) -> dict[str, tuple[int | None, int, int]]:
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT relname, reltuples, pg_table_size(oid), pg_total_relation_size(oid) FROM pg_class
               WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace AND relname = ANY(%s)""",
            [sorted(tables)],
        )
        return {
            name: (None if rows < 0 else int(rows), int(table), int(total))
            for name, rows, table, total in cursor.fetchall()
        }


def _check_owner() -> Check:
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT count(*), min(tablename) FROM pg_tables
               WHERE schemaname = current_schema() AND NOT pg_has_role(current_user, tableowner, 'USAGE')"""
        )
        count, first = cursor.fetchone()
    if count:
        detail = (
            f"this role owns neither {first} nor {count - 1} others"
            if count > 1
            else f"{first} isn't its own"
        )
        return Check("owner", False, detail, "Run migrations as the role that owns the tables.")
    return Check("owner", True, "every table")


def _check_sessions(planned: list[Planned]) -> Check:
    """No forgotten transaction holds a table that will be locked: migrate would give up waiting for it."""
    tables = {s.effect.table for p in planned for s in p.steps if s.effect.lock and not s.effect.is_new}
    with connection.cursor() as cursor:
        old = [s for s in sessions_on(cursor, tables - {""}) if s.open_s >= OLD_S]
    if old:
        return Check(
            "in use",
            False,
            f"{old[0].table} is held by {old[0].text}",
            f"End it: SELECT pg_terminate_backend({old[0].pid});",
        )
    return Check("in use", True, "no old transaction on a table that will be locked")


def _check_rolling(planned: list[Planned]) -> Check:
    """Whether servers of the version before may stay while it runs; advice, and nothing that is in the way."""
    found = [(p.name, s.effect) for p in planned for s in p.steps if s.effect.problem and not s.effect.is_new]
    if not found:
        return Check("rolling", True, "servers of the version before can go on working meanwhile")
    name, effect = found[0]
    contract = all(e.mark is Mark.CONTRACT for _, e in found)
    advice = (
        "Upgrade release by release: servers two releases old break."
        if contract
        else "Stop web and workers first, or read the migration's reasons."
    )
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return Check("rolling", True, f"{name}, {effect.step}: {effect.problem}{more}", advice)


def database_folder() -> Path | None:
    """Return where the embedded database lies, None where the database is not ours."""
    known = None if env.get("DATABASE_URL") else state.load(settings.DATA_DIR)
    return Path(known.pgdata) if known else None


def database_superuser() -> str:
    """Return the address of the embedded database for its superuser, "" where the database is not ours."""
    known = None if env.get("DATABASE_URL") else state.load(settings.DATA_DIR)
    return known.url(superuser=True) if known else ""


def _check_database_disk(planned: list[Planned]) -> Check:
    needed = sum(s.disk_bytes for p in planned for s in p.steps) + SPARE_BYTES
    folder = database_folder()
    if folder is None:
        return Check(
            "database disk",
            True,
            f"can't be told from here; the upgrade needs up to {gigabytes(needed)} there",
            "Look at the database server.",
        )
    free = shutil.disk_usage(folder).free
    detail = f"{gigabytes(free)} free, up to {gigabytes(needed)} needed"
    return Check(
        "database disk", free >= needed, detail, "" if free >= needed else f"Free some space at {folder}."
    )


def _check_data_folder() -> Check:
    free = shutil.disk_usage(settings.DATA_DIR).free
    fix = "" if free >= SPARE_BYTES else "Free some space."
    return Check("data folder", free >= SPARE_BYTES, f"{gigabytes(free)} free", fix)


def _check_backup() -> Check:
    """Whether there is a backup to go back to: of the last day, and verified; advice, and nothing that is in the way."""
    fix = "Run: python manage.py backup create, then backup verify. See docs/backups.md."
    if BackupResult._meta.db_table not in connection.introspection.table_names():
        how = "python manage.py pg dump FILE" if database_folder() else "pg_dump -Fc"
        return Check(
            "backup",
            True,
            "none known: this database is from before backups were recorded",
            f"Make one of the database ({how}) and of the data folder, and try it.",
        )
    last = last_backup()
    if last is None:
        return Check("backup", True, "none known", fix)
    told = f"{last.name}, {last.row_count:,} rows, at {last.url.partition('?')[0]}"
    if last.ended_at < timezone.now() - FRESH_BACKUP:
        return Check("backup", True, f"{told}: older than a day", fix)
    if not is_verified(last.name):
        return Check("backup", True, f"{told}: not verified", "Run: python manage.py backup verify")
    return Check("backup", True, f"{told}: fresh and verified")


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as ``--json`` prints it; sizes in bytes, times in seconds."""
    return {
        "ok": report.ok,
        "checks": [
            {"name": c.name, "ok": c.ok, "detail": c.detail, "fix": c.fix, "error": c.error}
            for c in report.checks
        ],
        "assumed": {"read_bytes_s": READ_BYTES_S, "write_bytes_s": WRITE_BYTES_S},
        "migrations": None
        if report.migrations is None
        else [
            {
                "name": p.name,
                "steps": [
                    {
                        "step": s.effect.step,
                        "table": s.effect.table,
                        "is_new_table": s.effect.is_new,
                        "lock": str(s.effect.lock),
                        "work": str(s.effect.work),
                        "rows": s.rows,
                        "table_bytes": s.table_bytes,
                        "all_bytes": s.all_bytes,
                        "seconds": s.seconds,
                        "disk_bytes": s.disk_bytes,
                        "problem": s.effect.problem,
                    }
                    for s in p.steps
                ],
            }
            for p in report.migrations
        ],
    }
