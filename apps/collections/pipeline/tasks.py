"""The jobs that make again what a stage made: types, terms, what search needs of passages, edges of code."""

from __future__ import annotations

from apps.collections.pipeline import document_types, lexical_upgrade, passages, publish
from jobs.context import JobContext
from jobs.registry import job


@job(document_types.KIND, lane="cpu", max_attempts=5)
def types_infer(ctx: JobContext) -> None:
    """Give documents that were there before their workspace's rules the types that these say."""
    document_types.types_infer(ctx, tenant_id=ctx.tenant_id)


@job(lexical_upgrade.KIND, lane="cpu", max_attempts=5)
def terms_upgrade(ctx: JobContext, *, collection: int) -> None:
    """Make the terms of documents again that an earlier version, or another language, has made."""
    lexical_upgrade.terms_upgrade(ctx, collection_id=collection)


@job(passages.KIND, lane="cpu", max_attempts=5)
def passages_index(ctx: JobContext, *, collection: int) -> None:
    """Make what search needs of passages that came without it."""
    passages.passages_index(ctx, collection_id=collection)


@job("collections.code_settle", lane="cpu", max_attempts=5)
def code_settle(ctx: JobContext, *, collection: int) -> None:
    """Resolve the edges of a code graph that point to what came or went."""
    publish.code_settle(ctx, collection_id=collection)
