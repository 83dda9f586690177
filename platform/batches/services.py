"""Begin and end the batches of an owner."""

from __future__ import annotations

from batches.lines import lines_unwant
from jobs.models import ACTIVE, Job
from jobs.services import job_cancel, job_enqueue
from tenancy.actors import Actor
from tenancy.models import Tenant

WIND_UP = "batches.wind_up"


def batches_end(*, tenant: Tenant, actor: Actor, owner: str, ends: bool) -> None:
    """Have the batches of an owner cancelled, and what had been answered recorded; in the caller's transaction.

    Args:
        ends: the owner asks for nothing any more, and its lines go; else it may go on with the answers that came.
    """
    lines_unwant(tenant.pk, owner)
    job_enqueue(
        tenant=tenant,
        actor=actor,
        kind=WIND_UP,
        payload={"owner": owner, "ends": int(ends)},
        dedupe_key=f"{owner}:{int(ends)}",
        topic=owner,
    )


def batches_resume(*, tenant: Tenant, actor: Actor, owner: str) -> None:
    """Leave what is out to the owner, who goes on; in the caller's transaction."""
    rows = Job.objects.filter(tenant=tenant, kind=WIND_UP, dedupe_key=f"{owner}:0", status__in=ACTIVE)
    for row in rows:
        job_cancel(tenant=tenant, actor=actor, job=row)
