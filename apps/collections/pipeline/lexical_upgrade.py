"""Terms of documents made again, from the stored passages, when this version makes others of the same text.

Until then a document answers as before: a question is asked in every form that the rows of a collection have
(``Collection.lexical_forms``), so rows and questions never differ.
"""

from __future__ import annotations

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import transaction
from django.db.models import Q, QuerySet

from apps.collections.index import terms
from apps.collections.index.large import indexes_consider
from apps.collections.ingestion.lexical import LANGUAGES, form_of, is_current
from apps.collections.models import Chunk, Collection, Document, DocumentStatus, SearchIndex
from apps.collections.pipeline.lexical_rows import form_choose
from apps.collections.pipeline.stage import IngestContext
from apps.collections.storage.rows import chunk_indexed_text
from jobs.context import JobCancelled
from jobs.services import job_enqueue
from tenancy.actors import system_actor
from tenancy.scope import platform_scope, tenant_scope

KIND = "collections.terms_upgrade"
BATCH = 200  # chunks of one transaction
_CURRENT = [form_of(language) for language in LANGUAGES]
_DONE = "terms_upgraded"  # in ``Document.metadata`` while it goes on: chunks that have their new terms


def terms_sweep() -> int:
    """Have collections with terms of an earlier form upgraded."""
    with platform_scope():
        behind = Collection.objects.filter(tenant__is_active=True).select_related("tenant")
        found = list(behind.exclude(lexical_forms__contained_by=_CURRENT))
    for collection in found:
        with tenant_scope(collection.tenant_id):
            job_enqueue(
                tenant=collection.tenant,
                actor=system_actor(collection.tenant_id),
                kind=KIND,
                payload={"collection": collection.pk},
                dedupe_key=f"terms:{collection.pk}",
                topic=f"collection:{collection.pk}",
            )
    return len(found)


def terms_upgrade(ctx: IngestContext, *, collection_id: int) -> None:
    """Upgrade all documents of a collection, a batch of chunks per transaction; goes on where a killed one stopped.

    Raises:
        JobCancelled: the collection is gone.
    """
    while (pk := _behind(collection_id).order_by("pk").values_list("pk", flat=True).first()) is not None:
        ctx.check()
        with transaction.atomic():
            ctx.hold()
            collection = _locked(collection_id)
            row = _behind(collection_id).select_for_update(no_key=True).filter(pk=pk).first()
            if row is not None:
                _batch(collection, row)
            ctx.advanced()
        ctx.give_way()
    with transaction.atomic():
        ctx.hold()
        collection = _locked(collection_id)
        ready = Document.objects.filter(collection_id=collection_id, status=DocumentStatus.READY)
        if not _behind(collection_id).exists():
            # Rows of a document that is not ready are in no search; the transaction that opens it notes its form.
            forms = ready.aggregate(forms=ArrayAgg("lexical_form", distinct=True, default=[]))["forms"]
            collection.lexical_forms = sorted(forms)
            collection.save(update_fields=["lexical_forms"])
            indexes_consider(collection)
        ctx.complete()


def _locked(collection_id: int) -> Collection:
    rows = Collection.objects.select_for_update(no_key=True, of=("self",)).select_related("tenant")
    collection: Collection | None = rows.filter(pk=collection_id).first()
    if collection is None:
        raise JobCancelled(f"collection {collection_id} is gone")
    return collection


def _behind(collection_id: int) -> QuerySet[Document]:
    """Return the documents whose rows are not all of a current form; those under way are taken when they are ready."""
    rows: QuerySet[Document] = Document.objects.filter(
        ~Q(lexical_form__in=_CURRENT) | Q(metadata__has_key=_DONE),
        collection_id=collection_id,
        status=DocumentStatus.READY,
    )
    return rows


def _batch(collection: Collection, row: Document) -> None:
    """Make the terms of some chunks again; both rows are locked by the caller."""
    if not is_current(row.lexical_form):
        # From now on an edited passage gets the new form; the collection is asked in the old one too until the end.
        form_choose(row, collection)
        row.metadata = {**row.metadata, _DONE: 0}
        # Postings hold weights of their own: search scans until they are built again.
        SearchIndex.objects.filter(collection=collection, kind=SearchIndex.Kind.POSTINGS).delete()
    done = int(row.metadata[_DONE])
    chunks = list(Chunk.objects.filter(document=row, index__gte=done).order_by("index")[:BATCH])
    terms.terms_replace(
        collection=collection,
        chunks=[
            terms.chunk_tokenise(chunk.pk, chunk_indexed_text(chunk), row.lexical_form, row.cover)
            for chunk in chunks
        ],
        is_counted=row.is_live,
    )
    row.metadata = {key: value for key, value in row.metadata.items() if key != _DONE}
    if len(chunks) == BATCH:
        row.metadata[_DONE] = chunks[-1].index + 1
    row.save(update_fields=["language", "lexical_form", "metadata"])
