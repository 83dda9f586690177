"""The job that ends what an owner has with its providers, when it pauses, stops or is deleted."""

from __future__ import annotations

from basics.errors import DomainError
from batches.courier import BatchRefused, Courier
from batches.engines import Engine, engine_for
from batches.lines import batch_ended, lines_clear
from batches.selectors import batches_open
from batches.services import WIND_UP
from budgets.ledger import BillingAccount
from jobs.context import JobContext, JobPostponed
from jobs.models import Job
from jobs.registry import job
from tenancy.models import Tenant

ATTEMPTS = 10


def wind_up_ended(ended: Job) -> None:
    """Give up what the provider cannot be asked about any more: its money is free again, its answers are lost."""
    if ended.status == "cancelled":
        return  # The owner has gone on, and takes care of it.
    owner = str(ended.payload["owner"])
    for batch in batches_open(ended.tenant_id, owner):
        batch_ended(batch, message=ended.error_message)
    if ended.payload["ends"]:
        lines_clear(ended.tenant_id, owner)


@job(WIND_UP, lane="loop", max_attempts=ATTEMPTS, on_end=wind_up_ended)
async def wind_up(ctx: JobContext, *, owner: str, ends: int) -> None:
    """Cancel an owner's batches, keep and record what had been answered, and wait for their end; safe to run again."""
    courier = await ctx.in_db(_courier, ctx, owner)
    try:
        try:
            await courier.collect(sends=False)
            await courier.cancel()
        except BatchRefused as refused:
            raise DomainError("batch_refused", refused.reason) from refused
        if await ctx.in_db(batches_open, ctx.tenant_id, owner):
            raise JobPostponed(await courier.look_again_s())
    finally:
        await courier.aclose()
    if ends:
        await ctx.in_db(lines_clear, ctx.tenant_id, owner)


def _courier(ctx: JobContext, owner: str) -> Courier:
    """Raises DomainError: a model has no key any more."""
    tenant = Tenant.objects.get(pk=ctx.tenant_id)
    models = {batch.model for batch in batches_open(tenant.pk, owner)}
    engines: dict[str, Engine] = {model: engine_for(tenant, model) for model in sorted(models)}
    return Courier(
        billing_account=BillingAccount(tenant.pk, ctx.user_id), owner=owner, in_db=ctx.in_db, engines=engines
    )
