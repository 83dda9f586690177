"""Receive, keep and remove files.

Bytes come first and the row that names them second, so no network is waited for inside a transaction and no row ever
names bytes that are not there::

    received = receive(chunks, max_bytes=...)
    try:
        keep(tenant_id, key, received)           # commits that the key is being placed, then places it
        with transaction.atomic():
            ...                                  # writes the row that names the key
            name(received, key)
    finally:
        received.discard()                       # takes back what was not named

The other way round: ``drop`` in the transaction that deletes the last row of a key; the bytes go after the commit. What a
crash interrupts is finished by ``pending_sweep``.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import monotonic

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from basics.errors import Conflict, Invalid
from basics.texts import gettext as _
from blobs.caches import caches_drop
from blobs.errors import BlobMissing, StoreAway
from blobs.hold import removal_may_begin
from blobs.keys import is_key
from blobs.leases import copied_from_rows
from blobs.models import PendingBlob
from blobs.references import named
from blobs.stores import store
from tenancy.database.waiting import connections_let_go
from tenancy.scope import platform_scope, tenant_scope
from tenancy.threads import begin_thread

log = structlog.get_logger(__name__)
_inside: ContextVar[bool] = ContextVar("placing_inside", default=False)
_away_until: dict[str, float] = {}  # by the store's address, on this process's clock

ABANDONED = timedelta(days=1)  # how long placing a file may take
REMEMBERED = timedelta(days=2)  # how long other machines can read what was removed
SWEEP_S = 5.0
AGAIN = timedelta(seconds=30)  # after the store did not answer


@dataclass(slots=True)
class ReceivedFile:
    """Bytes that have arrived and have no row yet.

    Attributes:
        path: where they lie until they are kept.
        size: in bytes.
        sha256: of all of them, in hex.
    """

    path: Path
    size: int
    sha256: str
    _tenant: int = field(default=0, repr=False)
    _pending: dict[str, int] = field(
        default_factory=dict, repr=False
    )  # key to the row that says it is being placed
    _named: set[str] = field(default_factory=set, repr=False)  # in transactions that may still be rolled back

    def discard(self) -> None:
        """Take the bytes back unless a row names them; call it in any case, outside of the transaction that names them."""
        self.path.unlink(missing_ok=True)
        while self._pending:
            _, pending = self._pending.popitem()
            with tenant_scope(self._tenant):
                PendingBlob.objects.filter(pk=pending).update(due_at=timezone.now())
            _settle_soon(self._tenant, pending)


def receive(chunks: Iterable[bytes], *, max_bytes: int) -> ReceivedFile:
    """Write a stream to this machine's disk while hashing it.

    Args:
        chunks: the bytes, in pieces of any size.
        max_bytes: refuse more, as soon as it is known.

    Raises:
        Invalid: ``too_large`` (413).
    """
    folder = Path(settings.MEDIA_ROOT) / "incoming"
    folder.mkdir(parents=True, exist_ok=True)
    for left in {folder, store().incoming or folder}:
        _sweep(left)
    digest, size = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(dir=folder, prefix="upload-", delete=False) as target:
        path = Path(target.name)
        try:
            for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise too_large(max_bytes)
                digest.update(chunk)
                target.write(chunk)
            target.flush()  # here, where a full disk is noticed in time to take the piece away again
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return ReceivedFile(path, size, digest.hexdigest())


def _sweep(folder: Path) -> None:
    """Remove what uploads left behind that were killed in the middle."""
    for path in folder.glob("upload-*"):
        with suppress(FileNotFoundError):  # its upload ended meanwhile
            if time.time() - path.stat().st_mtime > ABANDONED.total_seconds():
                path.unlink()


def too_large(max_bytes: int) -> Invalid:
    """Return the refusal of a file beyond the limit."""
    return Invalid(
        "too_large",
        _(
            "The file has more than %(size)s MB, which is the limit here. Split it, or ask the operator to raise "
            "GROUNDWORK_MAX_UPLOAD_MB."
        )
        % {"size": max_bytes // 1_000_000},
        status=413,
        data={"max_bytes": max_bytes},
    )


def key_lock(key: str) -> None:
    """Take the lock on a key until the transaction ends: placing a file and removing it never cross."""
    if not connection.in_atomic_block:
        raise RuntimeError("key_lock() belongs into a transaction")
    number = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


def keep(tenant_id: int, key: str, received: ReceivedFile) -> None:
    """Place received bytes at their key, before the transaction that names it; bytes that are there already stay.

    Args:
        key: ends with the SHA-256 of the bytes, or is used for these bytes alone.

    Raises:
        StoreAway: the store does not answer.
    """
    if not _inside.get():
        connections_let_go()  # and says so where a transaction is open
    with tenant_scope(tenant_id):
        with transaction.atomic():
            key_lock(key)
            row = PendingBlob.objects.create(tenant_id=tenant_id, key=key, due_at=timezone.now() + ABANDONED)
            _no_flush()
        received._tenant, received._pending[key] = tenant_id, row.pk
    if not _inside.get():
        connections_let_go()  # what follows may take as long as the file is large
    with _noting_away():
        if not (key.endswith(received.sha256) and store().size(key) == received.size):
            store().put(key, received.path)


def _no_flush() -> None:
    """Let this transaction's commit return before it is on disk: the commit that names the file makes it durable."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")


