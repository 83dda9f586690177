"""Record runs that kept a journal of their own while they went on, in the transaction that ends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from basics.storable import json_storable, text_storable
from runs.journal import (
    call_arguments,
    call_key,
    name_storable,
    result_size,
    verdict_put,
    version_of,
)
from runs.models import CallPath, ChunkRead, Run, RunStatus, RunStep, ToolCallStatus
from runs.models import ToolCall as Row
from runs.reads import reads_of
from tenancy.models import Tenant
from toolloop.messages import ToolCall, ToolResult, Turn, Usage
from toolloop.tools import Tool
from toolloop.tools.tool import Verdict


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A tool call that has ended.

    Attributes:
        tool: None for a name that the toolset does not know.
        verdict: what the policy said, None where it was not asked.
    """

    step: int
    call: ToolCall
    result: ToolResult
    seconds: float
    tool: Tool | None
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class AnsweredRun:
    """A run that has come to an answer.

    Attributes:
        request: what it was started with, as ``Run.request`` keeps it; JSON.
        cost_usd: None where the price is not known.
    """

    kind: str
    model: str
    request: Mapping[str, Any]
    answer: str
    turns: Sequence[Turn]
    calls: Sequence[AnsweredCall]
    usage: Usage
    cost_usd: float | None
    seconds: float


def runs_record(*, tenant: Tenant, user_id: int | None, runs: Sequence[AnsweredRun]) -> list[int]:
    """Write runs with their turns, calls and reads, in the caller's transaction; returns their ids in order.

    Their usage is not written: whoever paid for the calls has recorded it then.
    """
    if not runs:
        return []
    now = timezone.now()
    rows = Run.objects.bulk_create(
        Run(
            tenant=tenant,
            user_id=user_id,
            kind=run.kind,
            model=run.model,
            status=RunStatus.COMPLETED,
            request=json_storable(dict(run.request)),
            answer=text_storable(run.answer),
            stop_reason="end",
            usage=run.usage.to_json(),
            cost_usd=None if run.cost_usd is None else Decimal(str(round(run.cost_usd, 6))),
            started_at=now - timedelta(seconds=run.seconds),
            finished_at=now,
        )
        for run in runs
    )
    RunStep.objects.bulk_create(
        RunStep(tenant=tenant, run=row, index=index, turn=json_storable(turn.to_json()))
        for row, run in zip(rows, runs, strict=True)
        for index, turn in enumerate(run.turns)
    )
    Row.objects.bulk_create(
        _call_row(tenant, row, call)
        for row, run in zip(rows, runs, strict=True)
        for call in run.calls
    )
    ChunkRead.objects.bulk_create(
        (
            ChunkRead(tenant=tenant, run_id=row.pk, user_id=user_id, **read)
            for row, run in zip(rows, runs, strict=True)
            for call in run.calls
            if not call.result.is_error
            for read in reads_of(call.call.name, call.result.payload)
        ),
        ignore_conflicts=True,
    )
    return [row.pk for row in rows]


def _call_row(tenant: Tenant, run: Run, made: AnsweredCall) -> Row:
    arguments, shown = call_arguments(made.call, made.tool)
    now = timezone.now()
    row = Row(
        tenant=tenant,
        run=run,
        user_id=run.user_id,
        step=made.step,
        call_id=call_key(made.step, made.call.id)[1],
        path=CallPath.JOB,
        name=name_storable(made.call.name),
        tool_version=version_of(made.tool),
        arguments=arguments,
        arguments_masked=shown,
        status=ToolCallStatus.FAILED if made.result.is_error else ToolCallStatus.SUCCEEDED,
        content=text_storable(made.result.content),
        payload=json_storable(made.result.payload),
        result_size=result_size(made.result),
        error_code=made.result.error_code[:60],
        started_at=now - timedelta(seconds=made.seconds),
        finished_at=now,
        duration_ms=round(made.seconds * 1000),
    )
    if made.verdict is not None:
        verdict_put(row, made.verdict)
    return row
