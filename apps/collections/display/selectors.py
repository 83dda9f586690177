"""Reads of collections, documents and chunks; each starts from what the actor may see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from django.db.models import Count, Exists, F, Func, Model, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Lower

from apps.collections.models import Chunk, Collection, Document, DocumentAccess, DocumentStatus, Page
from apps.collections.models.document import access_of
from apps.collections.storage.ledger import Ledger, ledger_agrees, ledger_count
from basics.errors import Missing
from tenancy.actors import Actor

M = TypeVar("M", bound=Model)


def collection_list(*, actor: Actor) -> QuerySet[Collection]:
    """Return the actor's collections by name, each with its counts, in one query.

    Each row carries ``document_count``, ``processing_count``, ``failed_count``, ``page_total`` and ``chunk_count``
    (chunks of ready documents): of the documents that the actor may see, without earlier versions.
    """
    actor.require("collection.read")
    seen = Q(documents__live_to__isnull=True)
    if actor.kind != "system":
        seen &= Q(documents__is_restricted=False) | Q(Exists(access_of(actor, "documents__pk")))
    active = seen & Q(documents__status__in=[DocumentStatus.QUEUED, DocumentStatus.PROCESSING])
    # One pass over the documents: a subquery for each count was five.
    rows = (
        Collection.objects.visible_to(actor)
        .select_related("space")
        .annotate(
            document_count=Count("documents", filter=seen),
            processing_count=Count("documents", filter=active),
            failed_count=Count("documents", filter=seen & Q(documents__status=DocumentStatus.FAILED)),
            page_total=Coalesce(Sum("documents__page_count", filter=seen), Value(0)),
            chunk_count=Coalesce(
                Sum("documents__chunk_count", filter=seen & Q(documents__status=DocumentStatus.READY)),
                Value(0),
            ),
        )
        .order_by(Lower("name"))
    )
    return cast("QuerySet[Collection]", rows)


def collection_get(*, actor: Actor, pk: int) -> Collection:
    """Return one collection, without its counts: counting takes as long as it has documents. Raises Missing."""
    return collections_named(actor=actor, pks=[pk])[0]


def collection_counted(*, actor: Actor, pk: int) -> Collection:
    """Return one collection with its counts, as ``collection_list`` does. Raises Missing."""
    collection = collection_list(actor=actor).filter(pk=pk).first()
    if collection is None:
        raise Missing("collection")
    return collection


def collection_example(*, collection: Collection) -> Any:
    """Return what ``apps.evaluations`` has made as an example over a collection, None for most.

    Evaluations are above this app: only the relation leads there.
    """
    return collection.examples.first()


def collections_named(*, actor: Actor, pks: list[int]) -> list[Collection]:
    """Return these collections, all of them.

    Raises:
        Missing: one of them does not exist for the actor.
    """
    actor.require("collection.read")
    rows = list(Collection.objects.visible_to(actor).select_related("space").filter(pk__in=set(pks)))
    if len(rows) != len(set(pks)):
        raise Missing("collection")
    return rows


DOCUMENT_ORDERS = {
    "newest": ("-created_at", "-pk"),
    "oldest": ("created_at", "pk"),
    "path": ("path", "pk"),
    "size": ("-size", "-pk"),
    "chunks": ("-chunk_count", "-pk"),
}


def document_list(
    *,
    actor: Actor,
    collection: Collection,
    q: str = "",
    status: str = "",
    document_type: str = "",
    tag: str = "",
    source: str = "",
    order: str = "newest",
) -> QuerySet[Document]:
    """Return the current versions of a collection's documents; what is given must hold.

    Args:
        q: part of a path, any case.
        status: one of ``DocumentStatus``; an unknown one finds nothing.
        document_type: as inferred or set by hand; ``-`` for documents without one.
        tag: one of its tags.
        source: one of ``DocumentSource``.
        order: of ``DOCUMENT_ORDERS``; an unknown one is the newest first.
    """
    actor.require("collection.read")
    rows = Document.objects.visible_to(actor).current().filter(collection=collection)
    if q:
        rows = rows.filter(path__icontains=q)
    if status:
        rows = rows.filter(status=status)
    if document_type:
        rows = rows.filter(document_type="" if document_type == "-" else document_type)
    if tag:
        rows = rows.filter(tags__contains=[tag])
    if source:
        rows = rows.filter(source=source)
    ordered = rows.order_by(*DOCUMENT_ORDERS.get(order, DOCUMENT_ORDERS["newest"]))
    return cast("QuerySet[Document]", ordered)


@dataclass(frozen=True, slots=True)
class DocumentFacets:
    """The types and tags that a collection's current documents have, with how many have each, most first."""

    types: list[tuple[str, int]]
    tags: list[tuple[str, int]]


def document_facets(*, actor: Actor, collection: Collection, limit: int = 50) -> DocumentFacets:
    """Count the types and tags of a collection's current documents, in two queries."""
    actor.require("collection.read")
    rows = Document.objects.visible_to(actor).current().filter(collection=collection).order_by()
    types = rows.values_list("document_type").annotate(n=Count("pk")).order_by("-n", "document_type")
    tagged = rows.exclude(tags=[]).annotate(tag=Func(F("tags"), function="unnest"))
    tags = tagged.values_list("tag").annotate(n=Count("pk")).order_by("-n", "tag")
    return DocumentFacets(list(types[:limit]), list(tags[:limit]))


