"""Notes of imports under way, so that the next import removes what a killed one left.

A note is a file in the data directory that its import keeps locked. The lock ends with the process, however that dies: a
note without a lock is of an import that is over. It names the closed workspace, and is written before that is committed.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog
from django.conf import settings

from erasure.ledger import fingerprint
from erasure.reports import Report
from erasure.workspaces import workspace_files_erase, workspace_rows_erase
from tenancy.models import AuditEvent, Tenant
from tenancy.scope import platform_scope, tenant_scope

log = structlog.get_logger(__name__)


@contextmanager
def import_noted() -> Iterator[Callable[[Tenant], None]]:
    """Keep a note while the block imports a workspace; yields what writes the workspace's name into it.

    That has to be called inside the transaction that makes the workspace. A block that fails has its workspace removed; if
    that isn't possible at this moment, the note stays, and the next import removes it.
    """
    descriptor, path = _note()
    made: list[Tenant] = []

    def write(tenant: Tenant) -> None:
        os.write(descriptor, json.dumps({"tenant": tenant.pk, "is": fingerprint(tenant)}).encode())
        os.fsync(descriptor)
        made.append(tenant)

    try:
        yield write
    except BaseException:
        if not made or _take_back(made[0]):
            path.unlink()
        raise
    else:
        path.unlink()
    finally:
        os.close(descriptor)


def unfinished_remove() -> list[str]:
    """Remove the closed workspaces that killed imports of this machine left, with their files; returns their addresses.

    A workspace that has arrived has an audit trail, and stays whatever its note says.

    Raises:
        StoreAway: the store of files doesn't answer.
    """
    removed = []
    for path in sorted(_folder().glob("*.json")):
        with suppress(FileNotFoundError):  # its import has just ended
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if not _is_taken(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    continue  # under way
                tenant = _left_by(path)
                if tenant is None or _take_back(tenant):
                    path.unlink()
                    removed += [tenant.slug] if tenant is not None else []
            finally:
                os.close(descriptor)
    return removed


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "run" / "imports"


def _note() -> tuple[int, Path]:
    """Make a note and lock it, before another import takes it for one that is over."""
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        descriptor, name = tempfile.mkstemp(dir=_folder(), suffix=".json")
        if _is_taken(descriptor, fcntl.LOCK_EX) and os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)


def _is_taken(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind)
    except BlockingIOError:
        return False
    return True


def _left_by(path: Path) -> Tenant | None:
    """Return the closed workspace of a note, None where none was made or it has arrived."""
    text = path.read_text(encoding="utf-8")
    try:
        told = json.loads(text)
    except ValueError:  # killed before it had made one, or while it wrote the note: nothing was committed
        return None
    with platform_scope():
        tenant = Tenant.objects.filter(pk=told["tenant"], is_active=False).first()
    if tenant is None or fingerprint(tenant) != told["is"]:
        return None
    with tenant_scope(tenant.pk):
        has_arrived = AuditEvent.objects.filter(tenant=tenant).exists()
    return None if has_arrived else tenant


def _take_back(tenant: Tenant) -> bool:
    """Remove a closed workspace, its files first; returns False while a backup copies files."""
    report = Report()
    if not workspace_files_erase(tenant.pk, report):
        log.warning("import_left", tenant=tenant.pk, reason="A backup copies files at this moment.")
        return False
    workspace_rows_erase(tenant, report)
    return True
