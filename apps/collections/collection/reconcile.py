"""Reconcile what a tenant's rows claim with what tables and disk hold: find what is lost, doubled or orphaned, repair it.

Each kind of finding is one statement over a collection, so that a check of a hundred thousand chunks takes seconds. A
repair never invents content: it counts again, puts work back into the queue, or removes what nothing points to.
"""

# ruff: noqa: S608 - only constants of this module stand in the text
from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.collections.documents.services import document_enqueue
from apps.collections.documents.versions import document_reindex
from apps.collections.index import terms
from apps.collections.index.spaces import spaces_written
from apps.collections.models import (
    Collection,
    Document,
    DocumentStatus,
    FileBlob,
    FileRevision,
    Import,
    RepositoryPack,
)
from apps.collections.storage import originals as files
from apps.collections.storage.job_locks import collection_lock, document_lock
from apps.collections.storage.ledger import ledger_agrees, ledger_count
from basics.errors import DomainError, Missing
from blobs.keys import is_key
from blobs.models import PendingBlob
from blobs.references import named
from blobs.services import drop, place_from_rows
from blobs.stores import store
from jobs.models import ACTIVE, Job
from tenancy.actors import Actor
from tenancy.models import Tenant

GRACE_S = 3600  # younger files may belong to a transaction that is still open


@dataclass(frozen=True, slots=True)
class RepairFinding:
    """One thing that is wrong.

    Attributes:
        code: ``stuck``, ``ledger``, ``statistics``, ``vectors_left``, ``original_missing``, ``original_orphaned``,
            ``images_orphaned``, ``upload_abandoned``, ``contents_orphaned``.
        subject: what it is about, for a person.
        detail: what is wrong with it.
        is_repaired: it was put right.
        advice: what to do about what cannot be put right here.
    """

    code: str
    subject: str
    detail: str
    is_repaired: bool = False
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at and what was found."""

    documents: int
    chunks: int
    findings: list[RepairFinding]

    @property
    def open(self) -> list[RepairFinding]:
        """Return what is still wrong."""
        return [finding for finding in self.findings if not finding.is_repaired]


def ingestion_check(
    *,
    tenant: Tenant,
    actor: Actor,
    collection: Collection | None = None,
    repair: bool = False,
    on_collection: Callable[[Collection], None] | None = None,
) -> Check:
    """Check one collection, or all of a tenant's with its files on disk.

    Args:
        repair: put right what can be; everything else stays a finding with advice.
        on_collection: called before each collection, for progress.

    Raises:
        Denied: the actor may not write documents.
    """
    actor.require("document.write")
    found: list[RepairFinding] = []
    rows = Collection.objects.filter(tenant=tenant).order_by("pk")
    if collection is not None:
        rows = rows.filter(pk=collection.pk)
    documents = chunks = 0
    for row in rows:
        if on_collection is not None:
            on_collection(row)
        for step in (_stuck, _ledgers, _statistics, _vectors_left):
            found += step(tenant, actor, row, repair)
        documents += Document.objects.filter(collection=row).count()
        chunks += row.chunk_total
    if collection is None:
        found += _files(tenant, repair)
        found += _contents(tenant, repair)
    return Check(documents, chunks, found)


def _stuck(tenant: Tenant, actor: Actor, collection: Collection, repair: bool) -> Iterator[RepairFinding]:
    """Find documents that wait or run without a job that will ever end them."""
    job = Job.objects.filter(pk=OuterRef("job_id"), status__in=ACTIVE)
    stuck = Document.objects.filter(
        ~Exists(job), collection=collection, status__in=[DocumentStatus.QUEUED, DocumentStatus.PROCESSING]
    )
    for document in stuck.order_by("pk"):
        if repair:
            with transaction.atomic():
                row = document_lock(tenant, document)
                row.status = DocumentStatus.QUEUED
                document_enqueue(tenant, actor, row)
        yield RepairFinding(
            "stuck",
            document.path,
            _("Its status is “%(status)s”, but no job is working on it.") % {"status": document.status},
            repair,
        )


def _ledgers(tenant: Tenant, actor: Actor, collection: Collection, repair: bool) -> Iterator[RepairFinding]:
    """Find ready documents whose rows are not what their counts say, or that a space lacks vectors of."""
    spaces = spaces_written(collection)
    ready = Document.objects.filter(collection=collection, status=DocumentStatus.READY)
    for document in ready.order_by("pk").iterator(chunk_size=500):
        ledger = ledger_count(document, collection.space_id)
        lacking = [s for s in spaces if ledger_count(document, s.pk).vectors != ledger.chunks]
        if ledger_agrees(document, ledger) and not lacking:
            continue
        detail = _(
            "The row says %(chunks)s passages, %(vectors)s vectors, %(lexical)s lexical rows; found %(found_chunks)s, "
            "%(found_vectors)s, %(found_lexical)s."
        ) % {
            "chunks": document.chunk_count,
            "vectors": document.vector_count,
            "lexical": document.lexical_count,
            "found_chunks": ledger.chunks,
            "found_vectors": ledger.vectors,
            "found_lexical": ledger.lexical,
        }
        if lacking and ledger.vectors == ledger.chunks:
            detail = _("Vectors are missing in %(spaces)s.") % {"spaces": ", ".join(map(str, lacking))}
        if not repair:
            yield RepairFinding("ledger", document.path, detail)
            continue
        if ledger.is_balanced and not lacking:
            Document.objects.filter(pk=document.pk).update(
                page_count=ledger.pages,
                skipped_pages=ledger.skipped,
                chunk_count=ledger.chunks,
                vector_count=ledger.vectors,
                lexical_count=ledger.lexical,
            )
            yield RepairFinding("ledger", document.path, f"{detail} {_('Recounted.')}", is_repaired=True)
        elif document.live_to is not None:
            yield RepairFinding(
                "ledger",
                document.path,
                detail,
                advice=_("This is the earlier version %(version)s. Delete or restore it.")
                % {"version": document.version},
            )
        else:
            yield _read_again(tenant, actor, document, detail)


def _read_again(tenant: Tenant, actor: Actor, document: Document, detail: str) -> RepairFinding:
    try:
        document_reindex(tenant=tenant, actor=actor, document=document)
    except Missing:
        gone = _("It has been deleted in the meantime.")
        return RepairFinding("ledger", document.path, f"{detail} {gone}", is_repaired=True)
    except DomainError as error:
        return RepairFinding("ledger", document.path, detail, advice=error.message)
    again = _("It is being read again.")
    return RepairFinding("ledger", document.path, f"{detail} {again}", is_repaired=True)


_COUNTED = """
    WITH counted AS MATERIALIZED (
        SELECT t.length, t.weights FROM collections_chunkterms t
        JOIN collections_document d ON d.tenant_id = t.tenant_id AND d.id = t.document_id
        WHERE t.tenant_id = %(tenant)s AND t.collection_id = %(collection)s AND d.live_from IS NOT NULL AND d.live_to IS NULL),
    frequencies AS (
        SELECT (split_part(entry, ':', 1)::int - 1) AS term, count(*) AS chunks
        FROM counted, unnest(string_to_array(trim(BOTH '{}' FROM split_part(weights::text, '/', 1)), ',')) AS entry
        WHERE entry <> '' GROUP BY 1)
