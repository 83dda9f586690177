"""Carry out a run: the only caller of the loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Literal

import structlog
from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Concat
from django.utils import timezone

from budgets.ledger import ANY_BUDGET, run_holds_release
from jobs.context import JobContext, LeaseLost
from runs.actors import gone_of
from runs.approvals.parking import decisions_of, pending_store
from runs.going_on import GoingOn
from runs.journal import RunJournal, call_key, history_rebuilt
from runs.models import CallPath, Run, RunStatus, RunStep, ToolCall, ToolCallStatus
from runs.providers import loop_model
from runs.recorder import Recorder
from runs.reservations import RunReservations, run_billing_account
from runs.result_files import FileKeeper, ResultFiles
from runs.selectors import transcript_read
from runs.services.later import Later, run_postpone, usage_of
from runs.services.lifecycle import finished_data, finished_tell, open_ends_close, parked_end
from runs.services.subagents import HELPING, SharedRun
from runs.stopping import stop_watch
from runs.telemetry import run_telemetry
from runs.transcript import FINISHED, LIMIT, PARKED, REASONING, STEP_RESET, TEXT, Transcript
from runs.usage import attribution_of, usage_recorded
from runs.writes import LastWrite
from tenancy.actors import Actor
from tenancy.database.cursors import not_waited
from toolloop.batches.base import AnswersLater
from toolloop.deferred import Decision
from toolloop.events import LimitReached, ReasoningDelta, RunFinished, StepReset, TextDelta, ToolProgress
from toolloop.limits import Limits
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, Turn, message_from_json
from toolloop.output import Output
from toolloop.providers.base import Provider
from toolloop.providers.profiles import profile_for
from toolloop.storable import json_storable, text_storable
from toolloop.telemetry import run_traced
from toolloop.tokens import Usage
from toolloop.tools import Toolset

log = structlog.get_logger(__name__)

# One round trip on the way to the first text; losing this mark to a crash of the database does no harm.
_BEGIN = """
UPDATE runs_run SET status = 'running', started_at = now(), request = %(request)s::jsonb, job_id = %(job)s
WHERE tenant_id = own_tenant() AND id = %(run)s AND status = 'queued' AND started_at IS NULL AND EXISTS (
    SELECT 1 FROM jobs_job WHERE tenant_id = own_tenant() AND id = %(job)s AND worker = %(worker)s
    AND attempts = %(attempt)s AND status = 'running')
