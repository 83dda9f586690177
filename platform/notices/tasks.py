"""The job that sends a person's new notices by mail."""

from __future__ import annotations

from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import ExpectedFailure, job
from notices.mailing import JOB_KIND, Digest, digest_close, digest_send, digest_take, digests_give_up
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


def _tenant(pk: int) -> Tenant:
    return Tenant.objects.get(pk=pk)
