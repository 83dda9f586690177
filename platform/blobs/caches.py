"""What this machine has made or fetched of files goes with them, also when another machine removed them.

Each process of a machine reads every few seconds what was removed since it last looked, and at its start and each hour
compares all its copies with the rows: whatever it missed, it finds then.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone

from blobs.leases import blob_cache, blob_copies, partials_drop
from blobs.models import PendingBlob
from blobs.references import is_named
from tenancy.scope import platform_scope, tenant_scope

log = structlog.get_logger(__name__)

LOOK_S = 10.0
WHOLE_S = 3600.0
_OVERLAP = timedelta(seconds=60)  # a transaction may commit that long after it wrote its time

_removed: list[Callable[[int, str], None]] = []
_whole: list[Callable[[], None]] = []
_looked: datetime | None = None
_known: dict[int, datetime] = {}
_next_whole = 0.0
_lock = threading.Lock()


def on_removed(listener: Callable[[int, str], None]) -> None:
    """Have it called with workspace and key (or prefix) of what was removed, in the workspace's scope, on each machine."""
    if listener not in _removed:
        _removed.append(listener)


def on_whole_look(listener: Callable[[], None]) -> None:
    """Have it called at each process' start and hourly, to compare what it has on this machine's disk with the rows."""
    if listener not in _whole:
        _whole.append(listener)


def caches_drop(tenant_id: int, key: str) -> None:
    """Delete this machine's copies of a key, or of all below a prefix, and what was made of them."""
    cached = blob_cache() / key
    if key.endswith("/"):
        if cached.is_dir():
            shutil.rmtree(cached, ignore_errors=True)
    else:
        cached.unlink(
            missing_ok=True
        )  # also where it is read: its reader has it open, or works for what is gone
    with tenant_scope(tenant_id):
        for listener in _removed:
            listener(tenant_id, key)


def caches_look() -> int:
    """Drop what was removed since this process last looked; returns how many keys that were."""
    global _looked, _next_whole
    with _lock:
        if time.monotonic() >= _next_whole:
            _next_whole = time.monotonic() + WHOLE_S
            partials_drop()
            _copies_compare()
            for listener in _whole:
                listener()
        since = _looked or timezone.now() - _OVERLAP
        _looked = timezone.now()
        with platform_scope():
            rows = PendingBlob.objects.filter(removed_at__gte=since - _OVERLAP)
            found = [
                (row.pk, row.tenant_id, row.key, row.removed_at) for row in rows if row.removed_at is not None
            ]
        for known in [known for known, at in _known.items() if at < since - 2 * _OVERLAP]:
            del _known[known]
        fresh = [row for row in found if row[0] not in _known]
        for pk, tenant_id, key, removed_at in fresh:
            caches_drop(tenant_id, key)
            _known[pk] = removed_at
    return len(fresh)


def _copies_compare() -> None:
    """Delete the copies of keys that no row names."""
    for path in blob_copies():
        key = path.relative_to(blob_cache()).as_posix()
        tenant = key.partition("/")[0].removeprefix("t")
        if tenant.isdecimal():
            with tenant_scope(int(tenant)):
                if not is_named(int(tenant), key):
                    path.unlink(missing_ok=True)


def looking_start() -> None:
    """Have a web process look by itself, in a thread that ends with it; a worker's supervisor looks in its own rounds."""
    threading.Thread(target=_look_on, name="blob-caches", daemon=True).start()


def _look_on() -> None:
    while True:
        try:
            caches_look()
        except (DatabaseError, OSError) as error:
            log.warning("caches_not_looked", error=type(error).__name__)
        finally:
            with suppress(DatabaseError):
                connection.close()  # back to the pool
        time.sleep(LOOK_S)