RETURNING started_at, last_seq, stop_requested_at IS NOT NULL, """


# What the last statement of a run changes in its row.
_ENDED = (
    *("status", "stop_reason", "limit_reached", "error_code", "error_message", "is_retryable"),
    *("usage", "cost_usd", "answer", "finished_at"),
)


@dataclass(slots=True)
class _Start:
    """Where an attempt at a run begins; ``history`` is what the run was started with."""

    history: list[ModelMessage]
    system: str
    transcript: Transcript
    stop_requested: bool
    turns: list[Turn] = field(default_factory=list)
    rows: dict[tuple[int, str], ToolCall] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    usage: Usage = Usage()  # noqa: RUF009 - frozen
    responses: dict[int, str] = field(default_factory=dict)
    is_resumed: bool = False
    has_budget: bool | None = None


async def run_execute(
    ctx: JobContext,
    run: Run,
    *,
    toolset: Toolset,
    provider: Provider,
    system: str,
    history: Sequence[ModelMessage],
    unstored: str = "",
    limits: Limits = Limits(),  # noqa: B008 - frozen
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    output: Output | None = None,
    tool_choice: Literal["auto", "required", "none"] = "auto",
    cache_key: str = "",
    user_key: str = "",
    before_finish: Callable[[Run, RunFinished], None] | None = None,
    later: Later | None = None,
    file_keeper: FileKeeper | None = None,
    actor: Actor | None = None,
) -> RunFinished | None:
    """Drive the loop for a run, record it, and end run and job together; call it from a job of the loop lane.

    Called again for a run that a crash or a shut-down has interrupted, or that was parked and decided about, it goes on
    from the journal: finished turns and calls are not repeated, and ``system`` and ``history`` are those of the first
    attempt. A run that parks ends its job; ``call_decide`` enqueues the next one.

    Args:
        ctx: the job; its lease fences every write.
        run: the run, whose ``model`` is asked.
        provider: adapter for that model; closed at the end.
        unstored: what the model reads below ``system`` and neither row nor span keeps, as it is its person's alone: each
            attempt takes what it is given.
        context: given to tools as ``ToolContext.data``.
        output, tool_choice: see ``LoopInput``.
        before_finish: writes the caller's own rows inside the transaction that ends run and job; not called when the
            run parks. Runs in a database thread; ``run`` has its final values.
        file_keeper: keeps the files that tools return; see ``runs.result_files``.
        actor: the run's person as they were read just before; see ``GoingOn``.
        later: of a model that may answer a day later; the run is called again when the answer is there.

    Returns:
        How it ended; None when it has not: it had ended before, or waits for a decision or for an answer.

    Raises:
        Denied: ``actor_gone``, the run's person or key has lost its access, or ``source_lost``, they may not read any more
            what the run has read; looked at before each call.
        LeaseLost: another worker has the job; nothing more was written.
        Exception: the database's, or a bug's. The job's own rules decide about another attempt.
    """
    model, profile = loop_model(provider, run.model)
    stop = asyncio.Event()
    try:
        files = ResultFiles(provider.name, profile or profile_for(provider.name, model), file_keeper)
        start = await ctx.in_db(_run_begin, ctx, run, system, list(history), toolset, limits)
        if start is None:
            return None
        if start.stop_requested:
            stop.set()
        if start.is_resumed:
            files = await ctx.in_db(files.again)
            start.history = history_rebuilt(start.history, start.turns, start.rows, files)
        recorder = Recorder(ctx, run.pk, start.transcript, stop)
        recorder.open()
        gone = asyncio.Event()
        watch = asyncio.create_task(stop_watch(ctx, run, stop, gone), name=f"stop-watch-{run.pk}")
        try:
            if start.is_resumed:  # Voids half a turn, and makes any late write of the worker before us miss.
                recorder.add(STEP_RESET, {"step": len(start.turns)})
                await recorder.flush()
                toolset.restore(start.history)
            account = run_billing_account(run)
            reservations = RunReservations(account, ctx.in_db, run_id=run.pk, has_budget=start.has_budget)
            journal = RunJournal(
                recorder,
                start.rows,
                toolset=toolset,
                path=run.request.get("path", CallPath.JOB),
                paused=bool(start.turns) and start.turns[-1].stop == "pause",
                require=partial(ctx.in_db, GoingOn(run, reservations.known, actor).require),
                has_begun=start.is_resumed,
                remember=lambda step, key: ctx.in_db(_response_keep, ctx, run.pk, step, key),
                responses=start.responses,
                begins=None if later is None else later.turn_begins,
                leave=lambda: _leave(ctx, recorder),
                files=files,
            )
            events = run_traced(
                run_telemetry(is_private=bool(unstored)),
                LoopInput(
                    model=model,
                    system="\n\n".join(filter(None, [start.system, unstored])),
                    history=start.history,
                    toolset=toolset,
                    limits=limits,
                    context={
                        **(context or {}),
                        HELPING: SharedRun(reservations, journal.helper_reported, attribution_of(run)),
                    },
                    first_step=len(start.turns),
                    usage=start.usage if later is None else usage_of(start.turns),
                    options=options,
                    output=output,
                    tool_choice=tool_choice,
                    cache_key=cache_key,
                    user_key=user_key,
                    decisions=start.decisions,
                ),
                LoopServices(
                    provider=provider,
                    journal=journal,
                    stop=stop,
                    profile=profile,
                    run_blocking=ctx.blocking,
                    run_admission=ctx.in_db,
                    on_usage=journal.usage_reported if later is None else None,
                    usage_metadata=attribution_of(run),
                    reservations=reservations if later is None else later.reservations,
                ),
                agent_name=run.kind,
                conversation_id=cache_key,
            )
            finished = _with_helpers(await _record(events, recorder), journal)
            if recorder.error is not None:
                raise recorder.error
            if ctx.lost.is_set():
                raise LeaseLost(f"run {run.pk}: job {ctx.job_id} was taken over")
            if gone.is_set():
                await recorder.flush()
                await ctx.in_db(_run_lost, run)
            if later is not None and finished.error_code == AnswersLater.code:
                await run_postpone(run, finished.step, recorder, later)
                return None
            if finished.status == "parked":
                await _run_park(run, recorder, finished)
            else:
                may_be_open = start.is_resumed or journal.has_open
                await _run_finish(run, recorder, finished, before_finish, may_be_open=may_be_open)
            if reservations.is_used:
                await ctx.in_db(reservations.close)
            return finished
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            await recorder.close()
    finally:
        await _close(provider)


async def _leave(ctx: JobContext, recorder: Recorder) -> None:
    """Go back to the queue between two turns when the worker ends, with the last one stored: it was paid for."""
    if ctx.interrupted.is_set():
        await recorder.flush()
        ctx.leave_at_step()


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
            elif isinstance(event, ToolProgress):
                recorder.progress(event.step, call_key(event.step, event.call.id)[1], event.text)
            elif isinstance(event, StepReset):
                recorder.add(STEP_RESET, {"step": event.step, "reason": event.reason})
            elif isinstance(event, LimitReached):
                recorder.add(LIMIT, {"step": event.step, "limit": event.limit, "detail": event.detail})
            elif isinstance(event, RunFinished):
                return event
    raise RuntimeError("the loop ended without RunFinished")


def _with_helpers(finished: RunFinished, journal: RunJournal) -> RunFinished:
    """Add what helpers have used to what the run has."""
    cost = finished.data.get("cost_usd")
    if cost is not None:
        cost += journal.helped_usd
    return replace(finished, usage=finished.usage + journal.helped, data={**finished.data, "cost_usd": cost})


def _run_begin(
    ctx: JobContext, run: Run, system: str, history: list[ModelMessage], toolset: Toolset, limits: Limits
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
        fence = {"job": ctx.job_id, "worker": ctx.worker, "attempt": ctx.attempt}
        values: dict[str, Any] = {**fence, "run": run.pk, "request": json.dumps(request)}
        cursor.execute(_BEGIN + f"{ANY_BUDGET}, {not_waited()}", values)
        row = cursor.fetchone()
    if row is not None:
        run.status, run.started_at, run.request = RunStatus.RUNNING, row[0], request
        return _Start(history, system, Transcript(seq=row[1]), bool(row[2]), has_budget=row[3])
    with transaction.atomic():
        ctx.hold()
        stored: Run = Run.objects.select_for_update().get(pk=run.pk)
        if stored.status not in (RunStatus.QUEUED, RunStatus.RUNNING):
            return None
        if stored.status == RunStatus.QUEUED:  # It was parked, and everything is decided.
            stored.status = RunStatus.RUNNING
            stored.save(update_fields=["status"])
    run.status = stored.status
    run.started_at, run.request = stored.started_at, stored.request
    return _resumed(stored)


def _resumed(run: Run) -> _Start:
    run_holds_release(run.pk)  # Of calls that died with the attempt before.
    steps = RunStep.objects.filter(run=run).order_by("index").values_list("turn", flat=True)
    turns = [turn for turn in map(message_from_json, steps) if isinstance(turn, Turn)]
    rows = {call_key(r.step, r.call_id): r for r in ToolCall.objects.filter(run=run)}
    return _Start(
        history=[message_from_json(data) for data in run.request["history"]],
        system=run.request["system"],
        transcript=transcript_read(run),
        stop_requested=run.stop_requested_at is not None,
        turns=turns,
        rows=rows,
        decisions=decisions_of(run, turns, rows),
        usage=usage_recorded(run.pk),
        responses={run.background["step"]: run.background["id"]} if run.background else {},
        is_resumed=True,
    )


def _response_keep(ctx: JobContext, run_id: int, step: int, response_id: str) -> None:
    """Store under which id the provider answers in the background, so that the next attempt fetches the answer."""
    with transaction.atomic():
        ctx.hold()
        Run.objects.filter(pk=run_id).update(background={"step": step, "id": response_id})


def _run_lost(run: Run) -> None:
    """End a run whose person or key has lost their access, which its unfinished calls say too. Raises Denied.

    They are not stopped: nobody has stopped them.
    """
    if (lost := gone_of(run)) is not None:
        calls = ToolCall.objects.filter(tenant_id=run.tenant_id, run=run, error_code="cancelled")
        calls.update(
            status=ToolCallStatus.FAILED,
            error_code=lost.code,
            content=Concat("content", Value(f" {lost.message}")),
        )
        raise lost


async def _run_finish(
    run: Run,
    recorder: Recorder,
    finished: RunFinished,
    before_finish: Callable[[Run, RunFinished], None] | None,
    *,
    may_be_open: bool,
) -> None:
    run.status = RunStatus(finished.status)
    run.stop_reason = finished.stop[:20]
    run.limit_reached = finished.limit[:30]
    run.error_code = finished.error_code[:60]
    run.error_message = text_storable(finished.error_message)
    run.is_retryable = finished.retryable
    _spent(run, finished)
    run.answer = recorder.transcript.text
    run.finished_at = timezone.now()

    def end(written: LastWrite) -> None:
        if may_be_open:  # A stop may leave a call's row open when the tool did not come back in time.
            open_ends_close(run)
        finished_tell(run, has_webhooks=written.has_webhooks)
        if before_finish is not None:
            before_finish(run, finished)

    data = {**finished_data(run), "notes": finished.data.get("notes", [])}
    fields = [field for field in Run._meta.concrete_fields if field.name in _ENDED]
    columns = {field.name: field.get_prep_value(getattr(run, field.name)) for field in fields}
    await recorder.finish(FINISHED, data, end, columns={**columns, "usage": json.dumps(run.usage)})


async def _run_park(run: Run, recorder: Recorder, finished: RunFinished) -> None:
    """End this attempt: the run waits for decisions, and no worker waits with it."""
    run.status = RunStatus.PARKED
    _spent(run, finished)

    def park() -> dict[str, Any]:
        run.save(update_fields=["status", "usage", "cost_usd"])
        return {"pending": pending_store(run, finished.step, finished.pending)}

    def parked(written: LastWrite) -> None:
        # Whoever asked while we parked saw a running run and left the end to us.
        if written.stop_requested:
            parked_end(Run.objects.get(pk=run.pk))

    await recorder.finish(PARKED, {"step": finished.step, "usage": run.usage}, parked, park)


def _spent(run: Run, finished: RunFinished) -> None:
    run.usage = finished.usage.to_json()
    cost = finished.data.get("cost_usd")
    run.cost_usd = None if cost is None else Decimal(str(round(cost, 6)))
