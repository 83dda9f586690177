"""What this machine has made or fetched of files goes with them, also when another machine removed them.

Each process of a machine reads every few seconds what was removed since it last looked, and at its start and each hour
compares all its copies with the rows: whatever it missed, it finds then.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import islice

from django.utils import timezone

from blobs.leases import blob_cache, blob_copies, partials_drop
from blobs.models import PendingBlob
from blobs.references import named
from tenancy.scope import platform_scope, tenant_scope
from tenancy.threads import begin_thread

LOOK_S = 10.0
WHOLE_S = 3600.0
_AT_ONCE = 500  # keys that are asked for in one statement
_OVERLAP = timedelta(seconds=60)  # a transaction may commit that long after it wrote its time

_removed: list[Callable[[int, Sequence[str]], None]] = []
_removed_elsewhere: list[Callable[[int, Sequence[str]], None]] = []
_whole: list[Callable[[], None]] = []
_each_look: list[Callable[[], object]] = []
_looked: datetime | None = None
_known: dict[int, datetime] = {}
_next_whole = 0.0
_lock = threading.Lock()


def on_removed(listener: Callable[[int, Sequence[str]], None], *, is_at_once: bool = True) -> None:
    """Have it called with workspace and keys (or prefixes) of what was removed, in the workspace's scope, on each machine.

    Args:
        is_at_once: also by the process that removes them, key by key; else only when a machine looks.
    """
    listeners = _removed if is_at_once else _removed_elsewhere
    if listener not in listeners:
        listeners.append(listener)


def on_whole_look(listener: Callable[[], None]) -> None:
    """Have it called at each process' start and hourly, to compare what it has on this machine's disk with the rows."""
    if listener not in _whole:
        _whole.append(listener)


def on_look(listener: Callable[[], object]) -> None:
    """Have it called each time a process looks, for what no row of ``PendingBlob`` tells; it must be cheap."""
    if listener not in _each_look:
        _each_look.append(listener)


def caches_drop(tenant_id: int, keys: Sequence[str], *, is_at_once: bool) -> None:
    """Delete this machine's copies of keys, or of all below prefixes, and what was made of them."""
    for key in keys:
        cached = blob_cache() / key
        if not key.endswith("/"):
            # Also where it is read: its reader has it open, or works for what is gone.
            cached.unlink(missing_ok=True)
        elif cached.is_dir():
            shutil.rmtree(cached, ignore_errors=True)
    with tenant_scope(tenant_id):
        for listener in _removed if is_at_once else [*_removed, *_removed_elsewhere]:
            listener(tenant_id, keys)


def caches_look() -> int:
    """Drop what was removed since this process last looked; returns how many keys that were.

    What fails is looked at again the next time.
    """
    global _looked, _next_whole
    with _lock:
        if time.monotonic() >= _next_whole:
            partials_drop()
            _copies_compare()
            for listener in _whole:
                listener()
            _next_whole = time.monotonic() + WHOLE_S
        for each in _each_look:
            each()
        now = timezone.now()
        since = _looked or now - _OVERLAP
        with platform_scope():
            rows = PendingBlob.objects.filter(removed_at__gte=since - _OVERLAP)
            found = [
                (row.pk, row.tenant_id, row.key, row.removed_at) for row in rows if row.removed_at is not None
            ]
        for known in [known for known, at in _known.items() if at < since - 2 * _OVERLAP]:
            del _known[known]
        fresh: dict[int, dict[int, tuple[str, datetime]]] = {}
        for pk, tenant_id, key, removed_at in found:
            if pk not in _known:
                fresh.setdefault(tenant_id, {})[pk] = (key, removed_at)
        for tenant_id, of_tenant in fresh.items():
            caches_drop(tenant_id, [key for key, _ in of_tenant.values()], is_at_once=False)
            _known.update({pk: removed_at for pk, (_, removed_at) in of_tenant.items()})
        _looked = now
    return sum(map(len, fresh.values()))


def _copies_compare() -> None:
    """Delete the copies of keys that no row names."""
    root = blob_cache()
    for folder in root.glob("t*"):
        tenant = folder.name[1:]
        if tenant.isdecimal():
            copies = (path for path in blob_copies(folder))
            while part := {path.relative_to(root).as_posix(): path for path in islice(copies, _AT_ONCE)}:
                with tenant_scope(int(tenant)):
                    kept = named(int(tenant), part)
                for key in part.keys() - kept:
                    part[key].unlink(missing_ok=True)


def looking_start() -> None:
    """Look in a thread of this process from now on, until it ends; never before the process forks."""
    begin_thread(caches_look, every_s=LOOK_S, name="blob-caches")
