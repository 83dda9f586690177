"""The jobs that follow an answer: the next question is asked, the conversation gets its title, or loses it, or goes."""

from __future__ import annotations

from apps.conversations.turns import bulk, lost_titles, queue, titles
from jobs.context import JobContext, JobPostponed
from jobs.registry import MAX_DEATHS, job
from tenancy.actors import system_actor
from tenancy.models import Tenant


@job(queue.JOB_KIND, lane="loop", max_attempts=5)
async def queue_next(ctx: JobContext, *, conversation_id: int) -> None:
    """Ask the oldest question that waits in a conversation."""
    await ctx.in_db(_ask_next, ctx.tenant_id, conversation_id)


@job(titles.JOB_KIND, lane="loop", max_attempts=1, max_deaths=MAX_DEATHS)
async def conversation_title(ctx: JobContext, *, turn_id: int) -> None:
    """Have a model name a conversation after its first answer."""
    tenant = Tenant(pk=ctx.tenant_id)
    actor = system_actor(ctx.tenant_id, ctx.user_id)
    await titles.title_make(
        tenant=tenant, actor=actor, turn_id=turn_id, in_db=ctx.in_db, check=ctx.check, complete=ctx.complete
    )


def _ask_next(tenant_id: int, conversation_id: int) -> None:
    queue.queued_next(tenant=Tenant.objects.get(pk=tenant_id), conversation_pk=conversation_id)


@job(lost_titles.LOST_JOB, lane="loop", max_attempts=3)
async def titles_withhold(ctx: JobContext, *, document_id: int) -> None:
    """Take titles back that tell of a document which their reader has lost."""
    tenant = Tenant(pk=ctx.tenant_id)
    actor = system_actor(ctx.tenant_id, ctx.user_id)
    await ctx.in_db(lambda: lost_titles.titles_withhold(tenant=tenant, actor=actor, document=document_id))


@job(bulk.JOB_KIND, lane="cpu", max_attempts=5)
def removed_purge(ctx: JobContext) -> None:
    """Delete for good the conversations whose deletion can't be undone any more.

    Raises:
        JobPostponed: others can still be brought back.
    """
    wait_s = bulk.removed_purge(tenant=Tenant.objects.get(pk=ctx.tenant_id))
    if wait_s:
        raise JobPostponed(wait_s)
