"""Vectors and lexical rows of passages that came without them, as with an imported workspace: made from the stored passages.

The passages keep their numbers, which answers cite. Documents stay ready meanwhile; search finds what is done.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, QuerySet

from apps.collections.embedders.base import normalised
from apps.collections.index import terms
from apps.collections.index.billing import EmbeddingBill
from apps.collections.index.codes import code_kinds, late_note
from apps.collections.index.embedding import embedder_for
from apps.collections.index.large import indexes_consider
from apps.collections.index.spaces import vectors_insert
from apps.collections.models import Chunk, ChunkTerms, Collection, Document, DocumentStatus, Embedding
from apps.collections.pipeline.lexical_rows import INDEX_BATCH, form_choose
from apps.collections.pipeline.stage import IngestContext
from apps.collections.storage.rows import chunk_embedded_text, chunk_indexed_text
from budgets.ledger import BillingAccount
from jobs.context import JobCancelled
from jobs.services import job_enqueue
from tenancy.actors import system_actor

KIND = "collections.passages_index"
EMBED_BATCH = 64


def passages_later(collection: Collection) -> None:
    """Have a collection's passages indexed that lack it, in the current transaction."""
    job_enqueue(
        tenant=collection.tenant,
        actor=system_actor(collection.tenant_id),
        kind=KIND,
        payload={"collection": collection.pk},
        dedupe_key=f"passages:{collection.pk}",
        topic=f"collection:{collection.pk}",
    )


def passages_index(ctx: IngestContext, *, collection_id: int) -> None:
    """Index the passages of ready documents that lack it, a batch per transaction; goes on where a killed one stopped.

    Raises:
        DomainError: the embedder fails for good; what was made is kept.
        JobCancelled: the collection is gone.
    """
    while _words_written(ctx, collection_id):
        ctx.give_way()
    _vectors_write(ctx, collection_id)
    with transaction.atomic():
        ctx.hold()
        indexes_consider(_locked(collection_id))
        ctx.complete()


def _locked(collection_id: int) -> Collection:
    rows = Collection.objects.select_for_update(no_key=True, of=("self",)).select_related("tenant", "space")
    collection: Collection | None = rows.filter(pk=collection_id).first()
    if collection is None:
        raise JobCancelled(f"collection {collection_id} is gone")
    return collection


def _ready(collection_id: int) -> QuerySet[Document]:
    rows: QuerySet[Document] = Document.objects.filter(
        collection_id=collection_id, status=DocumentStatus.READY
    )
    return rows


def _words_written(ctx: IngestContext, collection_id: int) -> bool:
    """Write the lexical rows of the next passages; returns whether there were any."""
    ctx.check()
    with transaction.atomic():
        ctx.hold()
        collection = _locked(collection_id)
        lacking = ~Exists(ChunkTerms.objects.filter(chunk_id=OuterRef("pk")))
        waiting = Chunk.objects.filter(lacking, document__in=_ready(collection_id))
        first = waiting.order_by("document_id", "index").values_list("document_id", flat=True).first()
        if first is None:
            return False
        row = Document.objects.select_for_update(no_key=True).get(pk=first)
        done, known = terms.rows_size(collection=collection, document_id=row.pk)
        if not done:
            form_choose(row, collection)
        kinds = code_kinds(row.tenant_id)
        batch = list(Chunk.objects.filter(lacking, document=row).order_by("index")[:INDEX_BATCH])
        tokens = [
            terms.chunk_tokenise(chunk.pk, chunk_indexed_text(chunk), row.lexical_form, row.cover, kinds)
            for chunk in batch
        ]
        late_note(row.tenant_id, kinds)
        is_last = done + len(batch) == Chunk.objects.filter(document=row).count()
        if is_last and row.is_live:
            earlier = terms.rows_found(collection=collection, document_id=row.pk)
            terms.document_index(collection=collection, document_id=row.pk, chunks=tokens, earlier=earlier)
        else:
            terms.rows_write(collection=collection, document_id=row.pk, chunks=tokens, before=(done, known))
        row.lexical_count, row.code_form = done + len(batch), kinds.form
        row.save(update_fields=["lexical_count", "code_form", "language", "lexical_form"])
        ctx.advanced()
    return True


def _vectors_write(ctx: IngestContext, collection_id: int) -> None:
    collection = Collection.objects.select_related("space", "tenant").filter(pk=collection_id).first()
    if collection is None:
        raise JobCancelled(f"collection {collection_id} is gone")
    space = collection.space
    vector = Embedding.objects.filter(chunk_id=OuterRef("pk"), space=space)
    waiting = Chunk.objects.filter(~Exists(vector), document__in=_ready(collection_id))
    waiting = waiting.select_related("document").order_by("pk")
    if not waiting.exists():
        return
    embedder = embedder_for(space, tenant=collection.tenant)
    billing_account = BillingAccount(collection.tenant_id, None)
    while batch := list(waiting[:EMBED_BATCH]):
        ctx.check()
        texts = [chunk_embedded_text(chunk, chunk.document.cover) for chunk in batch]
        with EmbeddingBill(embedder, tenant=collection.tenant, billing_account=billing_account, texts=texts):
            vectors = embedder.embed_documents(texts)
        vectors = normalised(vectors, space.dimensions, len(batch), str(space))
        with transaction.atomic():
            ctx.hold()
            locked = _locked(collection_id)
            if locked.space_id != space.pk:
                raise JobCancelled(f"collection {collection_id} has another embedder")
            vectors_insert(space, batch, vectors)
            documents = {chunk.document_id for chunk in batch}
            counted = Embedding.objects.filter(chunk__document_id__in=documents, space=space)
            for pk, count in counted.values_list("chunk__document_id").annotate(n=Count("chunk")):
                Document.objects.filter(pk=pk).update(vector_count=count)
            ctx.advanced()
        ctx.give_way()
