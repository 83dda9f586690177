"""Vectors of a collection in more than one space: which spaces are written, what is missing, how two of them compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from django.db import connection, transaction
from django.db.models import Exists, OuterRef

from apps.collections.index.billing import EmbeddingBill, billing_account_of
from apps.collections.index.embedding import embedder_for
from apps.collections.models import Chunk, Collection, Embedding, EmbeddingSpace, SearchCase, SpaceSwap
from apps.collections.storage.bulk import packed_copy
from apps.collections.storage.packing import halfvec_rows, halfvec_text
from apps.collections.storage.rows import chunk_embedded_text
from budgets.ledger import BillingAccount
from jobs.context import JobCancelled
from tenancy.actors import Actor

BATCH = 128  # chunks per commit
SAMPLE = 40  # questions that two spaces are compared on
DEPTH = 10
DROP_BATCH = 5_000
OPEN = (SpaceSwap.Status.BUILDING, SpaceSwap.Status.READY, SpaceSwap.Status.SWITCHED)


class BuildContext(Protocol):
    """What a build needs of ``jobs.context.JobContext``."""

    job_id: int
    user_id: int | None

    def check(self) -> None:
        """Raise when the job must stop."""

    def give_way(self) -> None:
        """Raise between two commits when somebody else has the next turn."""

    def hold(self) -> None:
        """Raise unless this worker still holds the job."""

    def advanced(self) -> None:
        """Say that a step is finished for good."""

    def complete(self) -> None:
        """End the job in the current transaction."""


def spaces_written(collection: Collection) -> list[EmbeddingSpace]:
    """Return the spaces in which a new chunk gets a vector: the live one, and the other one of an open swap."""
    swap = (
        SpaceSwap.objects.select_related("from_space", "to_space")
        .filter(collection=collection, status__in=OPEN)
        .first()
    )
    spaces = [collection.space]
    if swap is not None:
        spaces += [s for s in (swap.from_space, swap.to_space) if s.pk != collection.space_id]
    return spaces


def vectors_insert(space: EmbeddingSpace, chunks: Sequence[Chunk], vectors: Any) -> int:
    """Insert the vectors of chunks that may have them already, in the caller's transaction; return how many were new.

    Args:
        chunks: of one collection.
        vectors: one for each chunk.
    """
    if not chunks:
        return 0
    return vectors_write(
        tenant_id=chunks[0].tenant_id,
        collection_id=chunks[0].collection_id,
        space_id=space.pk,
        chunk_ids=[chunk.pk for chunk in chunks],
        document_ids=[chunk.document_id for chunk in chunks],
        vectors=vectors,
        # A chunk that was deleted since it was read has no row to point at; its vector is not wanted any more.
        where="EXISTS (SELECT FROM collections_chunk c WHERE c.tenant_id = own_tenant() AND c.id = chunk_id FOR KEY SHARE)",
        suffix="ON CONFLICT DO NOTHING",
    )


def vectors_write(
    *,
    tenant_id: int,
    collection_id: int,
    space_id: int,
    chunk_ids: Sequence[int],
    document_ids: Sequence[int],
    vectors: Any,
    where: str = "true",
    suffix: str = "",
) -> int:
    """Insert vectors of chunks of one collection, in the caller's transaction; return how many.

    Args:
        vectors: as rows of an array, one for each chunk.
        where, suffix: see ``packed_copy``.

    Raises:
        ValueError: there are more chunks than vectors or fewer, or a vector is not of finite numbers.
    """
    if not len(chunk_ids) == len(document_ids) == len(vectors):
        raise ValueError(f"{len(vectors)} vectors for {len(chunk_ids)} chunks")
    return packed_copy(
        Embedding._meta.db_table,
        {
            "tenant_id": "int8",
            "chunk_id": "int8",
            "space_id": "int8",
            "collection_id": "int8",
            "document_id": "int8",
            "vector": "halfvec",
        },
        [halfvec_rows([tenant_id, chunk_ids, space_id, collection_id, document_ids], vectors)],
        where=where,
        suffix=suffix,
    )


def vectors_make(actor: Actor, collection: Collection, text: str) -> dict[int, Any]:
    """Return the vector of one text in each space that is written, by the space's id; outside a transaction.

    Args:
        actor: who pays.

    Raises:
        DomainError: an embedder cannot answer, or there is no money for it.
    """
    made = {}
    for space in spaces_written(collection):
        embedder = embedder_for(space, tenant=collection.tenant)
        with EmbeddingBill(
            embedder, tenant=collection.tenant, billing_account=billing_account_of(actor), texts=[text]
        ):
            made[space.pk] = embedder.embed_documents([text])[0]
    return made


def vectors_replace(collection: Collection, chunk: Chunk, vectors: Mapping[int, Any]) -> bool:
    """Give a chunk these vectors in place of all it has, in the caller's transaction.

    Args:
        collection: its row, locked by the caller, as is the chunk's against every reference to it.
        vectors: as ``vectors_make`` returned them.

    Returns:
        False, with nothing changed, when the spaces that are written are others by now.
    """
    spaces = spaces_written(collection)
    if {space.pk for space in spaces} != set(vectors):
        return False
    rows = Embedding.objects.filter(tenant_id=collection.tenant_id, chunk_id=chunk.pk)
    rows._raw_delete(rows.db)
    for space in spaces:
        vectors_insert(space, [chunk], [vectors[space.pk]])
    return True


def _waiting(collection: Collection, space: EmbeddingSpace) -> Any:
    vector = Embedding.objects.filter(chunk_id=OuterRef("pk"), space=space)
    return Chunk.objects.filter(collection=collection).filter(~Exists(vector))


def vectors_missing(collection: Collection, space: EmbeddingSpace) -> int:
    """Count the chunks of documents that are or were ready without a vector in a space.

    Chunks of a document whose ingestion is under way do not count: its own embed stage writes both spaces.
    """
    count: int = _waiting(collection, space).filter(document__live_from__isnull=False).count()
    return count


def swap_build(ctx: BuildContext, *, swap_id: int, index: Callable[[Collection], None] | None = None) -> None:
    """Make the vectors a swap lacks, compare both spaces, and mark it ready; safe to run again after a crash.

    Args:
        index: called when the vectors are there, to build what search needs to be as fast in the new space.

    Raises:
        DomainError: the embedder fails for good; what was made is kept.
        JobCancelled: the swap has ended.
    """
    swap = _swap(swap_id)
    collection = Collection.objects.select_related("space", "tenant").get(pk=swap.collection_id)
    embedder = embedder_for(swap.to_space, tenant=collection.tenant)
    billing_account = BillingAccount(collection.tenant_id, ctx.user_id)
    total = Chunk.objects.filter(collection=collection).count()
    done = total - _waiting(collection, swap.to_space).count()
    last = 0
    while True:
        ctx.check()
        waiting = _waiting(collection, swap.to_space).filter(pk__gt=last).select_related("document")
        batch = list(waiting.order_by("pk")[:BATCH])
        if not batch:
            if not last or not _waiting(collection, swap.to_space).exists():
                break
            last = 0  # what came in behind us
            continue
        texts = [chunk_embedded_text(chunk, chunk.document.cover) for chunk in batch]
        with EmbeddingBill(embedder, tenant=collection.tenant, billing_account=billing_account, texts=texts):
            vectors = embedder.embed_documents(texts)
        with _writing(ctx, swap):
            ctx.advanced()
            vectors_insert(swap.to_space, batch, vectors)
            done += len(batch)
            last = batch[-1].pk
            SpaceSwap.objects.filter(pk=swap.pk).update(done=done, total=max(total, done))
        ctx.give_way()
    if index is not None:
        index(collection)
    comparison = swap_compare(swap, collection, billing_account, ctx.check)
    with _writing(ctx, swap):
        SpaceSwap.objects.filter(pk=swap.pk).update(
            status=SpaceSwap.Status.READY, comparison=comparison, done=done, total=done
        )
        ctx.complete()


def _swap(swap_id: int) -> SpaceSwap:
    swap: SpaceSwap | None = (
        SpaceSwap.objects.select_related("from_space", "to_space")
        .filter(pk=swap_id, status=SpaceSwap.Status.BUILDING)
        .first()
    )
    if swap is None:
        raise JobCancelled(f"swap {swap_id} has ended")
    return swap


@contextmanager
def _writing(ctx: BuildContext, swap: SpaceSwap) -> Iterator[None]:
    """Open one transaction of a build: this worker holds the job, and the swap is still building."""
    with transaction.atomic():
        ctx.hold()
        rows = SpaceSwap.objects.select_for_update(no_key=True, of=("self",)).filter(
            pk=swap.pk, status=SpaceSwap.Status.BUILDING
        )
        if not rows.exists():
            raise JobCancelled(f"swap {swap.pk} has ended")
        yield


def swap_compare(
    swap: SpaceSwap, collection: Collection, billing_account: BillingAccount, check: Callable[[], None]
) -> dict[str, Any]:
    """Ask both spaces the same questions and tell how far they agree.

    The questions are the collection's saved search cases, then key points of chunks spread over it.

    Returns:
        ``questions``, ``overlap`` (mean share of the first ten that both find) and ``same_first`` (share of questions
        with the same best chunk), the last two None without questions; ``at`` in seconds since 1970.
    """
    questions = list(_questions(collection))
    if not questions:
        return {"questions": 0, "overlap": None, "same_first": None, "at": time.time()}
    found: list[list[list[int]]] = []
    for space in (swap.from_space, swap.to_space):
        embedder = embedder_for(space, tenant=collection.tenant)
        ranked = []
        for question in questions:
            check()
            with EmbeddingBill(
                embedder, tenant=collection.tenant, billing_account=billing_account, texts=[question]
            ):
                vector = embedder.embed_query(question)
            ranked.append(_nearest(collection, space, vector))
        found.append(ranked)
    pairs = list(zip(*found, strict=True))
    shared = [len(set(old) & set(new)) / max(1, min(len(old), len(new))) for old, new in pairs]
    same = [old[:1] == new[:1] for old, new in pairs]
    return {
        "questions": len(questions),
        "overlap": round(sum(shared) / len(shared), 4),
        "same_first": round(sum(same) / len(same), 4),
        "at": time.time(),
    }


def _questions(collection: Collection) -> Iterator[str]:
    cases = SearchCase.objects.filter(collection=collection).order_by("-pk")
    saved = list(cases.values_list("query", flat=True)[: SAMPLE // 2])
    yield from saved
    live = Chunk.objects.filter(
        collection=collection, document__status="ready", document__live_to__isnull=True
    )
    count = live.count()
    wanted = SAMPLE - len(saved)
    step = max(1, count // wanted) if wanted else 1
    for place in range(0, count, step)[:wanted]:
        chunk = live.order_by("pk").only("text", "key_points")[place : place + 1].get()
        yield (chunk.key_points[0] if chunk.key_points else chunk.text)[:300]


def _nearest(collection: Collection, space: EmbeddingSpace, vector: Any) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chunk_id FROM collections_embedding WHERE tenant_id = %s AND collection_id = %s "
            "AND space_id = %s ORDER BY vector <=> %s::halfvec, chunk_id LIMIT %s",
            [collection.tenant_id, collection.pk, space.pk, halfvec_text(vector), DEPTH],
        )
        return [row[0] for row in cursor.fetchall()]


def vectors_drop(ctx: BuildContext, *, swap_id: int) -> None:
    """Remove the vectors that an ended swap leaves behind, in batches; never those of the live space."""
    swap = SpaceSwap.objects.filter(pk=swap_id).first()
    if swap is None:
        raise JobCancelled(f"swap {swap_id} is gone")
    while True:
        ctx.check()
        with transaction.atomic():
            ctx.hold()
            live = (
                Collection.objects.select_for_update(no_key=True)
                .filter(pk=swap.collection_id)
                .values_list("space_id", flat=True)
                .get()
            )
            still = SpaceSwap.objects.filter(collection_id=swap.collection_id, status__in=OPEN)
            kept = {live}
            for one in still:
                kept |= {one.from_space_id, one.to_space_id}
            spare = {swap.from_space_id, swap.to_space_id} - kept
            with connection.cursor() as cursor:
                cursor.execute(
                    "DELETE FROM collections_embedding WHERE tenant_id = own_tenant() AND ctid = ANY (ARRAY (SELECT ctid FROM collections_embedding "
                    "WHERE tenant_id = %s AND collection_id = %s AND space_id = ANY (%s) LIMIT %s))",
                    [swap.tenant_id, swap.collection_id, sorted(spare), DROP_BATCH],
                )
                gone = cursor.rowcount
            if gone < DROP_BATCH:
                ctx.complete()
                return
        ctx.give_way()


def swap_failed(swap_id: int, job_id: int, message: str) -> None:
    """Mark a swap as failed together with its job, in that job's transaction."""
    SpaceSwap.objects.filter(pk=swap_id, job_id=job_id, status=SpaceSwap.Status.BUILDING).update(
        status=SpaceSwap.Status.FAILED, error_message=message
    )