def document_versions(*, actor: Actor, document: Document) -> list[Document]:
    """Return all versions at a document's path, newest first, with who brought each."""
    actor.require("collection.read")
    rows = Document.objects.visible_to(actor).filter(collection_id=document.collection_id, path=document.path)
    return list(rows.select_related("uploaded_by").order_by("-version"))


def document_access_list(*, actor: Actor, document: Document) -> list[DocumentAccess]:
    """Return the roles and members that a limited document is open to."""
    actor.require("collection.read")
    rows = DocumentAccess.objects.visible_to(actor).filter(document=document)
    return list(rows.select_related("user").order_by("role", "user__email"))


def document_get(*, actor: Actor, pk: int, collection_pk: int | None = None) -> Document:
    """Return one document with its collection. Raises Missing."""
    actor.require("collection.read")
    rows = Document.objects.visible_to(actor).select_related("collection", "collection__space")
    if collection_pk is not None:
        rows = rows.filter(collection_id=collection_pk)
    document: Document | None = rows.filter(pk=pk).first()
    if document is None:
        raise Missing("document")
    return document


def documents_unnamed(actor: Actor, pks: Iterable[int]) -> list[int]:
    """Return those of some documents that are there and that the actor may not see."""
    rows = Document.objects.filter(tenant_id=actor.tenant_id, pk__in=pks)
    seen = Document.objects.visible_to(actor).filter(pk__in=pks)
    return list(rows.exclude(pk__in=seen.values("pk")).values_list("pk", flat=True))


def document_readable(actor: Actor) -> Exists:
    """Return the condition that an actor may read the document in the outer query's ``document_id``."""
    return Exists(Document.objects.visible_to(actor).filter(pk=OuterRef("document_id")))


def versions_readable(*, actor: Actor, pks: Iterable[int]) -> dict[int, int]:
    """Return the version numbers of those documents that the actor may read, by id."""
    found = Document.objects.visible_to(actor).filter(pk__in=list(pks))
    return dict(found.values_list("pk", "version"))


@dataclass(frozen=True, slots=True)
class DocumentLedger:
    """A document's counts as its row claims them and as the tables hold them."""

    document: Document
    found: Ledger
    agrees: bool


def document_ledger(*, actor: Actor, document: Document) -> DocumentLedger:
    """Count a document's rows in the tables and compare them with what its row claims."""
    actor.require("collection.read")
    found = ledger_count(document, document.collection.space_id)
    return DocumentLedger(document, found, ledger_agrees(document, found))


def page_get(*, actor: Actor, document: Document, number: int) -> Page | None:
    """Return a page of a document, None if it has no such page (yet)."""
    actor.require("collection.read")
    page: Page | None = Page.objects.visible_to(actor).filter(document=document, number=number).first()
    return page


def page_at(*, actor: Actor, document: Document, offset: int) -> Page | None:
    """Return the page that holds a character of the document's text."""
    actor.require("collection.read")
    rows = Page.objects.visible_to(actor).filter(document=document, char_start__lte=offset)
    page: Page | None = rows.order_by("-number").first()
    return page


def page_chunks(*, actor: Actor, page: Page) -> list[Chunk]:
    """Return the chunks that touch a page, in reading order."""
    actor.require("collection.read")
    end = page.char_start + len(page.text)
    return list(
        Chunk.objects.visible_to(actor)
        .filter(document_id=page.document_id, char_start__lt=end, char_end__gt=page.char_start)
        .order_by("index")
    )


@dataclass(frozen=True, slots=True)
class ChunkDetail:
    """A chunk with its neighbours in the document."""

    chunk: Chunk
    previous: Chunk | None
    next: Chunk | None


def chunk_get(*, actor: Actor, pk: int) -> ChunkDetail:
    """Return one chunk of a ready document with its neighbours, in one query more.

    Raises:
        Missing: there is none for the actor.
    """
    actor.require("collection.read")
    visible = Chunk.objects.visible_to(actor).filter(document__status=DocumentStatus.READY)
    chunk: Chunk | None = visible.select_related("document", "collection").filter(pk=pk).first()
    if chunk is None:
        raise Missing("chunk")
    near: dict[int, Any] = {
        c.index: c
        for c in visible.filter(document_id=chunk.document_id, index__in=[chunk.index - 1, chunk.index + 1])
    }
    return ChunkDetail(chunk, near.get(chunk.index - 1), near.get(chunk.index + 1))


def collection_choices(actor: Actor) -> list[tuple[int, str]]:
    """Return ids and names of the collections an actor may see, by name."""
    if not actor.can("collection.read"):
        return []
    rows = Collection.objects.visible_to(actor).order_by("name", "pk")
    return list(rows.values_list("pk", "name"))


def row_get(rows: QuerySet[M], pk: int, noun: str) -> M:
    row = rows.filter(pk=pk).first()
    if row is None:
        raise Missing(noun)
    return row
