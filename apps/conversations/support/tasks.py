"""The job that checks an answer against its sources a second time."""

from __future__ import annotations

from apps.conversations.support.services import JOB_KIND, support_check
from jobs.context import JobContext
from jobs.registry import job
from tenancy.actors import system_actor
from tenancy.models import Tenant


@job(JOB_KIND, lane="cpu", max_attempts=2)
def answer_check(ctx: JobContext, *, turn_id: int, run_id: int) -> None:
    """Check an answer against its sources a second time."""
    support_check(
        tenant=Tenant.objects.get(pk=ctx.tenant_id),
        actor=system_actor(ctx.tenant_id, ctx.user_id),
        turn_id=turn_id,
        run_id=run_id,
        check=ctx.check,
    )
