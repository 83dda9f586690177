"""The jobs that build search indexes, and index codes again."""

from __future__ import annotations

from apps.collections.index import codes
from apps.collections.index import large as indexes
from jobs.context import JobContext
from jobs.registry import job


@job("collections.index_build", lane="cpu", max_attempts=3)
def index_build(ctx: JobContext, *, collection: int) -> None:
    """Build the search indexes that a large collection lacks."""
    indexes.indexes_build(ctx, collection_id=collection)


@job(codes.KIND, lane="cpu", max_attempts=5)
def codes_reindex(ctx: JobContext) -> None:
    """Index the codes of documents again whose workspace recognises others now."""
    codes.codes_reindex(ctx, tenant_id=ctx.tenant_id)
