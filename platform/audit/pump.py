"""Send streams on: a thread of each worker, one worker at a time for each stream, each batch until it has arrived.

A stream's positions move only after the receiver has the batch, so whatever is killed in between sends it again: at
least once, in order. A lease of a minute keeps two workers from one stream; the positions are written by whoever holds it.
"""

from __future__ import annotations

import secrets
import time
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from audit.models import AuditStream
from audit.selectors import StreamPlace, owners_reader, stream_batch
from audit.services import stream_secret, streams_of_operator_ensure
from audit.sinks import NotTaken, file_take, syslog_take, webhook_take
from basics.net_policy import NetPolicy
from basics.texts import gettext as _
from tenancy import crypto
from tenancy.outgoing import outgoing_policy
from tenancy.scope import platform_scope, tenant_scope
from tenancy.threads import begin_thread

log = structlog.get_logger(__name__)
LOOK_S: Final = 2.0
BATCH: Final = 200
ROUND_BATCHES: Final = 50
LEASE: Final = timedelta(seconds=60)
ENSURE_S: Final = 30.0
PAUSES_S: Final = (2, 10, 60, 300)

_ensured: tuple[str | None, float] = (None, 0.0)  # by which setting and when, by the clock of this process

# Streams that have something to send: the head of the chain is ahead, or a read is without a position or ahead.
_DUE = """
SELECT s.id, s.tenant_id FROM audit_auditstream s
LEFT JOIN tenancy_auditchain c ON c.tenant_id = s.tenant_id
WHERE s.is_enabled AND s.next_at <= now() AND (s.lease_until IS NULL OR s.lease_until < now())
    AND (coalesce(c.seq, 0) > s.event_seq OR (s.has_reads AND (
        EXISTS (SELECT 1 FROM audit_contentread r WHERE r.tenant_id = s.tenant_id AND r.seq IS NULL)
        OR EXISTS (SELECT 1 FROM audit_contentread r WHERE r.tenant_id = s.tenant_id AND r.seq > s.read_seq))))
ORDER BY s.next_at, s.id LIMIT 100
"""


def pump_start() -> None:
    """Send in a thread of this process from now on, until it ends; never before the process forks."""
    begin_thread(pump_round, every_s=LOOK_S, name="audit-streams")


def pump_round() -> int:
    """Send what is due; returns how many events arrived."""
    global _ensured
    # It looks at every workspace, so not at each round: a new one's events wait for it, and none is lost.
    if _ensured[0] != settings.AUDIT_STREAM or time.monotonic() - _ensured[1] >= ENSURE_S:
        streams_of_operator_ensure()
        _ensured = settings.AUDIT_STREAM, time.monotonic()
    with platform_scope():
        due = [(row.pk, row.tenant_id) for row in AuditStream.objects.raw(_DUE)]
    return sum(stream_send(pk, tenant_id) for pk, tenant_id in due)


def stream_send(pk: int, tenant_id: int) -> int:
    """Send a stream's events until there is none, or one batch isn't taken; returns how many arrived."""
    lease = secrets.token_hex(16)
    sent = 0
    with tenant_scope(tenant_id):
        if not _leased(pk, lease):
            return 0
        stream = AuditStream.objects.select_related("tenant").get(pk=pk)
        reader = None if stream.is_operators else owners_reader(tenant_id)
        try:
            for _ in range(ROUND_BATCHES):
                place = StreamPlace(stream.event_seq, stream.read_seq)
                batch = stream_batch(
                    stream.tenant, place, most=BATCH, has_reads=stream.has_reads, reader=reader
                )
                if not batch.events:
                    break
                if not _renewed(pk, lease):
                    return sent
                take(stream, batch.events)
                if not _arrived(stream, lease, batch.place, len(batch.events)):
                    return sent  # another worker has it: this one was away for longer than the lease
                sent += len(batch.events)
                if not batch.has_more:
                    break
        except NotTaken as error:
            _failed(stream, lease, error.reason)
        finally:
            AuditStream.objects.filter(pk=pk, lease=lease).update(lease="", lease_until=None)
    return sent


def take(stream: AuditStream, events: list[dict[str, object]]) -> None:
    """Give a batch to the stream's receiver. Raises NotTaken."""
    if stream.is_operators:
        url, policy = settings.AUDIT_STREAM, None
    else:
        url, policy = stream.url, outgoing_policy(stream.tenant_id)
    scheme = urlsplit(url).scheme
    if scheme == "file" and stream.is_operators:
        file_take(Path(unquote(urlsplit(url).path)), events)
    elif scheme.startswith("syslog+"):
        syslog_take(url, events, policy=policy)
    else:
        try:
            keys = stream_secret(stream)
        except crypto.DecryptionError as error:
            raise NotTaken(_("The stream's secret can no longer be read. Add the stream again.")) from error
        webhook_take(url, keys, events, slug=stream.tenant.slug, policy=policy or _anywhere())


def _anywhere() -> NetPolicy:
    """The operator's own receiver may be wherever the operator says."""
    return NetPolicy.of(["0.0.0.0/0", "::/0"])


def _leased(pk: int, lease: str) -> bool:
    now = timezone.now()
    free = Q(lease_until__isnull=True) | Q(lease_until__lt=now)
    rows = AuditStream.objects.filter(free, pk=pk, is_enabled=True)
    return bool(rows.update(lease=lease, lease_until=now + LEASE))


def _renewed(pk: int, lease: str) -> bool:
    """Hold the stream for another minute, while a batch is sent; tell whether it still is ours.

    The events were read when they could be seen, which may be a moment before they are on disk. This commit comes after
    theirs in the log, so it is there only when they are: no receiver has what a crash could take back here.
    """
    return bool(AuditStream.objects.filter(pk=pk, lease=lease).update(lease_until=timezone.now() + LEASE))


def _arrived(stream: AuditStream, lease: str, place: StreamPlace, count: int) -> bool:
    now = timezone.now()
    stream.event_seq, stream.read_seq = place.event_seq, place.read_seq
    with transaction.atomic():
        changed = AuditStream.objects.filter(pk=stream.pk, lease=lease).update(
            event_seq=place.event_seq,
            read_seq=place.read_seq,
            sent_count=F("sent_count") + count,
            last_sent_at=now,
            failures=0,
            error="",
            lease_until=now + LEASE,
        )
    return bool(changed)


def _failed(stream: AuditStream, lease: str, reason: str) -> None:
    pause = PAUSES_S[min(stream.failures, len(PAUSES_S) - 1)]
    AuditStream.objects.filter(pk=stream.pk, lease=lease).update(
        failures=F("failures") + 1,
        error=reason,
        next_at=timezone.now() + timedelta(seconds=pause),
    )
    log.warning("audit_stream_not_taken", stream=stream.pk, kind=stream.kind, reason=reason)
