"""Carry the items of a job: up to N at once in one worker, many workers for one job, until nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace

import structlog
from django.db import DatabaseError

from apps.datasets.generation.claiming import (
    MOST_DEATHS,
    Claim,
    items_claim,
    items_release,
    job_complete,
    job_halt,
    row_ceiling,
)
from apps.datasets.generation.committing import ItemChange, ItemLost, Write
from apps.datasets.generation.stages import STAGES
from apps.datasets.generation.work import Away, Failed, Halted, Item, Next, Released, Work
from apps.datasets.models import ITEM_OPEN, JOB_ACTIVE, ItemState
from basics.errors import DomainError
from basics.texts import gettext as _
from basics.texts import gettext_noop

log = structlog.get_logger(__name__)

LOOK_S = 1.0
"""How often a driver looks whether somebody has paused or stopped the job, and for items that others gave back."""
CARRIED = 2
"""Rows under way for each request: the gate holds these to their number, and while one row waits for the database, a tool
or a retry, another one asks."""
LAST = 3
"""The same for the last rows, so that no few are left to go their way alone when all others have ended."""
PATIENCE = 2
"""Groups' times that pass between the end of a row and the claim of another, while there are rows to spare."""
MOST_FAILURES = 4
FIRST_WAIT_S = 2.0
DEADLY = gettext_noop("The worker stopped %(n)s times in a row on this row, so it was skipped.")


async def job_drive(work: Work, lost: Callable[[], str]) -> None:
    """Work on a job until it is done, paused or stopped, or until all that is left waits for batches.

    On the way out every item is given back; what is under way is finished first, unless the task is cancelled.

    Args:
        lost: tells why it must begin nothing more, "" while all is well.
    """
    models = (work.model, work.judge)
    ceiling = max(row_ceiling(work.settings, model.profile) for model in models)
    tasks: set[asyncio.Task[None]] = set()
    try:
        while True:
            # One request at a time is one row at a time.
            room, last = (1 + n * (work.settings.concurrency - 1) - len(tasks) for n in (CARRIED, LAST))
            if work.settings.drivers > 1:
                last = 0  # The others want their share of it.
            claim: Claim = await work.in_db(
                items_claim, work.job.pk, work.driver, room, ceiling, last, work.away
            )
            work.halting = work.halting or lost()
            if claim.state not in JOB_ACTIVE:
                work.halting = claim.reason or f"the job is {claim.state}"
            for item in claim.items:
                tasks.add(asyncio.create_task(_carried(work, item), name=f"item-{item.pk}"))
            work.crowd.rows = len(tasks)
            if not tasks and (work.halting or claim.is_done):
                is_done = not work.halting
                break
            if not tasks and work.away:
                is_done = False
                break  # Nothing can go on before a batch has come back.
            if not tasks:
                await asyncio.sleep(LOOK_S)  # Others have the rest, or it waits for a retry.
                continue
            tasks = await _some_ended(tasks, PATIENCE * work.crowd.pause_s)
            work.crowd.rows = len(tasks)
    finally:
        work.halting = work.halting or "the worker is stopping"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await work.committer.close()
        await work.in_db(items_release, work.job.pk, work.driver)
    if is_done:
        await work.in_db(job_complete, work.job.pk)


async def _some_ended(tasks: set[asyncio.Task[None]], moment_s: float) -> set[asyncio.Task[None]]:
    """Wait for an end and a moment more for others, or for the time to look around; raises what a task raised."""
    done, going = await asyncio.wait(tasks, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    if done and going and moment_s:
        also, going = await asyncio.wait(going, timeout=moment_s, return_when=asyncio.FIRST_EXCEPTION)
        for task in also:
            task.result()
    return going


async def _carried(work: Work, item: Item) -> None:
    """Bring an item as far as it goes; what was paid for is kept in every case."""
    try:
        await _brought_on(work, item)
    finally:
        if item.owed is not None:
            work.committer.leave(item.owed)


async def _brought_on(work: Work, item: Item) -> None:
    """Bring an item as far as it goes, and give it back where it cannot go on now."""
    try:
        while item.state in ITEM_OPEN and not work.halting:
            try:
                if item.deaths >= MOST_DEATHS:
                    raise Failed(_(DEADLY) % {"n": item.deaths})
                following = await STAGES[item.state](work, item)
            except (Failed, DomainError) as failure:
                ended = _after_failure(item, failure)
                if ended is None:
                    break
                following = ended
            await _written(work, item, following)
    except Halted as halted:
        work.halting = halted.reason
        await work.in_db(job_halt, work.job.pk, halted.reason)
    except Away:
        item.is_away = True
        work.away.add(item.pk)
    except (Released, ItemLost):
        pass
    except DatabaseError:
        raise  # Not this item's: the driver ends, and the job is taken up again.
    except Exception as error:
        log.exception("generation_item_failed", item=item.pk, stage=item.state)
        reason = _("Something went wrong on our side (%(error)s) and was logged. Try again.") % {
            "error": type(error).__name__
        }
        await _written(work, item, Next(ItemState.FAILED, reason=reason))
    if item.state in ITEM_OPEN:
        with contextlib.suppress(ItemLost):
            await work.committer.write(_write_of(item, _given_back(item)))


def _after_failure(item: Item, failure: Failed | DomainError) -> Next | None:
    """Return the end of an item that cannot be had; None when it may be tried again later."""
    reason = failure.reason if isinstance(failure, Failed) else failure.message
    if isinstance(failure, Failed) and failure.is_retryable:
        item.failures += 1
        if item.failures < MOST_FAILURES:
            item.retry_reason = reason
            return None
    return Next(ItemState.FAILED, reason=reason)


async def _written(work: Work, item: Item, following: Next) -> None:
    """Let an item come to what follows, and commit that with the call that led there."""
    item.data.update(following.data)
    item.state = following.state
    if following.repairs is not None:
        item.repairs = following.repairs
    if item.state == ItemState.ASSEMBLE:
        return  # It asks nobody, and what it makes is committed with this.
    change = item.changed(
        reason=following.reason,
        is_released=item.state not in ITEM_OPEN,
        record=following.record,
        lineage={
            "generation": work.job.pk,
            "item": item.pk,
            "slot": item.slot,
            **{name: item.data[name] for name in ("wordings", "earlier") if item.data.get(name)},
        },
        run=following.run,
    )
    await work.committer.write(_write_of(item, change))


def _write_of(item: Item, change: ItemChange) -> Write:
    owed, item.owed = item.owed, None
    return Write(item.pk, change=change) if owed is None else replace(owed, change=change)


def _given_back(item: Item) -> ItemChange:
    return item.changed(
        reason=item.retry_reason,
        wait_s=FIRST_WAIT_S * 2**item.failures if item.retry_reason else 0.0,
        is_released=True,
        is_away=item.is_away,
    )
