"""Follow the run behind a request until it has something to say: as it is said, or as one answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

from django.urls import reverse

from apps.conversations.citations.markers import passages_of
from apps.conversations.openai.problems import problem_json
from apps.conversations.openai.services import completion_stop
from apps.conversations.openai.wire import GrowingText, RunAnswer, answer_of, chunk, chunks_last
from apps.conversations.transcript.shown import run_withheld
from basics.event_stream import HEARTBEAT
from runs.approvals.deciders import approver_labels
from runs.models import DecisionStatus, PendingDecision, Run, RunEvent, RunStatus, RunStep
from runs.selectors import payload_list, quotes_named
from runs.stream import EventRow, events_follow, rows_read
from runs.transcript import FINISHED, PARKED, TEXT, TOOL_FINISHED, Transcript, transcript_of
from runs.usage import usage_recorded
from runs.withheld import transcript_withheld
from tenancy.actors import Actor
from tenancy.database.waiting import in_db
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

_PAYLOADS = "SELECT payload FROM runs_toolcall WHERE tenant_id = own_tenant() AND run_id = %s AND payload IS NOT NULL ORDER BY id"
_SAID_OTHERWISE = frozenset({TEXT, FINISHED})


@dataclass(frozen=True, slots=True)
class Followed:
    """Whose run is followed, and since when: events up to ``after`` were told in an earlier response.

    Attributes:
        with_events: tell the run's events too, under ``groundwork``.
        until: the last event of the response, None while it is not known.
        site: where this installation is reached, "" where nobody is told to go there.
    """

    tenant: Tenant
    actor: Actor
    run: Run
    model: str
    after: int
    with_events: bool = False
    until: int | None = None
    site: str = ""


@dataclass(frozen=True, slots=True)
class FollowEnd:
    """How it ended.

    Attributes:
        answer: what the run has to say.
        problem: what it failed with, in OpenAI's shape; None when it did not.
        code: our name of that, "" for none.
    """

    answer: RunAnswer
    problem: Mapping[str, Any] | None = None
    code: str = ""


Progress = str | list[dict[str, Any]] | FollowEnd | None


async def progress_follow(followed: Followed) -> AsyncGenerator[Progress, None]:
    """Yield new text, events of the run if they are wanted, None after a quiet while, and the outcome at last.

    Closed before that (the client went away), it stops the run. An answer that must have a form is yielded once it has it.
    """
    run, tenant = followed.run, followed.tenant
    transcript, growing = Transcript(), GrowingText()
    passages: dict[int, Any] = {}
    is_held, has_begun, is_over = _schema(run) is not None, False, False
    try:
        async with aclosing(events_follow(tenant.pk, run.pk, 0)) as batches:
            async for batch in batches:
                if batch is None:
                    yield None
                    continue
                if any(kind == TOOL_FINISHED for _, kind, _ in batch):
                    rows = await rows_read(tenant.pk, _PAYLOADS, (run.pk,))
                    passages = passages_of(row["payload"] for row in rows)
                told = [event for event in batch if event[0] <= followed.after]
                for event in told:
                    transcript.apply(*event)
                if told:
                    growing.more(transcript.text, passages)
                for event in batch[len(told) :]:
                    transcript.apply(*event)
                if followed.with_events and (events := _events(batch[len(told) :])):
                    yield events
                text = "" if is_held else growing.more(transcript.text, passages)
                text = text if has_begun else text.lstrip("\n")
                if text:
                    has_begun = True
                    yield text
                if transcript.phase == "parked" and batch[-1][0] > followed.after:
                    break
        is_over = True
        outcome = await in_db(outcome_read, followed)
        if is_held and outcome.answer.text:
            yield outcome.answer.text
        if outcome.answer.notice:
            has_begun = has_begun or bool(is_held and outcome.answer.text)
            yield f"\n\n{outcome.answer.notice}" if has_begun else outcome.answer.notice
        yield outcome
    finally:
        if not is_over:
            await in_db(_stop, followed)


async def chunks_follow(followed: Followed, *, with_usage: bool) -> AsyncGenerator[bytes, None]:
    """Yield a chat completion as server-sent events, ``[DONE]`` at last."""
    head = (followed.run.pk, int(followed.run.created_at.timestamp()), followed.model)
    # With usage asked for, OpenAI writes it as null until it is there.
    none: dict[str, Any] = {"usage": None} if with_usage else {}
    yield _data(chunk(*head, {"role": "assistant", "content": ""}, **none))
    async with aclosing(progress_follow(followed)) as progress:
        async for step in progress:
            if step is None:
                yield HEARTBEAT
            elif isinstance(step, str):
                yield _data(chunk(*head, {"content": step}, **none))
            elif isinstance(step, list):
                yield _data(chunk(*head, {}, groundwork={"events": step}, **none))
            elif step.problem:
                yield _data({"error": step.problem})
            else:
                for last in chunks_last(step.answer, with_usage=with_usage):
                    yield _data(last)
    yield b"data: [DONE]\n\n"


async def answer_wait(followed: Followed, has_left: Callable[[], bool]) -> FollowEnd:
    """Wait until a run has ended or waits for its client; return what it says.

    Cancelled before that (the client went away), it stops the run.

    Args:
        has_left: says whether the client has gone already. One that went before there was anything to cancel is told
            by nothing else.

    Raises:
        CancelledError: the client had gone.
    """
    run, is_over = followed.run, False
    try:
        if has_left():
            raise asyncio.CancelledError
        async with aclosing(events_follow(followed.tenant.pk, run.pk, followed.after)) as batches:
            async for batch in batches:
                if batch is not None and any(kind == PARKED for _, kind, _ in batch):
                    break
        is_over = True
    finally:
        if not is_over:
            await in_db(_stop, followed)
    return await in_db(outcome_read, followed)


def outcome_read(followed: Followed) -> FollowEnd:
    """Return what a run has said between two of its events, and what it waits for."""
    with tenant_scope(followed.tenant.pk):
        run = Run.objects.get(pk=followed.run.pk)
        events = RunEvent.objects.filter(run=run).order_by("seq")
        if followed.until is not None:
            events = events.filter(seq__lte=followed.until)
        rows = list(events.values_list("seq", "kind", "data"))
        whole, told = transcript_of(rows), transcript_of(r for r in rows if r[0] <= followed.after)
        waiting = PendingDecision.objects.filter(run=run, pk__in=list(whole.waiting))
        external = PendingDecision.Kind.EXTERNAL
        calls = waiting.filter(kind=external).order_by("pk").values_list("pk", "name", "arguments")
        open_ = waiting.exclude(kind=external).filter(status=DecisionStatus.PENDING)
        approvals = list(open_.order_by("pk"))
        usage = run.usage
        if followed.after or followed.until is not None:
            spoken = [max(t.steps, default=-1) for t in (told, whole)]
            usage = asdict(usage_recorded(run.pk, steps=range(spoken[0] + 1, spoken[1] + 1)))
        is_formed = _schema(run) is not None
        turns = RunStep.objects.filter(run=run).order_by("-index")
        stop, tier = turns.values_list("turn__stop", "turn__service_tier").first() or ("", "")
        found = run_withheld(followed.actor, run)
        whole, told = (transcript_withheld(said, found) for said in (whole, told))
        answer = answer_of(
            run,
            model=followed.model,
            text=whole.last_text if is_formed else whole.text,
            told="" if is_formed else told.text,
            passages=passages_of(found.value(payload_list(run)), quotes_named(run)),
            pending=[(pk, name, found.value(arguments or {})) for pk, name, arguments in calls],
            approvals=[row.name for row in approvals],
            notice=_notice(followed, approvals),
            usage=usage,
            stop=stop or "end",
            service_tier=tier or "",
            is_marked=not found,
        )
    if run.status != RunStatus.FAILED or answer.calls:
        return FollowEnd(answer)
    problem = problem_json(run.error_code, run.error_message, is_retryable=run.is_retryable)
    return FollowEnd(answer, problem, run.error_code)


def _notice(followed: Followed, approvals: Sequence[PendingDecision]) -> str:
    """Say what waits for approval, and where, to a client that shows its person nothing but text."""
    if not approvals:
        return ""
    wanted: dict[str, list[str]] = {}
    for row, label in zip(approvals, approver_labels(approvals), strict=True):
        wanted.setdefault("your" if label == "you" else f"{label}'s", []).append(row.name)
    needs = "; ".join(
        f"{' and '.join(dict.fromkeys(names))} {'need' if len(set(names)) > 1 else 'needs'} {whose} approval"
        for whose, names in wanted.items()
    )
    page = reverse("tools:approvals", args=[followed.tenant.slug])
    answer = reverse("api:runs-detail", args=[followed.run.pk])
    return (
        f"[This answer waits: {needs} before it runs. Decide at {followed.site}{page}. "
        f"Then the answer continues; read it at {followed.site}{answer}.]"
    )


def _schema(run: Run) -> Any:
    return run.request["completion"]["schema"]


def _events(batch: Sequence[EventRow]) -> list[dict[str, Any]]:
    return [
        {"seq": seq, "kind": kind, "data": data} for seq, kind, data in batch if kind not in _SAID_OTHERWISE
    ]


def _data(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def _stop(followed: Followed) -> None:
    with tenant_scope(followed.tenant.pk):
        completion_stop(tenant=followed.tenant, actor=followed.actor, run=followed.run)


LOST = problem_json("permission_denied", "You can no longer read this.", is_retryable=False)
"""What a client reads whose right was taken away while an answer was streamed."""
CHUNKS_LOST = _data({"error": LOST}) + b"data: [DONE]\n\n"
