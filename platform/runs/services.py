"""Start, carry out, stop and end runs. The only caller of the loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

import structlog
from django.db import connection, transaction
from django.utils import timezone

from basics.errors import Invalid
from jobs.context import JobContext, LeaseLost
from jobs.models import Job, JobStatus
from jobs.notify import notify
from jobs.services import job_cancel
from runs.journal import RunJournal, call_key, history_rebuilt
from runs.models import ACTIVE, Run, RunEvent, RunStatus, RunStep, ToolCall, ToolCallStatus
from runs.recorder import Recorder
from runs.selectors import transcript_read
from runs.stopping import stop_topic, stop_watch
from runs.storable import json_storable, text_storable
from runs.transcript import FINISHED, LIMIT, REASONING, STEP_RESET, TEXT, Transcript
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.errors import ConfigurationError
from toolloop.events import LimitReached, ReasoningDelta, RunFinished, StepReset, TextDelta
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.messages import Message, Turn, Usage, message_from_json
from toolloop.providers.base import Provider
from toolloop.providers.registry import parse_model
from toolloop.tools import Toolset

log = structlog.get_logger(__name__)


def run_create(
    *,
    tenant: Tenant,
    actor: Actor,
    kind: str,
    model: str,
    request: Mapping[str, Any] | None = None,
) -> Run:
    """Create a queued run in the current transaction; the caller enqueues the job that carries it and sets ``run.job``.

    Args:
        kind: what it is for, for example ``conversation``.
        model: with its routing prefix, ``anthropic/claude-...``.
        request: facts to keep with it; what the loop was started with is added when it starts.

    Raises:
        Invalid: ``model`` names none.
    """
    try:
        parse_model(model)
    except ConfigurationError as error:
        raise Invalid(
            "unknown_model", error.message, data={"fields": {"model": [error.message]}}
        ) from error
    run: Run = Run.objects.create(
        tenant=tenant,
        user_id=actor.user_id,
        kind=kind,
        model=model,
        request=json_storable(dict(request or {})),
    )
    return run


def run_stop(*, tenant: Tenant, actor: Actor, run: Run) -> Run:
    """Ask a run to stop and keep what it has said; one that still waits ends at once. Harmless when it has ended."""
    with transaction.atomic():
        # Job before run: the order in which everybody locks them.
        job: Job | None = (
            Job.objects.select_for_update().filter(tenant=tenant, pk=run.job_id or 0).first()
        )
        row: Run = Run.objects.select_for_update().get(tenant=tenant, pk=run.pk)
        if row.status not in ACTIVE:
            return row
        if row.stop_requested_at is None:
            row.stop_requested_at = timezone.now()
            row.save(update_fields=["stop_requested_at"])
        if job is None or job.status != JobStatus.QUEUED:
            notify(tenant.pk, stop_topic(row.pk), "stop")
            return row
        job_cancel(tenant=tenant, actor=actor, job=job)
        row.refresh_from_db()
        if row.status in ACTIVE:  # a job kind whose on_end does not end runs
            run_abandon(job=job)
            row.refresh_from_db()
    return row


def run_abandon(*, job: Job) -> list[Run]:
    """End the runs whose job has ended without them, in the current transaction; for ``on_end`` of job kinds.

    What was streamed is kept. A stop that somebody asked for makes the run ``stopped``, anything else ``failed`` with
    the job's reason.
    """
    runs: list[Run] = list(
        Run.objects.select_for_update().filter(
            tenant_id=job.tenant_id, job_id=job.pk, status__in=ACTIVE
        )
    )
    for run in runs:
        said = transcript_read(run)
        is_stop = run.stop_requested_at is not None
        run.status = RunStatus.STOPPED if is_stop else RunStatus.FAILED
        run.stop_reason = "stopped" if is_stop else "error"
        run.error_code = "" if is_stop else job.error_code or "job_ended"
        run.error_message = "" if is_stop else job.error_message or "The work was given up."
        run.is_retryable = not is_stop
        run.answer = said.text
        run.finished_at = timezone.now()
        run.last_seq = run.last_seq + 1
        run.save()
        RunEvent.objects.create(
            tenant_id=run.tenant_id,
            run=run,
            seq=run.last_seq,
            kind=FINISHED,
            data=_finished_data(run),
        )
        notify(run.tenant_id, f"run:{run.pk}", run.last_seq)
    return runs


# One round trip on the way to the first text; losing this mark to a crash of the database does no harm.
_BEGIN = """
UPDATE runs_run SET status = 'running', started_at = now(), request = %(request)s::jsonb, job_id = %(job)s
WHERE id = %(run)s AND status = 'queued' AND EXISTS (
    SELECT 1 FROM jobs_job WHERE id = %(job)s AND worker = %(worker)s
    AND attempts = %(attempt)s AND status = 'running')
