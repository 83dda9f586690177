"""Reads of imports; each starts from what the actor may see."""

from __future__ import annotations

from typing import cast

from django.db.models import QuerySet

from apps.collections.models import Collection, Import
from basics.errors import Missing
from tenancy.actors import Actor


def import_list(*, actor: Actor, collection: Collection) -> QuerySet[Import]:
    """Return a collection's imports, newest first."""
    actor.require("document.write")
    rows = Import.objects.visible_to(actor).filter(collection=collection).order_by("-pk")
    return cast("QuerySet[Import]", rows)


def import_get(*, actor: Actor, pk: int, collection_pk: int | None = None) -> Import:
    """Return one import with its collection. Raises Missing."""
    actor.require("document.write")
    rows = Import.objects.visible_to(actor).select_related("collection")
    if collection_pk is not None:
        rows = rows.filter(collection_id=collection_pk)
    row: Import | None = rows.filter(pk=pk).first()
    if row is None:
        raise Missing("import")
    return row
