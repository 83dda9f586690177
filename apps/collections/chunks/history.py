"""Reads of the changes that people made to single chunks."""

from __future__ import annotations

from typing import cast

from django.db.models import QuerySet

from apps.collections.display.selectors import row_get
from apps.collections.models import Chunk, ChunkRevision
from tenancy.actors import Actor


def chunk_revisions(*, actor: Actor, chunk: Chunk) -> QuerySet[ChunkRevision]:
    """Return the changes of a chunk, newest first, with who made each."""
    actor.require("collection.read")
    rows = ChunkRevision.objects.visible_to(actor).filter(chunk=chunk)
    return cast("QuerySet[ChunkRevision]", rows.select_related("user").order_by("-pk"))


def chunk_revision_get(*, actor: Actor, pk: int) -> ChunkRevision:
    """Return one change of a chunk. Raises Missing."""
    actor.require("collection.read")
    rows = ChunkRevision.objects.visible_to(actor).select_related("chunk", "user")
    return row_get(cast("QuerySet[ChunkRevision]", rows), pk, "change")
