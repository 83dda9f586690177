"""Which codes a workspace's documents have, and how passages indexed before that changed are indexed again.

A passage's codes are in its lexical row. The document says in which form (``Document.code_form``): the version of what the
code recognises, and a digest of the workspace's patterns. Another form is made anew in the background, document by
document: no text is read again, no vector and no weight changes. Until then a document is found by its codes as they are
printed, and a search about codes says how many documents are behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import structlog
from django.db import connection, transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Concat

from apps.collections.index import terms
from apps.collections.ingestion.code_kinds import code_kinds_parse
from apps.collections.ingestion.codes import EVERYWHERE, FORM, CodeKinds
from apps.collections.models import Chunk, CodePatterns, Document, DocumentStatus
from apps.collections.storage.bulk import rows_copy
from apps.collections.storage.rows import chunk_indexed_text
from jobs.services import job_enqueue
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.scope import platform_scope, tenant_scope

KIND = "collections.codes_reindex"
_UP_TO = "@"  # then the last chunk that has the new form
BATCH = 1000  # chunks of one transaction
_KEPT = 200
_made: dict[str, CodeKinds] = {}  # compiled, by digest
log = structlog.get_logger(__name__)


class ReindexContext(Protocol):
    """What it needs of ``jobs.context.JobContext``."""

    def check(self) -> None:
        """Raise when the job must stop."""

    def give_way(self) -> None:
        """Raise between two commits when somebody else has the next turn."""

    def hold(self) -> None:
        """Raise unless this worker still holds the job."""

    def advanced(self) -> None:
        """Say that a step is finished for good."""


def code_kinds(tenant_id: int) -> CodeKinds:
    """Return the kinds of code of a workspace, as they are now."""
    row = CodePatterns.objects.filter(tenant_id=tenant_id).exclude(digest="").first()
    if row is None:
        return EVERYWHERE
    if row.digest not in _made:
        if len(_made) >= _KEPT:
            _made.clear()
        _made[row.digest] = code_kinds_parse(row.patterns, is_probed=False)
    return _made[row.digest]


def documents_behind(actor: Actor, scope: Sequence[int], form: str) -> int:
    """Count the ready documents of these collections whose codes are indexed in another form."""
    rows = Document.objects.visible_to(actor).current().filter(collection_id__in=scope)
    return _behind(rows, form).count()


def codes_reindex_enqueue(*, tenant: Tenant, actor: Actor) -> None:
    """Have the codes of a workspace's passages indexed in the form that holds now."""
    job_enqueue(tenant=tenant, actor=actor, kind=KIND, payload={}, dedupe_key="codes")


def codes_reindex(ctx: ReindexContext, *, tenant_id: int) -> int:
    """Index the codes of all documents that have another form; returns how many documents that were.

    It is safe to run again: a document that is done says so itself.
    """
    done = 0
    while True:
        kinds = code_kinds(tenant_id)
        rows = _behind(Document.objects.filter(tenant_id=tenant_id), kinds.form)
        document = rows.order_by("pk").first()
        if document is None:
            late_note(tenant_id, kinds)
            return done
        _document_reindex(ctx, document, kinds)
        done += 1


def _document_reindex(ctx: ReindexContext, document: Document, kinds: CodeKinds) -> None:
    """Index a document's codes again, a batch per transaction; how far it is stands in the place of its form."""
    is_done = False
    while not is_done:
        ctx.check()
        with transaction.atomic():
            ctx.hold()
            locked = Document.objects.select_for_update(no_key=True).filter(pk=document.pk)
            row = _behind(locked, kinds.form).first()
            if row is None or code_kinds(row.tenant_id).form != kinds.form:
                return  # deleted, being read again, or wanted in yet another form
            form, _, last = row.code_form.partition(_UP_TO)
            after = int(last) if last and form == kinds.form else 0
            rows = Chunk.objects.filter(document=row, pk__gt=after).order_by("pk")
            chunks = list(rows[:BATCH])
            _write(row, {chunk.pk: terms.lexemes_of(chunk_indexed_text(chunk), kinds) for chunk in chunks})
            is_done = len(chunks) < BATCH
            row.code_form = kinds.form if is_done else f"{kinds.form}{_UP_TO}{chunks[-1].pk}"
            row.save(update_fields=["code_form"])
            ctx.advanced()
        ctx.give_way()


def _write(document: Document, lexemes: dict[int, tuple[str, ...]]) -> None:
    """Replace the lexemes of chunks, where they are others than before."""
    if not lexemes:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE codes_again (chunk_id int8 PRIMARY KEY, lexemes text[]) ON COMMIT DROP"
        )
    rows_copy(
        "codes_again",
        {"chunk_id": "int8", "lexemes": "text[]"},
        ((pk, list(found)) for pk, found in lexemes.items()),
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE collections_chunkterms t SET lexemes = array_to_tsvector(a.lexemes) FROM pg_temp.codes_again a "
            "WHERE t.chunk_id = a.chunk_id AND t.tenant_id = %s AND t.lexemes <> array_to_tsvector(a.lexemes)",
            [document.tenant_id],
        )
        cursor.execute("DROP TABLE codes_again")


def late_note(tenant_id: int, kinds: CodeKinds) -> None:
    """Write down which patterns took too long: codes of theirs may be missing from the index."""
    if kinds.late:
        log.warning("code_patterns_late", tenant=tenant_id, kinds=kinds.late)
        rows = CodePatterns.objects.filter(tenant_id=tenant_id).exclude(late=kinds.late)
        rows.update(late=kinds.late)


def codes_sweep() -> int:
    """Have documents of another form indexed again, after an upgrade for example."""
    digest = CodePatterns.objects.filter(tenant=OuterRef("tenant")).exclude(digest="")
    wanted = Coalesce(
        Subquery(digest.annotate(form=Concat(Value(f"{FORM}."), "digest")).values("form")), Value(str(FORM))
    )
    with platform_scope():
        rows = _indexed(Document.objects.all()).annotate(wanted=wanted).exclude(code_form=F("wanted"))
        tenants = list(Tenant.objects.filter(is_active=True, pk__in=rows.values("tenant_id")))
    for tenant in tenants:
        with tenant_scope(tenant.pk):
            codes_reindex_enqueue(tenant=tenant, actor=system_actor(tenant.pk))
    return len(tenants)


def _indexed(rows: QuerySet[Document]) -> QuerySet[Document]:
    return rows.filter(status=DocumentStatus.READY, lexical_count__gt=0)


def _behind(rows: QuerySet[Document], form: str) -> QuerySet[Document]:
    return _indexed(rows).filter(~Q(code_form=form))


def code_patterns_get(*, actor: Actor) -> CodePatterns | None:
    """Return the workspace's own patterns, None when it has none."""
    actor.require("collection.read")
    row: CodePatterns | None = CodePatterns.objects.visible_to(actor).first()
    return row


__all__ = [
    "KIND",
    "code_kinds",
    "code_patterns_get",
    "codes_reindex",
    "codes_reindex_enqueue",
    "codes_sweep",
    "documents_behind",
    "late_note",
]
