"""The loop's journal on rows: each turn and each tool call is stored together with the event that shows it.

What must be known before anything else happens is written at once and durably: the start and the end of a call that must
not run twice, with the turn that asked for it. Everything else may be lost with the process, because a resumed run does
it again without harm; it is written together with what follows, within ``pace.FLUSH_S``. An attempt after the first
writes each step before the next begins: the job counts a worker's death against the step that is not written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.utils import timezone

from basics.errors import Denied
from runs.models import UNENDED, CallDecision, CallPath, ToolCallStatus
from runs.models import ToolCall as Row
from runs.reads import reads_of
from runs.recorder import Recorder
from runs.result_files import ResultFiles
from runs.transcript import STEP_STARTED, TOOL_FINISHED, TOOL_STARTED, TOOL_WAITING
from runs.usage import HELPER, usage_columns
from toolloop.deferred import PendingCall
from toolloop.masking import masked
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn
from toolloop.metering import UsageEvent
from toolloop.storable import json_storable, text_storable
from toolloop.tokens import Usage
from toolloop.tools import Tool, Toolset
from toolloop.tools.tool import Verdict

_OUTCOME_UNKNOWN = (
    "{name} was started and the worker died before it ended: the outcome is unknown, and it was not run again. Find out "
    "by other means whether it took effect before you repeat it."
)
_STATUS_OF_ERROR = {
    "denied": ToolCallStatus.DENIED,
    "permission_denied": ToolCallStatus.DENIED,
    "rejected": ToolCallStatus.DENIED,
    "outcome_unknown": ToolCallStatus.UNKNOWN,
    "lost": ToolCallStatus.UNKNOWN,
    "cancelled": ToolCallStatus.STOPPED,
}
_CALL_ID_LENGTH, _NAME_LENGTH, _VERSION_LENGTH, _SUMMARY_LENGTH = 200, 100, 64, 160


def call_key(step: int, call_id: str) -> tuple[int, str]:
    """Return what a call is found by.

    A model may write ids of any length, and calls of calls have longer ones: what does not fit is cut, with a mark that
    keeps two of one beginning apart.
    """
    text = text_storable(call_id)
    if len(text) > _CALL_ID_LENGTH:
        mark = hashlib.sha256(text.encode()).hexdigest()[:24]
        text = f"{text[: _CALL_ID_LENGTH - len(mark) - 1]}~{mark}"
    return step, text


def name_storable(name: str) -> str:
    """Return a tool's name as it is stored (a model may write any)."""
    return text_storable(name)[:_NAME_LENGTH]


def result_stored(call: ToolCall, row: Row, files: ResultFiles | None) -> ToolResult:
    """Rebuild the result of a call that has ended from its row, with the files that were kept of it."""
    return ToolResult(
        call.id,
        call.name,
        row.content,
        is_error=row.status != ToolCallStatus.SUCCEEDED,
        payload=row.payload,
        error_code=row.error_code,
        parts=() if files is None else tuple(files.kept.get((row.step, row.call_id), ())),
    )


def history_rebuilt(
    base: Iterable[ModelMessage],
    turns: Iterable[Turn],
    rows: dict[tuple[int, str], Row],
    files: ResultFiles,
) -> list[ModelMessage]:
    """Return the history a killed or parked run has to go on with.

    Args:
        base: what the run was started with.
        turns: its finished model turns, in order.
        rows: its tool calls by ``call_key``. Calls that have not ended are left unanswered: the loop asks the journal
            about them.
        files: with what was kept of their results.
    """
    history = list(base)
    for step, turn in enumerate(turns):
        history.append(turn)
        for call in turn.tool_calls:
            row = rows.get(call_key(step, call.id))
            if row is not None and row.status not in UNENDED:
                history.append(result_stored(call, row, files))
    return history


