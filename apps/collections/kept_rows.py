"""Reads of what people keep beside documents: chunk histories, snapshots, search cases, space swaps, type rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar, cast

from django.db.models import Model, QuerySet

from apps.collections.models import (
    Chunk,
    ChunkRevision,
    Collection,
    CollectionSnapshot,
    Document,
    DocumentTypeRules,
    SearchCase,
    SpaceSwap,
)
from apps.collections.reconcile import Check
from basics.errors import Missing
from tenancy.actors import Actor

M = TypeVar("M", bound=Model)


def _one(rows: QuerySet[M], pk: int, noun: str) -> M:
    row = rows.filter(pk=pk).first()
    if row is None:
        raise Missing(noun)
    return row


def chunk_revisions(*, actor: Actor, chunk: Chunk) -> QuerySet[ChunkRevision]:
    """Return the changes of a chunk, newest first, with who made each."""
    actor.require("collection.read")
    rows = ChunkRevision.objects.visible_to(actor).filter(chunk=chunk)
    return cast("QuerySet[ChunkRevision]", rows.select_related("user").order_by("-pk"))


def chunk_revision_get(*, actor: Actor, pk: int) -> ChunkRevision:
    """Return one change of a chunk. Raises Missing."""
    actor.require("collection.read")
    rows = ChunkRevision.objects.visible_to(actor).select_related("chunk", "user")
    return _one(cast("QuerySet[ChunkRevision]", rows), pk, "change")


def snapshot_list(*, actor: Actor, collection: Collection) -> QuerySet[CollectionSnapshot]:
    """Return the named moments of a collection, newest first."""
    actor.require("collection.read")
    rows = CollectionSnapshot.objects.visible_to(actor).filter(collection=collection)
    return cast("QuerySet[CollectionSnapshot]", rows.select_related("created_by").order_by("-at", "-pk"))


def snapshot_get(*, actor: Actor, pk: int) -> CollectionSnapshot:
    """Return one named moment. Raises Missing."""
    actor.require("collection.read")
    rows: Any = CollectionSnapshot.objects.visible_to(actor).select_related("collection")
    return cast("CollectionSnapshot", _one(rows, pk, "snapshot"))


def search_case_list(*, actor: Actor, collection: Collection) -> QuerySet[SearchCase]:
    """Return the saved questions of a collection, newest first."""
    actor.require("collection.read")
    rows = SearchCase.objects.visible_to(actor).filter(collection=collection)
    return cast("QuerySet[SearchCase]", rows.select_related("created_by").order_by("-pk"))


def search_case_get(*, actor: Actor, pk: int) -> SearchCase:
    """Return one saved question. Raises Missing."""
    actor.require("collection.read")
    rows: Any = SearchCase.objects.visible_to(actor).select_related("collection")
    return cast("SearchCase", _one(rows, pk, "search case"))


def cases_shown(*, actor: Actor, cases: Iterable[SearchCase]) -> list[SearchCase]:
    """Return saved questions without expected passages of documents that the actor may not see, in one query."""
    shown = list(cases)
    paths = {place["path"] for case in shown for place in case.expected}
    known = set(
        Document.objects.visible_to(actor)
        .filter(collection__in={case.collection_id for case in shown}, path__in=paths)
        .values_list("collection_id", "path")
    )
    for case in shown:
        case.expected = [p for p in case.expected if (case.collection_id, p["path"]) in known]
    return shown


def check_shown(*, actor: Actor, collection: Collection | None, check: Check) -> Check:
    """Return a check without the paths of documents that are limited to others, in one query."""
    rows = Document.objects.visible_to(actor)
    hidden = Document.objects.filter(tenant_id=actor.tenant_id).exclude(pk__in=rows.values("pk"))
    if collection is not None:
        hidden = hidden.filter(collection=collection)
    subjects = {finding.subject for finding in check.findings}
    paths = set(hidden.filter(path__in=subjects).values_list("path", flat=True))
    findings = [
        replace(finding, subject="A document limited to others") if finding.subject in paths else finding
        for finding in check.findings
    ]
    return replace(check, findings=findings)


def swap_list(*, actor: Actor, collection: Collection) -> QuerySet[SpaceSwap]:
    """Return the moves of a collection to other embedding models, newest first."""
    actor.require("collection.read")
    rows = SpaceSwap.objects.visible_to(actor).filter(collection=collection)
    return cast("QuerySet[SpaceSwap]", rows.select_related("from_space", "to_space").order_by("-pk"))


def swap_get(*, actor: Actor, pk: int) -> SpaceSwap:
    """Return one move to another embedding model. Raises Missing."""
    actor.require("collection.read")
    rows: Any = SpaceSwap.objects.visible_to(actor).select_related("from_space", "to_space")
    return cast("SpaceSwap", _one(rows, pk, "swap"))


def type_rules_get(*, actor: Actor) -> Any:
    """Return the workspace's rules for document types as data, None when it has none."""
    actor.require("collection.read")
    row = DocumentTypeRules.objects.visible_to(actor).first()
    return None if row is None else row.rules
