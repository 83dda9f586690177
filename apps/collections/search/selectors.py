"""Reads of saved questions and of the named moments of a collection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django.db.models import QuerySet

from apps.collections.display.selectors import row_get
from apps.collections.models import Collection, CollectionSnapshot, Document, SearchCase
from tenancy.actors import Actor


def snapshot_list(*, actor: Actor, collection: Collection) -> QuerySet[CollectionSnapshot]:
    """Return the named moments of a collection, newest first."""
    actor.require("collection.read")
    rows = CollectionSnapshot.objects.visible_to(actor).filter(collection=collection)
    return cast("QuerySet[CollectionSnapshot]", rows.select_related("created_by").order_by("-at", "-pk"))


def snapshot_get(*, actor: Actor, pk: int) -> CollectionSnapshot:
    """Return one named moment. Raises Missing."""
    actor.require("collection.read")
    rows: Any = CollectionSnapshot.objects.visible_to(actor).select_related("collection")
    return cast("CollectionSnapshot", row_get(rows, pk, "snapshot"))


def search_case_list(*, actor: Actor, collection: Collection) -> QuerySet[SearchCase]:
    """Return the saved questions of a collection, newest first."""
    actor.require("collection.read")
    rows = SearchCase.objects.visible_to(actor).filter(collection=collection)
    return cast("QuerySet[SearchCase]", rows.select_related("created_by").order_by("-pk"))


def search_case_get(*, actor: Actor, pk: int) -> SearchCase:
    """Return one saved question. Raises Missing."""
    actor.require("collection.read")
    rows: Any = SearchCase.objects.visible_to(actor).select_related("collection")
    return cast("SearchCase", row_get(rows, pk, "search case"))


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