class RunJournal:
    """Implements ``toolloop.journal`` for one attempt at a run: parking, judging, knowing and remembering.

    Args:
        recorder: writes the events, in the same transactions.
        rows: tool calls of earlier attempts, by ``call_key``.
        toolset: the run's tools; says which version is called, and which arguments are secret.
        path: how the run's calls came here; those that tools make are known by their ids.
        paused: whether the last stored turn was paused, so that the next one goes on in mid-sentence.
        remember: stores the id of an answer in the background, with its step; None where that cannot be.
        responses: ids that earlier attempts have stored, by step.
        require: asked before each further model turn, and before calls of tools that no policy guards; raises where the run's
            person or key may not go on. Before the first turn the caller has asked itself, unless the run ``has_begun``.
        begins: told the number of each turn.
        leave: raises where the attempt ends before the next turn, which is asked for elsewhere.
        files: what becomes of the files in results; None leaves them to the model.
    """

    def __init__(
        self,
        recorder: Recorder,
        rows: dict[tuple[int, str], Row] | None = None,
        *,
        toolset: Toolset,
        path: str = CallPath.JOB,
        paused: bool = False,
        require: Callable[[], Awaitable[object]] | None = None,
        has_begun: bool = False,
        remember: Callable[[int, str], Awaitable[object]] | None = None,
        responses: Mapping[int, str] | None = None,
        begins: Callable[[int], None] | None = None,
        leave: Callable[[], Awaitable[object]] | None = None,
        files: ResultFiles | None = None,
    ) -> None:
        self._recorder = recorder
        self._rows = rows or {}
        self._verdicts: dict[tuple[int, str], Verdict] = {}
        self._toolset, self._path = toolset, path
        self._paused = paused
        self._require, self._has_begun = require, has_begun
        self._remember, self._responses = remember, responses or {}
        self._begins, self._leave, self._files = begins, leave, files
        self._usage: dict[str, Any] | None = None
        self.helped, self.helped_usd = Usage(), 0.0
        self._shares: dict[int, Decimal] = {}

    @property
    def has_open(self) -> bool:
        """Tell whether a call has begun, or waits, that has not ended."""
        return any(row.status in UNENDED for row in self._rows.values())

    async def turn_started(self, step: int) -> None:
        """See ``Journal``. Nothing is stored at once: a step without a stored turn is simply asked again."""
        await self._recorder.settle()
        if self._leave is not None:
            await self._leave()
        if self._has_begun:
            await self._may_go_on()
        self._has_begun = True
        if self._begins is not None:
            self._begins(step)
        self._recorder.step_begins()
        self._recorder.add(STEP_STARTED, {"step": step, "continues": self._paused})

    async def turn_finished(self, step: int, turn: Turn) -> None:
        """See ``Journal``. Written with its first call, or soon: a turn that is lost is asked again."""
        self._paused = turn.stop == "pause"
        self._recorder.step_keep(step, turn.to_json())
        if self._usage is not None:
            if turn.tool_calls and self._usage["cost_usd"] is not None:
                self._shares[step] = Decimal(self._usage["cost_usd"]) / len(turn.tool_calls)
            self._recorder.usage_keep(self._usage)
            self._usage = None

    async def response_started(self, step: int, response_id: str) -> None:
        """See ``RememberingJournal``."""
        if self._remember is not None:
            await self._remember(step, text_storable(response_id)[:_CALL_ID_LENGTH])

    def response_of(self, step: int) -> str | None:
        """See ``RememberingJournal``."""
        return None if self._remember is None else self._responses.get(step, "")

    def usage_reported(self, event: UsageEvent) -> None:
        """Take what a request used; for ``on_usage`` of the loop.

        A turn's record waits for the turn, so that both are written in one transaction: a turn that is lost is asked
        again, and counts once.
        """
        if event.is_cached:
            return
        if event.is_lost:
            self._recorder.usage_keep(usage_columns(event))
        else:
            self._usage = usage_columns(event)

    def helper_reported(self, step: int, event: UsageEvent) -> None:
        """Take what a request of a helper used (``runs.services.subagents``); it counts for the run like its own."""
        if event.is_cached:
            return
        columns = usage_columns(event)
        self._recorder.usage_keep({**columns, "step": step, "kind": HELPER})
        self.helped += event.usage
        if event.cost_usd is not None:
            self.helped_usd += event.cost_usd

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        """See ``Journal``: run it, use the stored result, or answer that its outcome is unknown."""
        if tool is not None and tool.admit is None:
            await self._may_go_on()
        row = self._rows.get(call_key(step, call.id))
        if tool is None:  # gone, or not permitted any more; what it had begun before may have taken effect
            once = row is not None and row.has_side_effects
            if not (once and row is not None and row.status == ToolCallStatus.RUNNING):
                return None
        else:
            once = tool.side_effects or not tool.idempotent
        if row is not None and row.status not in UNENDED:
            return result_stored(call, row, self._files)
        was_running = row is not None and row.status == ToolCallStatus.RUNNING
        if row is not None and was_running and (row.has_side_effects or once):
            text = _OUTCOME_UNKNOWN.format(name=call.name)
            result = ToolResult(call.id, call.name, text, is_error=True, error_code="outcome_unknown")
            await self.call_finished(step, call, result, 0.0)
            return result
        assert tool is not None  # noqa: S101 - said to mypy
        if row is None:
            row = self._row(step, call)
        elif was_running:
            row.attempts += 1
        else:  # It waited; what runs may have been edited.
            row.status = ToolCallStatus.RUNNING
            row.arguments, row.arguments_masked = call_arguments(call, tool)
        row.has_side_effects = once
        event = {"step": step, "call_id": row.call_id, "name": row.name}
        self._recorder.add(TOOL_STARTED, {**event, "arguments": row.arguments_shown})
        self._keep(row)
        if once:  # It must be known to have started even if the machine loses power now.
            await self._recorder.flush(durable=True)
        else:
            await self._recorder.settle()
        return None

    async def result_shown(self, step: int, call: ToolCall, result: ToolResult) -> ToolResult:
        """See ``FilingJournal``."""
        return result if self._files is None else await self._files.shown(step, call, result)

    async def call_finished(self, step: int, call: ToolCall, result: ToolResult, duration_s: float) -> None:
        """See ``Journal``."""
        row = self._rows.get(call_key(step, call.id)) or self._row(step, call)
        row.status = ToolCallStatus.SUCCEEDED
        if result.is_error:
            row.status = _STATUS_OF_ERROR.get(result.error_code, ToolCallStatus.FAILED)
        row.content = text_storable(result.content)
        row.result_size = result_size(result)
        row.payload = json_storable(result.payload)
        row.error_code = result.error_code[:60]
        row.finished_at = timezone.now()
        row.duration_ms = round(duration_s * 1000)
        if row.status == ToolCallStatus.SUCCEEDED:
            self._recorder.reads_keep(reads_of(row.name, row.payload))
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
        self._keep(row)
        if row.has_side_effects:
            await self._recorder.flush(durable=True)

    def calls_made(self, step: int, call_id: str) -> dict[str, tuple[str, Any]]:
        """See ``KnowingJournal``."""
        parent = call_key(step, call_id)[1]
        rows = (row for row in self._rows.values() if row.step == step)
        return {row.call_id: (row.name, row.arguments) for row in rows if row.parent_call_id == parent}

    def call_judged(self, step: int, call: ToolCall, verdict: Verdict) -> None:
        """See ``JudgingJournal``. Written with what becomes of the call."""
        self._verdicts[call_key(step, call.id)] = verdict

    async def call_parked(self, step: int, pending: PendingCall) -> None:
        """See ``ParkingJournal``. A call that had started is known to wait at once: it has not been lost."""
        row = self._rows.get(call_key(step, pending.call.id))
        had_started = row is not None
        row = row or self._row(step, pending.call)
        row.status = ToolCallStatus.WAITING
        self._recorder.add(TOOL_WAITING, {"step": step, "call_id": row.call_id, "name": row.name})
        self._keep(row)
        if had_started:
            await self._recorder.flush()

    async def _may_go_on(self) -> None:
        if self._require is None:
            return
        try:
            await self._require()
        except Denied:
            await self._recorder.flush()  # what became of the calls before is kept
            raise

    def _keep(self, row: Row) -> None:
        self._rows[row.step, row.call_id] = row
        verdict = self._verdicts.pop((row.step, row.call_id), None)
        # Who approved a call that had to be asked about did not change the rule: it stays a call that was asked about.
        if verdict is not None and (row.decision != CallDecision.ASK or verdict.effect == "deny"):
            verdict_put(row, verdict)
        self._recorder.call_keep(
            {
                "step": row.step,
                "call_id": row.call_id,
                "parent_call_id": row.parent_call_id,
                "path": str(row.path),
                "name": row.name,
                "tool_version": row.tool_version,
                "arguments": row.arguments,
                "arguments_masked": row.arguments_masked,
                "decision": row.decision,
                "rule_id": row.rule_id,
                "decision_why": row.decision_why,
                "has_side_effects": row.has_side_effects,
                "status": str(row.status),
                "content": row.content,
                "payload": row.payload,
                "result_size": row.result_size,
                "cost_usd": None if row.cost_usd is None else f"{row.cost_usd:.8f}",
                "error_code": row.error_code,
                "attempts": row.attempts,
                "started_at": row.started_at.isoformat(),
                "finished_at": row.finished_at and row.finished_at.isoformat(),
                "duration_ms": row.duration_ms,
            }
        )

    def _row(self, step: int, call: ToolCall) -> Row:
        tool = self._toolset.get(call.name)
        parent = self._parent(step, call.id)
        arguments, shown = call_arguments(call, tool)
        return Row(
            step=step,
            call_id=call_key(step, call.id)[1],
            parent_call_id=parent,
            path=CallPath.CODE if parent else self._path,
            name=name_storable(call.name),
            tool_version=version_of(tool),
            arguments=arguments,
            arguments_masked=shown,
            cost_usd=None if parent else self._shares.get(step),
            started_at=timezone.now(),
        )

    def _parent(self, step: int, call_id: str) -> str:
        """Return the call that made a call, "" for one of the model: ids of nested calls begin with their parent's."""
        while "." in call_id:
            call_id = call_id.rpartition(".")[0]
            if call_key(step, call_id) in self._rows:
                return call_key(step, call_id)[1]
        return ""


def call_arguments(call: ToolCall, tool: Tool | None) -> tuple[Any, Any]:
    """Return a call's arguments as they are stored, and as they are shown; None for the latter where nothing is secret."""
    stored = json_storable(call.raw if call.arguments is None else call.arguments)
    shown = masked(stored, None if tool is None else tool.parameters)
    return stored, None if shown == stored else shown


def version_of(tool: Tool | None) -> str:
    """Return a tool's version as it is stored."""
    return "" if tool is None else text_storable(tool.version)[:_VERSION_LENGTH]


def result_size(result: ToolResult) -> int:
    """Return how many characters a call's whole output has."""
    return len(result.content) if result.whole_chars is None else result.whole_chars


def verdict_put(row: Row, verdict: Verdict) -> None:
    """Write what the policy said about a call into its row."""
    row.decision, row.rule_id = str(verdict.effect), verdict.rule
    row.decision_why = text_storable(verdict.why)


def summary_of(own: object, content: str) -> str:
    """Return one line about a call that has ended: the tool's own ``payload["summary"]``, or its first line."""
    text = own if isinstance(own, str) and own else content
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= _SUMMARY_LENGTH else f"{line[: _SUMMARY_LENGTH - 1]}…"
