"""The jobs that move a collection to another embedding space."""

from __future__ import annotations

from apps.collections.collection.swaps import swap_retry
from apps.collections.index import large as indexes
from apps.collections.index import spaces
from apps.collections.models import SpaceSwap
from basics.errors import Missing
from jobs.context import JobContext
from jobs.models import Job, JobStatus
from jobs.registry import job
from tenancy.actors import Actor
from tenancy.models import Tenant


def space_build_ended(ended: Job) -> None:
    """Let a swap fail together with a job that did not succeed, in that job's transaction."""
    if ended.status != JobStatus.CANCELLED:
        spaces.swap_failed(ended.payload["swap"], ended.pk, ended.error_message)


def space_build_again(tenant: Tenant, actor: Actor, failed: Job) -> None:
    """Go on with the swap of a failed job. Raises Conflict, Missing."""
    swap = SpaceSwap.objects.filter(pk=failed.payload["swap"]).first()
    if swap is None:
        raise Missing("swap")
    swap_retry(tenant=tenant, actor=actor, swap=swap)


@job(
    "collections.space_build",
    lane="cpu",
    max_attempts=5,
    on_end=space_build_ended,
    on_retry=space_build_again,
)
def space_build(ctx: JobContext, *, swap: int) -> None:
    """Make the vectors of a collection's next embedding space, and the graph that a large one is searched through."""
    spaces.swap_build(
        ctx, swap_id=swap, index=lambda collection: indexes.indexes_build(ctx, collection_id=collection.pk)
    )


@job("collections.space_drop", lane="cpu", max_attempts=5)
def space_drop(ctx: JobContext, *, swap: int) -> None:
    """Remove the graph and the vectors that an ended swap leaves behind."""
    row = SpaceSwap.objects.filter(pk=swap).first()
    if row is not None:
        indexes.indexes_unused_drop(ctx, collection_id=row.collection_id)
    spaces.vectors_drop(ctx, swap_id=swap)