@contextmanager
def placing_inside() -> Iterator[None]:
    """Let the block place files inside of its transaction: for start-up alone, where nobody waits for what it holds.

    A process killed in it may leave bytes that no row names, and none that says so: ``ingestion_check`` finds them.
    """
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def name(received: ReceivedFile, key: str) -> None:
    """Note that a row names the key of kept bytes from now on, in the transaction that writes it.

    Bytes that were not kept are another's matter: see ``place_later``.

    Raises:
        Conflict: ``upload_expired``, placing them took so long that they were taken back.
    """
    pending = received._pending.get(key)
    if pending is None:
        return
    gone, _by_table = PendingBlob.objects.filter(pk=pending, removed_at=None).delete()
    if not gone and key not in received._named:
        raise Conflict("upload_expired", _("Storing this file took longer than a day. Send it again."))
    received._named.add(key)
    transaction.on_commit(lambda: received._pending.pop(key, None) and None)


def place_later(tenant_id: int, key: str) -> None:
    """Have bytes that rows hold placed at their key after the commit, in the transaction that names it.

    Until then ``lease`` takes them from the rows (``blobs.leases.rows_hold``).
    """
    drop(tenant_id, key)  # which looks, after the commit, what the key is in want of


def place_from_rows(tenant_id: int, key: str) -> bool:
    """Place what the store lacks of a key and rows hold; returns whether the key has bytes now.

    A key that no row names gets none: its removal may be over, and nothing would remove it again.

    Raises:
        StoreAway: the store does not answer.
    """
    with tenant_scope(tenant_id), transaction.atomic():
        key_lock(key)  # a removal that has not looked yet waits, and looks afterwards
        return bool(named(tenant_id, [key])) and _put_from_rows(key)


def _put_from_rows(key: str) -> bool:
    """Do so for a key whose lock is held and that rows name."""
    if store().size(key) is not None:
        return True
    try:
        with copied_from_rows(key) as path:
            store().put(key, path)
    except BlobMissing:
        return False
    return True


def drop(tenant_id: int, key: str) -> None:
    """Have a key's bytes removed after the commit, unless a row still names it.

    Args:
        key: with a slash at its end, all below it; nothing may be named or placed there ever again. "" is no file.
    """
    if not key:
        return
    if not is_key(key.removesuffix("/")):
        raise ValueError(f"{key!r} is no key of a file")
    row = PendingBlob.objects.create(tenant_id=tenant_id, key=key, due_at=timezone.now())
    transaction.on_commit(partial(_settle_soon, tenant_id, row.pk))


def _settle_soon(tenant_id: int, pending: int) -> None:
    """Settle what was just committed, unless the store was away a moment ago; what fails here the sweep does again."""
    if monotonic() < _away_until.get(settings.FILES_URL, 0.0):
        return
    try:
        with _noting_away():
            _settle(tenant_id, pending)
    except StoreAway as error:
        log.warning("blob_waits", pending=pending, reason=error.reason)
    except Exception:  # the commit stands, and what comes after it must go on
        log.exception("blob_not_settled", pending=pending)


@contextmanager
def _noting_away() -> Iterator[None]:
    """Remember that the store is away: a request that drops two hundred files waits for it once."""
    try:
        yield
    except StoreAway:
        _away_until[settings.FILES_URL] = monotonic() + AGAIN.total_seconds()
        raise


def _settle(tenant_id: int, pending: int) -> None:
    """Remove the bytes of a key that nobody places and no row names; or find that there is nothing to do."""
    with tenant_scope(tenant_id), transaction.atomic():
        waiting = PendingBlob.objects.filter(pk=pending, removed_at=None)
        key = waiting.values_list("key", flat=True).first()
        if key is None:
            return
        if not removal_may_begin():  # a backup copies what it may still name
            waiting.update(due_at=timezone.now() + AGAIN)
            return
        key_lock(key)
        row = waiting.select_for_update().first()
        if row is None:
            return
        if not key.endswith("/"):
            now = timezone.now()
            others = PendingBlob.objects.filter(key=key, removed_at=None, due_at__gt=now).exclude(pk=pending)
            # In this order: who was placing it a moment ago, and has committed since, is found among the names.
            is_placed = others.exists()
            is_wanted = bool(named(tenant_id, [key]))
            if is_wanted:
                _put_from_rows(key)
            if is_wanted or is_placed:
                row.delete()
                return
        # Inside the transaction, so that the key's lock is held until the bytes are gone; a server that is asked while
        # it is held waits only for one that places the same bytes. The store's client gives up by itself.
        if key.endswith("/"):
            store().remove_below(key)
        else:
            store().remove(key)
        row.removed_at = timezone.now()
        row.save(update_fields=["removed_at"])
    caches_drop(tenant_id, [key], is_at_once=True)


def sweeping_start() -> None:
    """Sweep in a thread of this process from now on, until it ends; never before the process forks."""
    begin_thread(pending_sweep, every_s=SWEEP_S, name="blob-sweep")


def pending_sweep(limit: int = 100) -> int:
    """Finish what crashes and an unreachable store have left; returns how many keys that were."""
    now = timezone.now()
    with platform_scope():
        PendingBlob.objects.filter(removed_at__lt=now - REMEMBERED).delete()
        due = PendingBlob.objects.filter(removed_at=None, due_at__lte=now - timedelta(seconds=2))
        found = list(due.order_by("due_at").values_list("tenant_id", "pk")[:limit])
    done = 0
    for tenant_id, pending in found:
        try:
            _settle(tenant_id, pending)
            done += 1
        except StoreAway as error:
            log.warning("blob_waits", pending=pending, reason=error.reason)
            with platform_scope():
                PendingBlob.objects.filter(removed_at=None, due_at__lte=now).update(due_at=now + AGAIN)
            return done
        except DatabaseError:
            raise
        except Exception:  # one that cannot be settled must not keep the others
            log.exception("blob_not_settled", pending=pending)
            with platform_scope():
                PendingBlob.objects.filter(pk=pending).update(due_at=now + AGAIN)
    return done
