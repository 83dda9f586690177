"""Several workers and people in one collection at once: no deadlock, no wrong count."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from apps.collections.collection import services as collection_services
from apps.collections.display import selectors
from apps.collections.documents import services as documents_services
from apps.collections.index import terms
from apps.collections.models import Chunk, ChunkTerms, Collection, Document, Embedding
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, NotWaiting, attempt, ingest, upload
from tests.collections.pipeline.test_run import counted_again, statistics
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def together(cast: Cast, *actions: Callable[[], object]) -> Iterator[None]:
    """Run actions at the same moment, each on a thread with its own connection, and pass their errors on."""
    barrier, errors = threading.Barrier(len(actions)), []

    def run(action: Callable[[], object]) -> None:
        try:
            with tenant_scope(cast.tenant.pk):
                barrier.wait(PATIENCE_S)
                action()
        except Exception as error:  # noqa: BLE001 - raised below, on the test's own thread
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"
    if errors:
        raise errors[0]
    yield


def text(number: int) -> bytes:
    return LAMPS * 3 + b"\n\n# Part %d\n\nThe words of number %d alone." % (number, number)


def test_statistics_are_exact_when_documents_come_and_go_at_once(cast: Cast, collection: Collection) -> None:
    actor = cast.actor("member")
    with tenant_scope(cast.tenant.pk):
        going = [ingest(cast, collection, f"old{n}.md", text(n)) for n in range(3)]
        coming = [upload(cast, collection, f"new{n}.md", text(10 + n)) for n in range(4)]

    def delete(document: Document) -> Callable[[], object]:
        return lambda: documents_services.document_delete(tenant=cast.tenant, actor=actor, document=document)

    def work(document: Document) -> Callable[[], object]:
        return lambda: attempt(document)

    with together(cast, *map(work, coming), *map(delete, going)), tenant_scope(cast.tenant.pk):
        assert set(Document.objects.values_list("status", flat=True)) == {"ready"}
        assert Document.objects.count() == 4
        assert statistics(collection) == counted_again(collection)
        for document in coming:
            document.refresh_from_db()
            document.collection = collection
            assert selectors.document_ledger(actor=actor, document=document).agrees


def test_weights_are_rewritten_on_a_connection_that_was_just_opened(
    cast: Cast, collection: Collection
) -> None:
    """A worker that takes over at the index stage has never sent or read a vector on its connection."""
    with tenant_scope(cast.tenant.pk):
        ingest(cast, collection, "a.md", LAMPS)
        before = ChunkTerms.objects.order_by("pk")[0].weights.values()
        connection.close()
        with transaction.atomic():
            locked = Collection.objects.select_for_update().get(pk=collection.pk)
            terms.weights_rescale(collection=locked, average=locked.average_length * 3)
        assert ChunkTerms.objects.order_by("pk")[0].weights.values() != before


def test_nothing_is_left_when_the_collection_goes_in_the_middle_of_the_work(
    cast: Cast, collection: Collection
) -> None:
    with tenant_scope(cast.tenant.pk):
        coming = [upload(cast, collection, f"new{n}.md", text(n)) for n in range(3)]

    def work(document: Document) -> Callable[[], object]:
        def run() -> None:
            try:
                attempt(document)
            except Document.DoesNotExist:
                return  # what is to be expected here
            except NotWaiting:
                return  # it was cancelled before it began

        return run

    def delete() -> None:
        collection_services.collection_delete(
            tenant=cast.tenant, actor=cast.actor("admin"), collection=collection
        )

    with together(cast, *map(work, coming), delete), tenant_scope(cast.tenant.pk):
        for model in (Collection, Document, Chunk, Embedding, ChunkTerms):
            assert not model.objects.exists(), model
