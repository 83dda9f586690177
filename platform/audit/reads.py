"""Note who read what documents say: one function at the edge for every door, one statement for each answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils.translation import gettext_lazy

from audit.models import AuditStream, ContentRead
from erasure.retention import UNKNOWN_SIZE, RetentionKind, Rows, Use
from tenancy import origin
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

MOST_DOCUMENTS: Final = 200
"""Ids of documents that one read names; an answer with more was a list of them."""
_PRUNED: Final = 5000
_NUMBERED: Final = 1000
_noted: ContextVar[dict[int, None] | None] = ContextVar("documents_read", default=None)

# Without waiting for the disk: the row is as safe from a kill of any of our processes, and lost only if the database's
# machine loses power within the same half second.
_INSERT = """
WITH quick AS (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO audit_contentread (tenant_id, door, kind, actor_kind, actor_name, user_id, api_key_id, objects_named,
    documents, ip, request_id)
SELECT %(tenant)s, %(door)s, %(kind)s, %(actor_kind)s, %(actor_name)s, %(user)s, %(key)s, %(named)s::jsonb,
    %(documents)s::bigint[], %(ip)s::inet, %(request)s FROM quick
"""


@contextmanager
def documents_noted() -> Iterator[dict[int, None]]:
    """Collect the documents that ``documents_note`` names inside the block, in their order, each once."""
    found: dict[int, None] = {}
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def documents_note(pks: Iterable[int]) -> None:
    """Tell from which documents an answer is being made; without effect outside of a request."""
    found = _noted.get()
    if found is not None:
        found.update(dict.fromkeys(pks))


def content_read(
    *, actor: Actor, door: str, kind: str, named: Mapping[str, Any], documents: Iterable[int] = ()
) -> None:
    """Write that an answer with content is about to be sent: one statement, whatever the number of documents.

    Args:
        door: name of the address.
        kind: of ``audit.content_addresses``.
        named: ids that the address named.
        documents: ids of those that were found; the first ``MOST_DOCUMENTS`` are kept.
    """
    where = origin.current()
    values: dict[str, Any] = {
        "tenant": actor.tenant_id,
        "door": door[:60],
        "kind": kind,
        "actor_kind": actor.kind,
        "actor_name": actor.name[:150],
        "user": actor.user_id,
        "key": actor.api_key_id,
        "named": json.dumps({k: v if isinstance(v, int) else str(v)[:100] for k, v in named.items()}),
        "documents": list(documents)[:MOST_DOCUMENTS],
        "ip": where.ip or None,
        "request": where.request_id[:36],
    }
    with tenant_scope(actor.tenant_id), connection.cursor() as cursor:
        cursor.execute(_INSERT, values)


def reads_number(tenant_id: int) -> None:
    """Give reads that have none their positions, in the order of their ids; those committed later get later ones.

    One at a time for each workspace. A reader that follows positions misses nothing, because each is given after its
    row was committed, and never changes.
    """
    with tenant_scope(tenant_id), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('audit_contentread'), %s)", [tenant_id % 2**31])
        cursor.execute(
            """
            UPDATE audit_contentread r SET seq = n.seq FROM (
                SELECT u.id, row_number() OVER (ORDER BY u.id) + coalesce(
                    (SELECT max(seq) FROM audit_contentread WHERE tenant_id = %(tenant)s), 0) AS seq
                FROM (SELECT id FROM audit_contentread WHERE tenant_id = %(tenant)s AND seq IS NULL
                    ORDER BY id LIMIT %(most)s) u
            ) n WHERE r.tenant_id = %(tenant)s AND r.id = n.id
            """,
            {"tenant": tenant_id, "most": _NUMBERED},
        )


def _rows() -> Rows:
    """Return the reads that have a position, but the newest of each workspace: positions go on from it."""
    later = ContentRead.objects.filter(tenant_id=OuterRef("tenant_id"), seq__gt=OuterRef("seq"))
    numbered = ContentRead.objects.filter(Exists(later), seq__isnull=False)
    found: Rows = numbered.annotate(since=F("at"), bytes=UNKNOWN_SIZE)
    return found


def _is_unsent(tenant_id: int) -> Q:
    streams = AuditStream.objects.filter(tenant_id=tenant_id, is_enabled=True, has_reads=True)
    return Q(Exists(streams.filter(read_seq__lt=OuterRef("seq"))))


def _remove(tenant: Tenant, rows: Rows) -> int:
    found = list(rows.values_list("pk", flat=True))
    return int(ContentRead.objects.filter(tenant=tenant, pk__in=found).delete()[0])


READS = RetentionKind(
    name="reads",
    label=gettext_lazy("Read audit"),
    what=gettext_lazy("who read which documents"),
    since=gettext_lazy("the read"),
    rows=_rows,
    column="at",
    remove=_remove,
    default_days=lambda: int(settings.READ_AUDIT_DAYS),
    longest_days=lambda: int(settings.READ_AUDIT_DAYS),
    fewest_days=30,
    step=_PRUNED,
    batch=_PRUNED,
)
UNSENT = Use(gettext_lazy("not sent to the audit stream yet"), _is_unsent)


def reads_unnumbered(tenant_id: int) -> bool:
    """Tell whether reads wait for their positions."""
    return bool(ContentRead.objects.filter(tenant_id=tenant_id, seq__isnull=True).exists())