RETURNING started_at, last_seq, stop_requested_at IS NOT NULL,
    set_config('synchronous_commit', 'off', true)
"""


@dataclass(slots=True)
class _Start:
    """Where an attempt at a run begins."""

    history: list[Message]
    system: str
    transcript: Transcript
    stop_requested: bool
    turns: list[Turn] = field(default_factory=list)
    rows: dict[tuple[int, str], ToolCall] = field(default_factory=dict)
    is_resumed: bool = False


async def run_execute(
    ctx: JobContext,
    run: Run,
    *,
    toolset: Toolset,
    provider: Provider,
    system: str,
    history: Sequence[Message],
    limits: Limits = Limits(),  # noqa: B008 - frozen
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    cache_key: str = "",
    user_key: str = "",
    before_finish: Callable[[Run, RunFinished], None] | None = None,
) -> RunFinished | None:
    """Drive the loop for a run, record it, and end run and job together; call it from a job of the loop lane.

    Called again for a run that a crash or a shut-down has interrupted, it goes on from the journal: finished turns and
    calls are not repeated, and ``system`` and ``history`` are those of the first attempt.

    Args:
        ctx: the job; its lease fences every write.
        run: the run, whose ``model`` is asked.
        provider: adapter for that model; closed at the end.
        context: given to tools as ``ToolContext.data``.
        before_finish: writes the caller's own rows inside the transaction that ends run and job. Runs in a database
            thread; ``run`` has its final values.

    Returns:
        How it ended; None when it had ended before.

    Raises:
        LeaseLost: another worker has the job; nothing more was written.
        Exception: the database's, or a bug's. The job's own rules decide about another attempt.
    """
    _, model = parse_model(run.model)
    stop = asyncio.Event()
    try:
        start = await ctx.in_db(_run_begin, ctx, run, system, list(history), toolset, limits)
        if start is None:
            return None
        if start.stop_requested:
            stop.set()
        recorder = Recorder(ctx, run.pk, start.transcript, stop)
        recorder.open()
        watch = asyncio.create_task(stop_watch(ctx, run.pk, stop), name=f"stop-watch-{run.pk}")
        try:
            if start.is_resumed:
                # Voids half a turn, and makes any late write of the worker before us miss.
                recorder.add(STEP_RESET, {"step": len(start.turns)})
                await recorder.flush()
            journal = RunJournal(
                ctx,
                run.pk,
                recorder,
                start.rows,
                paused=bool(start.turns) and start.turns[-1].stop == "pause",
            )
            events = run_loop(
                provider=provider,
                model=model,
                system=start.system,
                history=start.history,
                toolset=toolset,
                limits=limits,
                journal=journal,
                context=context,
                first_step=len(start.turns),
                usage=sum((turn.usage for turn in start.turns), Usage()),
                options=options,
                cache_key=cache_key,
                user_key=user_key,
                stop=stop,
            )
            finished = await _record(events, recorder)
            if recorder.error is not None:
                raise recorder.error
            if ctx.lost.is_set():
                raise LeaseLost(f"run {run.pk}: job {ctx.job_id} was taken over")
            await _run_finish(ctx, run, recorder, finished, before_finish)
            return finished
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            await recorder.close()
    finally:
        await _close(provider)


async def _close(provider: Provider) -> None:
    try:
        await provider.aclose()
    except Exception:  # the run's outcome counts, not how its connection ends
        log.exception("provider_close_failed", provider=provider.name)


async def _record(events: Any, recorder: Recorder) -> RunFinished:
    """Record the loop's events; tools' are recorded by the journal, in the transaction of their row."""
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                recorder.delta(TEXT, event.step, event.text)
            elif isinstance(event, ReasoningDelta):
                recorder.delta(REASONING, event.step, event.text)
            elif isinstance(event, StepReset):
                recorder.add(STEP_RESET, {"step": event.step, "reason": event.reason})
            elif isinstance(event, LimitReached):
                recorder.add(
                    LIMIT, {"step": event.step, "limit": event.limit, "detail": event.detail}
                )
            elif isinstance(event, RunFinished):
                return event
    raise RuntimeError("the loop ended without RunFinished")


def _run_begin(
    ctx: JobContext,
    run: Run,
    system: str,
    history: list[Message],
    toolset: Toolset,
    limits: Limits,
) -> _Start | None:
    """Mark the run as running; find where it stands when it is not the first attempt."""
    request = {
        **run.request,
        "system": text_storable(system),
        "history": json_storable([m.to_json() for m in history]),
        "tools": list(toolset.names()),
        "limits": asdict(limits),
    }
    with connection.cursor() as cursor:
        cursor.execute(
            _BEGIN,
            {
                "run": run.pk,
                "request": json.dumps(request),
                "job": ctx.job_id,
                "worker": ctx.worker,
                "attempt": ctx.attempt,
            },
        )
        row = cursor.fetchone()
    if row is not None:
        run.status, run.started_at, run.request = RunStatus.RUNNING, row[0], request
        return _Start(history, system, Transcript(seq=row[1]), bool(row[2]))
    with transaction.atomic():
        ctx.hold()
        stored: Run = Run.objects.select_for_update().get(pk=run.pk)
        if stored.status not in ACTIVE:
            return None
    run.started_at, run.request = stored.started_at, stored.request
    return _resumed(stored)


def _resumed(run: Run) -> _Start:
    turns = []
    for data in RunStep.objects.filter(run=run).order_by("index").values_list("turn", flat=True):
        message = message_from_json(data)
        if isinstance(message, Turn):
            turns.append(message)
    rows = {call_key(r.step, r.call_id): r for r in ToolCall.objects.filter(run=run)}
    base = [message_from_json(data) for data in run.request["history"]]
    return _Start(
        history=history_rebuilt(base, turns, rows),
        system=run.request["system"],
        transcript=transcript_read(run),
        stop_requested=run.stop_requested_at is not None,
        turns=turns,
        rows=rows,
        is_resumed=True,
    )


async def _run_finish(
    ctx: JobContext,
    run: Run,
    recorder: Recorder,
    finished: RunFinished,
    before_finish: Callable[[Run, RunFinished], None] | None,
) -> None:
    run.status = RunStatus(finished.status)
    run.stop_reason = finished.stop[:20]
    run.limit_reached = finished.limit[:30]
    run.error_code = finished.error_code[:60]
    run.error_message = text_storable(finished.error_message)
    run.is_retryable = finished.retryable
    run.usage = finished.usage.to_json()
    cost = finished.data.get("cost_usd")
    run.cost_usd = None if cost is None else Decimal(str(round(cost, 6)))
    run.answer = recorder.transcript.text
    run.finished_at = timezone.now()

    def end() -> None:
        run.save(
            update_fields=[
                "status", "stop_reason", "limit_reached", "error_code", "error_message",
                "is_retryable", "usage", "cost_usd", "answer", "finished_at",
            ]
        )  # fmt: skip
        # A stop may leave a call's row open when the tool did not come back in time.
        ToolCall.objects.filter(run=run, status=ToolCallStatus.RUNNING).update(
            status=ToolCallStatus.UNKNOWN, error_code="outcome_unknown", finished_at=run.finished_at
        )
        if before_finish is not None:
            before_finish(run, finished)
        ctx.complete()

    data = {**_finished_data(run), "notes": finished.data.get("notes", [])}
    await recorder.finish(FINISHED, data, end)


def _finished_data(run: Run) -> dict[str, Any]:
    return {
        "status": str(run.status),
        "error_code": run.error_code,
        "error_message": run.error_message,
        "limit": run.limit_reached,
        "usage": run.usage,
    }
