"""The jobs that tell many people of something, and that send a person's new notices by mail."""

from __future__ import annotations

from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import ExpectedFailure, job
from notices.mailing import JOB_KIND, Digest, digest_close, digest_send, digest_take, digests_give_up
from notices.services import SPREAD_JOB, notices_spread
from tenancy.models import Tenant

MAX_ATTEMPTS = 8


class NotMailed(ExpectedFailure):
    """The mail server did not take a message; the job is tried again later."""


def mail_given_up(ended: Job) -> None:
    """Leave to the portal what no mail server takes."""
    digests_give_up(tenant_id=ended.tenant_id, user_id=int(ended.payload["user_id"]))


@job(JOB_KIND, lane="loop", max_attempts=MAX_ATTEMPTS, on_end=mail_given_up)
async def mail(ctx: JobContext, user_id: int) -> None:
    """Send what a person wants by mail and has not read."""
    ctx.check()
    tenant = await ctx.in_db(_tenant, ctx.tenant_id)
    digest: Digest | None = await ctx.in_db(lambda: digest_take(tenant=tenant, user_id=user_id))
    if digest is None:
        return
    taken = digest
    problem = await ctx.blocking(lambda: digest_send(taken))
    await ctx.in_db(lambda: digest_close(tenant=tenant, digest=taken, is_sent=not problem))
    if problem:
        raise NotMailed(problem)


@job(SPREAD_JOB, lane="loop", max_attempts=3)
async def spread(ctx: JobContext, kind: str, pk: int, state: str) -> None:
    """Tell all whom it concerns, however many."""
    ctx.check()
    await ctx.in_db(_spread, ctx, kind, pk, state)


def _spread(ctx: JobContext, kind: str, pk: int, state: str) -> None:
    since = Job.objects.values_list("created_at", flat=True).get(tenant_id=ctx.tenant_id, pk=ctx.job_id)
    notices_spread(tenant_id=ctx.tenant_id, kind=kind, pk=pk, state=state, since=since)


def _tenant(pk: int) -> Tenant:
    return Tenant.objects.get(pk=pk)
