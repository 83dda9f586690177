"""Reads of collections, documents and chunks; each starts from what the actor may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.db.models import Count, F, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Lower

from apps.collections.ledger import Ledger, ledger_agrees, ledger_count
from apps.collections.models import Chunk, Collection, Document, DocumentStatus, Page
from basics.errors import Missing
from tenancy.actors import Actor

_ACTIVE = Q(documents__status__in=[DocumentStatus.QUEUED, DocumentStatus.PROCESSING])


def collection_list(*, actor: Actor) -> QuerySet[Collection]:
    """Return the actor's collections by name, each with its counts, in one query.

    Each row carries ``document_count``, ``processing_count``, ``failed_count``, ``page_total`` and ``chunk_count``
    (chunks that can be searched).
    """
    actor.require("collection.read")
    rows = (
        Collection.objects.visible_to(actor)
        .select_related("space")
        .annotate(
            document_count=Count("documents"),
            processing_count=Count("documents", filter=_ACTIVE),
            failed_count=Count("documents", filter=Q(documents__status=DocumentStatus.FAILED)),
            page_total=Coalesce(Sum("documents__page_count"), Value(0)),
            chunk_count=F("chunk_total"),
        )
        .order_by(Lower("name"))
    )
    return cast("QuerySet[Collection]", rows)


def collection_get(*, actor: Actor, pk: int) -> Collection:
    """Return one collection with its counts. Raises Missing."""
    collection = collection_list(actor=actor).filter(pk=pk).first()
    if collection is None:
        raise Missing("collection")
    return collection


def collections_named(*, actor: Actor, pks: list[int]) -> list[Collection]:
    """Return these collections, all of them.

    Raises:
        Missing: one of them does not exist for the actor.
    """
    actor.require("collection.read")
    rows = list(
        Collection.objects.visible_to(actor).select_related("space").filter(pk__in=set(pks))
    )
    if len(rows) != len(set(pks)):
        raise Missing("collection")
    return rows


def document_list(
    *, actor: Actor, collection: Collection, q: str = "", status: str = ""
) -> QuerySet[Document]:
    """Return a collection's documents, newest first.

    Args:
        q: part of a name, any case.
        status: one of ``DocumentStatus``; an unknown one finds nothing.
    """
    actor.require("collection.read")
    rows = (
        Document.objects.visible_to(actor)
        .filter(collection=collection)
        .order_by("-created_at", "-pk")
    )
    if q:
        rows = rows.filter(name__icontains=q)
    if status:
        rows = rows.filter(status=status)
    return cast("QuerySet[Document]", rows)


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
    page: Page | None = (
        Page.objects.visible_to(actor).filter(document=document, number=number).first()
    )
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


def chunk_list(
    *, actor: Actor, collection: Collection, document: Document | None = None
) -> QuerySet[Chunk]:
    """Return the chunks of a collection's ready documents in reading order, with their documents."""
    actor.require("collection.read")
    rows = (
        Chunk.objects.visible_to(actor)
        .filter(collection=collection, document__status=DocumentStatus.READY)
        .select_related("document")
        .order_by("document_id", "index")
    )
    if document is not None:
        rows = rows.filter(document=document)
    return cast("QuerySet[Chunk]", rows)


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
        for c in visible.filter(
            document_id=chunk.document_id, index__in=[chunk.index - 1, chunk.index + 1]
        )
    }
    return ChunkDetail(chunk, near.get(chunk.index - 1), near.get(chunk.index + 1))
