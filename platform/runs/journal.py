"""The loop's journal on rows: each turn and each tool call is stored together with the event that shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from jobs.context import JobContext
from runs.models import RunStep, ToolCallStatus
from runs.models import ToolCall as Row
from runs.recorder import Recorder
from runs.storable import json_storable, text_storable
from runs.transcript import STEP_STARTED, TOOL_FINISHED, TOOL_STARTED
from toolloop.messages import Message, ToolCall, ToolResult, Turn
from toolloop.tools import Tool

_OUTCOME_UNKNOWN = (
    "{name} was started and the worker died before it ended: the outcome is unknown, and it was not run again. Find out "
    "by other means whether it took effect before you repeat it."
)
_STATUS_OF_ERROR = {
    "denied": ToolCallStatus.DENIED,
    "permission_denied": ToolCallStatus.DENIED,
    "outcome_unknown": ToolCallStatus.UNKNOWN,
    "lost": ToolCallStatus.UNKNOWN,
}
_CALL_ID_LENGTH, _NAME_LENGTH, _SUMMARY_LENGTH = 200, 100, 160


def call_key(step: int, call_id: str) -> tuple[int, str]:
    """Return what a call is found by (a model may write ids of any length)."""
    return step, text_storable(call_id)[:_CALL_ID_LENGTH]


def result_stored(call: ToolCall, row: Row) -> ToolResult:
    """Rebuild the result of a call that has ended from its row."""
    return ToolResult(
        call.id,
        call.name,
        row.content,
        is_error=row.status != ToolCallStatus.SUCCEEDED,
        payload=row.payload,
        error_code=row.error_code,
    )


def history_rebuilt(
    base: Iterable[Message], turns: Iterable[Turn], rows: dict[tuple[int, str], Row]
) -> list[Message]:
    """Return the history a killed run has to go on with.

    Args:
        base: what the run was started with.
        turns: its finished model turns, in order.
        rows: its tool calls by ``call_key``. Calls that have not ended are left unanswered: the loop asks the journal
            about them.
    """
    history = list(base)
    for step, turn in enumerate(turns):
        history.append(turn)
        for call in turn.tool_calls:
            row = rows.get(call_key(step, call.id))
            if row is not None and row.status != ToolCallStatus.RUNNING:
                history.append(result_stored(call, row))
    return history


class RunJournal:
    """Implements ``toolloop.journal.Journal`` for one attempt at a run.

    Args:
        ctx: the job that carries the run.
        run_id: the run.
        recorder: writes the events, in the same transactions.
        rows: tool calls of earlier attempts, by ``call_key``.
        paused: whether the last stored turn was paused, so that the next one goes on in mid-sentence.
    """

    def __init__(
        self,
        ctx: JobContext,
        run_id: int,
        recorder: Recorder,
        rows: dict[tuple[int, str], Row] | None = None,
        *,
        paused: bool = False,
    ) -> None:
        self._tenant_id, self._run_id = ctx.tenant_id, run_id
        self._recorder = recorder
        self._rows = rows or {}
        self._paused = paused

    async def turn_started(self, step: int) -> None:
        """See ``Journal``. Nothing is stored at once: a step without a stored turn is simply asked again."""
        self._recorder.step_begins()
        self._recorder.add(STEP_STARTED, {"step": step, "continues": self._paused})

    async def turn_finished(self, step: int, turn: Turn) -> None:
        """See ``Journal``. All text of the turn is written by then."""
        self._paused = turn.stop == "pause"
        data = json_storable(turn.to_json())

        def store() -> None:
            RunStep.objects.create(
                tenant_id=self._tenant_id, run_id=self._run_id, index=step, turn=data
            )

        await self._recorder.flush(also=store)

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        """See ``Journal``: run it, use the stored result, or answer that its outcome is unknown."""
        if tool is None:
            return None
        row = self._rows.get(call_key(step, call.id))
        if row is not None and row.status != ToolCallStatus.RUNNING:
            return result_stored(call, row)
        once = tool.side_effects or not tool.idempotent
        if row is not None and (row.has_side_effects or once):
            text = _OUTCOME_UNKNOWN.format(name=call.name)
            result = ToolResult(
                call.id, call.name, text, is_error=True, error_code="outcome_unknown"
            )
            await self.call_finished(step, call, result, 0.0)
            return result
        if row is None:
            row = self._row(step, call)
            row.has_side_effects = once
        else:
            row.attempts += 1
        event = {"step": step, "call_id": row.call_id, "name": row.name}
        self._recorder.add(TOOL_STARTED, {**event, "arguments": row.arguments})
        # What has side effects must be known to have started even if the machine loses power now.
        await self._recorder.flush(also=row.save, durable=once)
        self._rows[call_key(step, call.id)] = row
        return None

    async def call_finished(
        self, step: int, call: ToolCall, result: ToolResult, duration_s: float
    ) -> None:
        """See ``Journal``."""
        key = call_key(step, call.id)
        row = self._rows.get(key) or self._row(step, call)
        row.status = ToolCallStatus.SUCCEEDED
        if result.is_error:
            row.status = _STATUS_OF_ERROR.get(result.error_code, ToolCallStatus.FAILED)
        row.content = text_storable(result.content)
        row.payload = json_storable(result.payload)
        row.error_code = result.error_code[:60]
        row.finished_at = timezone.now()
        row.duration_ms = round(duration_s * 1000)
        own = row.payload.get("summary") if isinstance(row.payload, dict) else None
        self._recorder.add(
            TOOL_FINISHED,
            {
                "step": step,
                "call_id": row.call_id,
                "name": row.name,
                "status": str(row.status),
                "summary": summary_of(own, row.content),
                "duration_ms": row.duration_ms,
            },
        )
        await self._recorder.flush(also=row.save, durable=row.has_side_effects)
        self._rows[key] = row

    def _row(self, step: int, call: ToolCall) -> Row:
        arguments: Any = call.raw if call.arguments is None else call.arguments
        return Row(
            tenant_id=self._tenant_id,
            run_id=self._run_id,
            step=step,
            call_id=call_key(step, call.id)[1],
            name=text_storable(call.name)[:_NAME_LENGTH],
            arguments=json_storable(arguments),
        )


def summary_of(own: object, content: str) -> str:
    """Return one line about a call that has ended: the tool's own ``payload["summary"]``, or its first line."""
    text = own if isinstance(own, str) and own else content
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= _SUMMARY_LENGTH else f"{line[: _SUMMARY_LENGTH - 1]}…"
