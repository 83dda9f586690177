"""Follow the run behind a chat completion until it has something to say: as a stream of chunks, or as one answer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async

from apps.conversations.citations import passages_of
from apps.conversations.openai.services import completion_stop
from apps.conversations.openai.wire import Answer, Growing, answer_of, chunk, chunks_last
from runs.models import DecisionStatus, PendingDecision, Run, RunEvent, RunStatus
from runs.selectors import payload_list, transcript_read
from runs.stream import HEARTBEAT, events_follow, rows_read
from runs.transcript import PARKED, TOOL_FINISHED, Transcript, transcript_of
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope

_PAYLOADS = (
    "SELECT payload FROM runs_toolcall WHERE run_id = %s AND payload IS NOT NULL ORDER BY id"
)


@dataclass(frozen=True, slots=True)
class Followed:
    """Whose run is followed, and since when: events up to ``after`` were told in an earlier response."""

    tenant: Tenant
    actor: Actor
    run: Run
    model: str
    after: int


async def chunks_follow(followed: Followed, *, with_usage: bool) -> AsyncGenerator[bytes, None]:
    """Yield a response as server-sent events, ``[DONE]`` at last. A client that goes away stops the run."""
    run, tenant = followed.run, followed.tenant
    head = (run.pk, int(run.created_at.timestamp()), followed.model)
    transcript, growing = Transcript(), Growing()
    passages: dict[int, Any] = {}
    is_over = False
    try:
        yield _data(chunk(*head, {"role": "assistant", "content": ""}))
        async with aclosing(events_follow(tenant.pk, run.pk, 0)) as batches:
            async for batch in batches:
                if batch is None:
                    yield HEARTBEAT
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
                text = growing.more(transcript.text, passages)
                if text:
                    yield _data(chunk(*head, {"content": text}))
                if transcript.phase == "parked" and batch[-1][0] > followed.after:
                    break
        is_over = True
        answer, problem = await sync_to_async(_answer)(followed)
        if problem:
            yield _data({"error": problem})
        else:
            for last in chunks_last(answer, with_usage=with_usage):
                yield _data(last)
        yield b"data: [DONE]\n\n"
    finally:
        if not is_over:
            await sync_to_async(_stop)(followed)


async def answer_wait(followed: Followed) -> tuple[Answer, Mapping[str, Any] | None]:
    """Wait until a run has ended or waits for its client; return what it says, and its problem if it failed."""
    run = followed.run
    async with aclosing(events_follow(followed.tenant.pk, run.pk, followed.after)) as batches:
        async for batch in batches:
            if batch is not None and any(kind == PARKED for _, kind, _ in batch):
                break
    return await sync_to_async(_answer)(followed)


def _data(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def _answer(followed: Followed) -> tuple[Answer, Mapping[str, Any] | None]:
    with tenant_scope(followed.tenant.pk):
        run = Run.objects.get(pk=followed.run.pk)
        waiting = list(
            PendingDecision.objects.filter(run=run, status=DecisionStatus.PENDING)
            .order_by("pk")
            .values_list("kind", "pk", "name", "arguments")
        )
        earlier = RunEvent.objects.filter(run=run, seq__lte=followed.after).order_by("seq")
        external = PendingDecision.Kind.EXTERNAL
        answer = answer_of(
            run,
            model=followed.model,
            text=transcript_read(run).text,
            told=transcript_of(earlier.values_list("seq", "kind", "data")).text,
            passages=passages_of(payload_list(run)),
            pending=[
                (pk, name, args or {}) for kind, pk, name, args in waiting if kind == external
            ],
            approvals=[name for kind, _, name, _ in waiting if kind != external],
        )
    if run.status != RunStatus.FAILED:
        return answer, None
    kind = "server_error" if run.is_retryable else "invalid_request_error"
    return answer, {"message": run.error_message, "type": kind, "param": None, "code": run.error_code}  # fmt: skip


def _stop(followed: Followed) -> None:
    with tenant_scope(followed.tenant.pk):
        completion_stop(tenant=followed.tenant, actor=followed.actor, run=followed.run)
