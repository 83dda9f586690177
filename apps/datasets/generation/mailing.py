"""Drive a job whose models are asked by batch: collect what has come back, go on with it, send what is wanted next.

One pass of it takes as long as the answers that are there. Then the worker is free until the next look, and each turn of a
model takes one batch: an answer that calls tools three times takes four.
"""

from __future__ import annotations

from collections.abc import Callable

from apps.datasets.generation.claiming import job_halt
from apps.datasets.generation.driving import job_drive
from apps.datasets.generation.work import Work
from apps.datasets.models import JOB_ACTIVE, GenerationJob, GenerationState
from batches.courier import BatchRefused, Courier
from batches.selectors import batches_open, keys_waiting
from batches.services import batches_end
from jobs.context import JobPostponed


async def batches_drive(work: Work, lost: Callable[[], str]) -> None:
    """Bring a job on as far as the answers reach that have come back.

    Raises:
        JobPostponed: the rest waits for a batch.
    """
    engines = {m.engine.name: m.engine for m in (work.model, work.judge) if m.engine is not None}
    courier = Courier(
        billing_account=work.billing_account, owner=work.job.topic, in_db=work.in_db, engines=engines
    )
    try:
        await courier.collect()
        work.away = await work.in_db(_away, work)
        await job_drive(work, lost)
        if not lost() and await work.in_db(_is_active, work):
            left = await courier.send()
            if left and not await work.in_db(batches_open, work.tenant.pk, work.job.topic):
                await work.in_db(job_halt, work.job.pk, left)
    except BatchRefused as refused:
        await work.in_db(job_halt, work.job.pk, refused.reason)
    if lost():
        return
    if await work.in_db(_is_active, work):
        raise JobPostponed(await courier.look_again_s())
    await work.in_db(_end, work)


def _away(work: Work) -> set[int]:
    """Return the items whose next call is wanted or with a batch."""
    return {int(key.partition("-")[0]) for key in keys_waiting(work.tenant.pk, work.job.topic)}


def _is_active(work: Work) -> bool:
    return GenerationJob.objects.filter(pk=work.job.pk, state__in=JOB_ACTIVE).exists()


def _end(work: Work) -> None:
    """Leave nothing with the providers of a job that does not go on by itself."""
    state = GenerationJob.objects.values_list("state", flat=True).get(pk=work.job.pk)
    if state in JOB_ACTIVE:
        return  # Resumed in this moment, with a driver of its own.
    ends = state in (GenerationState.COMPLETED, GenerationState.STOPPED)
    batches_end(tenant=work.tenant, actor=work.actor, owner=work.job.topic, ends=ends)