"""


def _statistics(
    tenant: Tenant, actor: Actor, collection: Collection, repair: bool
) -> Iterator[RepairFinding]:
    """Compare the statistics of the lexical leg with the rows they count."""
    values: dict[str, Any] = {"collection": collection.pk, "tenant": tenant.pk}
    with transaction.atomic(), connection.cursor() as cursor:
        row = collection_lock(tenant, collection.pk)
        cursor.execute(_COUNTED + "SELECT count(*), coalesce(sum(length), 0) FROM counted", values)
        chunks, total = cursor.fetchone()
        cursor.execute(
            _COUNTED
            + """SELECT count(*) FROM frequencies s FULL JOIN
                 (SELECT * FROM collections_termfrequency WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s) f ON f.term = s.term
                 WHERE s.chunks IS DISTINCT FROM f.chunks""",
            values,
        )
        wrong = cursor.fetchone()[0]
        if (chunks, total, wrong) == (row.chunk_total, row.term_total, 0):
            return
        if repair:
            cursor.execute(
                "DELETE FROM collections_termfrequency WHERE tenant_id = %(tenant)s AND collection_id = %(collection)s",
                values,
            )
            cursor.execute(
                _COUNTED
                + """INSERT INTO collections_termfrequency (tenant_id, collection_id, term, chunks)
                     SELECT %(tenant)s, %(collection)s, term, chunks FROM frequencies""",
                values,
            )
            was = row.chunk_total, row.term_total
            row.chunk_total, row.term_total = chunks, total
            row.save(update_fields=["chunk_total", "term_total"])
            if chunks:
                terms.weights_rescale(collection=row, average=total / chunks)
        else:
            was = row.chunk_total, row.term_total
    yield RepairFinding(
        "statistics",
        collection.name,
        _(
            "The statistics say %(chunks)s passages with %(terms)s terms; found %(found_chunks)s with %(found_terms)s, and "
            "%(wrong)s terms are counted wrongly."
        )
        % {
            "chunks": was[0],
            "terms": was[1],
            "found_chunks": chunks,
            "found_terms": total,
            "wrong": wrong,
        },
        repair,
    )


def _vectors_left(
    tenant: Tenant, actor: Actor, collection: Collection, repair: bool
) -> Iterator[RepairFinding]:
    """Find vectors in spaces that the collection does not use."""
    spaces = [space.pk for space in spaces_written(collection)]
    where = "FROM collections_embedding WHERE tenant_id = %s AND collection_id = %s AND space_id <> ALL (%s)"
    with transaction.atomic(), connection.cursor() as cursor:
        collection_lock(tenant, collection.pk)
        cursor.execute(f"SELECT count(*) {where}", [tenant.pk, collection.pk, spaces])
        left = cursor.fetchone()[0]
        if left and repair:
            cursor.execute(f"DELETE {where}", [tenant.pk, collection.pk, spaces])
    if left:
        yield RepairFinding(
            "vectors_left",
            collection.name,
            _("%(count)s vectors are in a space that is not used.") % {"count": left},
            repair,
        )


def _files(tenant: Tenant, repair: bool) -> Iterator[RepairFinding]:
    """Compare the tenant's originals and page images on disk with the documents."""
    there = {kept.key: kept for kept in store().below(f"t{tenant.pk}/")}
    keys = set(Document.objects.filter(tenant=tenant).values_list("file", flat=True))
    keys |= set(Import.objects.filter(tenant=tenant).exclude(file="").values_list("file", flat=True))
    packs = RepositoryPack.objects.filter(tenant=tenant).select_related("repository__collection")
    for pack in packs.order_by("pk"):
        keys |= {pack.file, pack.index}
        if not {pack.file, pack.index} <= set(there):
            yield RepairFinding(
                "original_missing",
                _("%(collection)s: history of %(repository)s")
                % {"collection": pack.repository.collection.name, "repository": pack.repository},
                _("A pack of the repository is missing from storage; its files and search still work."),
                advice=_("Import the repository again, or restore the storage from a backup."),
            )
    for key in sorted(keys):
        is_waiting = PendingBlob.objects.filter(tenant=tenant, key=key, removed_at=None).exists
        if key not in there and not is_waiting() and not (repair and place_from_rows(tenant.pk, key)):
            paths = Document.objects.filter(tenant=tenant, file=key).values_list("path", flat=True)
            for path in paths:
                yield RepairFinding(
                    "original_missing",
                    path,
                    _("The original is missing from storage; search and the text of its pages still work."),
                    advice=_("Upload the same file again under this name, or restore it from a backup."),
                )
    old = timezone.now() - timedelta(seconds=GRACE_S)
    there |= {kept.key: kept for kept in store().below(f"datasets/t{tenant.pk}/")}
    for key in sorted(there.keys() - named(tenant.pk, there)):
        if there[key].changed_at > old:
            continue
        is_ours = is_key(key)
        if repair and is_ours:
            with transaction.atomic():
                drop(tenant.pk, key)  # which asks once more whether a row names it
        yield RepairFinding(
            "original_orphaned",
            key,
            _("%(size)s bytes that belong to no document.") % {"size": there[key].size},
            repair and is_ours,
            advice="" if is_ours else _("Groundwork didn't write this file. Delete it yourself."),
        )
    for folder in files.pages_orphaned(tenant.pk):
        if _is_old(folder):
            if repair:
                shutil.rmtree(folder, ignore_errors=True)
            yield RepairFinding(
                "images_orphaned", folder.name, _("Page images that belong to no document."), repair
            )


def _contents(tenant: Tenant, repair: bool) -> Iterator[RepairFinding]:
    """Find bytes in the history of files that no change names any more."""
    used = FileRevision.objects.filter(Q(before_id=OuterRef("pk")) | Q(after_id=OuterRef("pk")))
    left = FileBlob.objects.filter(~Exists(used), tenant=tenant).defer("content")
    for blob in left.order_by("pk"):
        if repair:
            FileBlob.objects.filter(pk=blob.pk).delete()
        detail = _("%(size)s bytes in the history of files that no change names.") % {"size": blob.size}
        yield RepairFinding("contents_orphaned", blob.sha256[:12], detail, repair)


def _is_old(original: Path) -> bool:
    try:
        return time.time() - original.stat().st_mtime > GRACE_S
    except FileNotFoundError:
        return False
