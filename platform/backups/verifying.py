"""Prove a backup: restore its rows into a scratch database, read all its files, and compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from backups.errors import BackupDamaged
from backups.kept_keys import keys_fit, keys_used
from backups.loading import schema_make, schema_refuse
from backups.manifest import Manifest
from backups.places import Place
from backups.priority import thread_yield
from backups.reading import files_problems, rows_problems
from backups.restoring import rows_restore
from backups.scratch import scratch_database
from backups.services import backup_chosen, backup_keys
from backups.tables import table_sum
from tenancy.audit_chain import audit_chain_verify
from tenancy.models import Tenant
from tenancy.row_security import tenant_models, walls_problem
from tenancy.scope import platform_scope, tenant_scope

_MAX_PROBLEMS = 50


@dataclass(slots=True)
class Verified:
    """What was found.

    Attributes:
        where: the scratch database, in words.
        done: what was compared and is right, in words.
        problems: what is wrong; none for a backup that can be relied on.
    """

    manifest: Manifest
    where: str = ""
    done: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, problem: str) -> None:
        """Add a problem; beyond the first fifty they are only counted by their being there."""
        if len(self.problems) < _MAX_PROBLEMS and problem not in self.problems:
            self.problems.append(problem)


_checks: list[Callable[[Verified], None]] = []


def on_verify(check: Callable[[Verified], None]) -> None:
    """Have it look at the restored rows of a backup that is verified; at start-up, by an app whose rows must work together.

    It notes what is wrong, or adds to ``done`` what is right.
    """
    if check not in _checks:
        _checks.append(check)


def backup_verify(url: str, *, name: str = "", say: Callable[[str], None] = lambda words: None) -> Verified:
    """Verify a backup without changing it or this installation.

    Args:
        name: of the backup, "" for the newest.

    Raises:
        BackupRefused: it can't be read here: another key, a newer schema, no such backup.
        BackupDamaged: its manifest isn't what was written.
        StoreAway: the place doesn't answer.
    """
    place, keys = Place(url), backup_keys()
    thread_yield()
    manifest = backup_chosen(place, name)
    schema_refuse(manifest)
    found = Verified(manifest)
    say(f"Verifying {manifest.name}: {manifest.rows:,} rows, {manifest.originals.count:,} originals")
    for problem in files_problems(place, manifest, keys, say):
        found.note(problem)
    found.done.append(f"{manifest.originals.count:,} originals read")
    with scratch_database() as found.where:
        say(f"Restoring the rows into {found.where}")
        try:
            is_older = schema_make(manifest)
            rows_restore(
                place,
                manifest,
                keys,
                is_older=is_older,
                on_loaded=lambda line: _tables(line, found),
                say=say,
            )
        except BackupDamaged as error:
            found.note(error.message)
            for problem in rows_problems(place, manifest, keys):  # all that are wrong, not only the first
                found.note(problem)
            return found
        _walls(found)
        _audit(found)
        _credentials(found)
        for check in _checks:
            check(found)
    return found


def _tables(line: psycopg.Connection[Any], found: Verified) -> None:
    for table in found.manifest.tables:
        there = table_sum(line, table.name, table.columns)
        if (there.rows, there.checksum) != (table.rows, table.checksum):
            found.note(f"{table.name}: {there.rows} rows restored, {table.rows} backed up, or they differ.")
    found.done.append(f"{found.manifest.rows:,} rows of {len(found.manifest.tables)} tables compared")


def _walls(found: Verified) -> None:
    if problem := walls_problem():
        found.note(f"Row-level security: {problem}")
        return
    for tenant in _tenants():
        with tenant_scope(tenant.pk):
            for model in tenant_models():
                if model._default_manager.exclude(tenant_id=tenant.pk).exists():
                    found.note(f"{tenant.slug} sees rows of another workspace in {model._meta.db_table}.")
    found.done.append(f"walls of {len(_tenants())} workspaces hold")


def _audit(found: Verified) -> None:
    events = 0
    for tenant in _tenants():
        report = audit_chain_verify(tenant=tenant)
        events += report.events
        if not report.is_intact:
            found.note(f"Audit trail of {tenant.slug}: {report.problems[0].message}")
    found.done.append(f"{events:,} audit events in their chains")


def _credentials(found: Verified) -> None:
    used = keys_used()
    known = set(found.manifest.unreadable)
    if used.secrets != found.manifest.secrets:
        found.note(f"{used.secrets} stored credentials restored, {found.manifest.secrets} backed up.")
    if new := [where for where in used.unreadable if where not in known]:
        fix = "" if keys_fit(found.manifest.key_ids) else " This server's keys aren't those of the backup."
        found.note(f"{len(new)} stored credentials can't be decrypted here, for example {new[0]}.{fix}")
    found.done.append(f"{used.secrets - len(used.unreadable)} of {used.secrets} credentials decrypted")


def _tenants() -> list[Tenant]:
    with platform_scope():
        return list(Tenant.objects.order_by("pk"))
