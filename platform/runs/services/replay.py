"""Run a recorded run again without effects: recorded outputs stand in for its tools, and for its model unless asked anew.

With the recorded turns it shows whether today's tools still take the recorded calls; with the model asked anew, whether it
would still do the same. No tool runs in either.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from basics.errors import Conflict
from basics.texts import gettext as _
from budgets.ledger import BillingAccount
from runs.journal import call_key
from runs.local_loop import LocalLoop
from runs.models import ACTIVE, Run, RunStep, ToolCall, ToolCallStatus, UsageRecord
from runs.providers import loop_model, provider_for
from runs.reservations import RunReservations
from runs.selectors import run_get
from runs.usage import usage_columns, usage_kind
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.events import ProviderEvent, RunFinished, TextDelta, TurnFinished
from toolloop.journal import NullJournal
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.masking import masked
from toolloop.messages import ModelMessage, ToolResult, Turn, message_from_json
from toolloop.messages import ToolCall as Call
from toolloop.metering import UsageEvent
from toolloop.prompt_templates import CODE_TOOL
from toolloop.providers.base import ModelRequest, Provider
from toolloop.reservations import BudgetReservations
from toolloop.tokens import Usage
from toolloop.tools import Tool, ToolContext, ToolError, ToolOutput, Toolset
from toolloop.tools.meta_tools import META_TOOLS

PURPOSE = "replay"
SECONDS = 60.0
NOT_RECORDED = "Nothing was recorded for this call, and a replay doesn't run tools."
# What these say lists today's tools or rules: that they happened is what counts.
_BY_CODE = ("unknown_tool", "invalid_arguments")


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """One thing that was said, called or answered, side by side.

    Attributes:
        step: of the run, from 0.
        kind: ``says``, ``calls``, ``result``, ``ends``, or what a call's replay compares.
        recorded, replayed: texts, secrets masked; "" where it did not happen.
        is_equal: whether they count as the same.
    """

    step: int
    kind: str
    recorded: str
    replayed: str
    is_equal: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """How a replay went beside its record.

    Attributes:
        rows: in order.
        missing: names of tools that were called and that are not offered any more; their outputs stood in all the same.
    """

    rows: Sequence[ReplayRow]
    missing: Sequence[str] = ()

    @property
    def is_equal(self) -> bool:
        """Tell whether everything was as recorded."""
        return not self.missing and all(row.is_equal for row in self.rows)

    @property
    def diverged_at(self) -> int | None:
        """Return the place of the first row that differs, None where all are equal."""
        return next((n for n, row in enumerate(self.rows) if not row.is_equal), None)


def run_replay(
    *, tenant: Tenant, actor: Actor, run: Run, toolset: Toolset, ask_model: bool = False
) -> Replay:
    """Replay one of the actor's own runs. It blocks, for a minute at most; call it outside of transactions.

    Args:
        toolset: what the actor's models may call today; none of these tools is run.
        ask_model: ask the run's model anew, which costs what it costs; its usage is recorded.

    Raises:
        Missing: the run is not the actor's.
        Conflict: ``run_active``, ``run_pruned`` or ``nothing_to_replay``; ``model_unavailable``.
        Invalid: the run's model is none any more.
    """
    run = run_get(actor=actor, pk=run.pk)
    if run.status in ACTIVE:
        raise Conflict("run_active", _("This run is still in progress. Replay it when it has ended."))
    if run.pruned_at is not None:
        raise Conflict("run_pruned", _("The retention rule has removed this run's content."))
    steps = RunStep.objects.filter(tenant=tenant, run=run).order_by("index")
    turns = [
        m for data in steps.values_list("turn", flat=True) if isinstance(m := message_from_json(data), Turn)
    ]
    if not turns or "history" not in run.request:
        raise Conflict("nothing_to_replay", _("This run didn't use a model. Replay its calls one by one."))
    calls = list(ToolCall.objects.filter(tenant=tenant, run=run, parent_call_id="").order_by("pk"))
    provider: Provider = provider_for(tenant, run.model) if ask_model else _Recorded(turns)
    used: list[UsageEvent] = []
    with transaction.atomic():
        audit_record(
            tenant=tenant, actor=actor, action="run.replay", object=run, data={"ask_model": ask_model}
        )
    stage = _Stage(run, turns, calls, toolset, actor.api_key_id)
    here = LocalLoop()
    reservations = RunReservations(BillingAccount(tenant.pk, actor.user_id, actor.api_key_id), here.in_db)
    try:
        captured = here.run(stage.play(provider, used, reservations if ask_model else None))
    finally:
        _record(tenant, actor, run, used)
        reservations.close()
    own = {*META_TOOLS, CODE_TOOL, *_brought(calls)}  # The run's own, made anew for each.
    called = {c.name for c in calls if c.error_code != "unknown_tool"} - own
    missing = sorted(name for name in called if toolset.get(name) is None)
    return Replay(_compared(_recorded_items(run, turns, calls), captured.items()), missing)


def _brought(calls: Iterable[ToolCall]) -> set[str]:
    """Return the tools that a run brought itself: its client's, its assistant's helpers, the reading of attached files.

    No rule is asked about them, and they are offered nowhere else: their recorded outputs stand in, and nothing is missing.
    """
    found = list(calls)
    judged = {call.name for call in found if call.decision}
    return {c.name for c in found if c.status == ToolCallStatus.SUCCEEDED} - judged


def _record(tenant: Tenant, actor: Actor, run: Run, used: Iterable[UsageEvent]) -> None:
    UsageRecord.objects.bulk_create(
        UsageRecord(
            tenant=tenant,
            user_id=actor.user_id,
            run_id=run.pk,
            **{**usage_columns(event), "kind": usage_kind(event, PURPOSE), "step": None},
        )
        for event in used
        if not event.is_cached and event.usage.requests
    )


class _Recorded:
    """A provider that says what was said."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.name = turns[0].provider
        # An answer before the last turn was sent back, for its form say: here too the loop goes on behind it.
        self._turns = iter(
            [t if t.tool_calls else replace(t, stop="pause") for t in turns[:-1]] + [turns[-1]]
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Say the next recorded turn, and nothing after the last."""
        turn = next(self._turns, None) or Turn(self.name, request.model)
        if turn.text:
            yield TextDelta(turn.text)
        yield TurnFinished(replace(turn, usage=Usage()))

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class _Capture(NullJournal):
    """Keeps what happens, as a journal would."""

    turns: dict[int, Turn] = field(default_factory=dict)
    results: dict[tuple[int, str], ToolResult] = field(default_factory=dict)
    end: str = ""

    async def turn_finished(self, step: int, turn: Turn) -> None:
        self.turns[step] = turn

    async def call_finished(self, step: int, call: Call, result: ToolResult, duration_s: float) -> None:
        self.results[call_key(step, call.id)] = result

    def items(self) -> list[_Item]:
        """Return what happened, in order."""
        found: list[_Item] = []
        for step, turn in sorted(self.turns.items()):
            results = []
            for call in turn.tool_calls:
                result = self.results.get(call_key(step, call.id))
                results.append((result.content, result.error_code) if result else ("", "none"))
            found += _turn_items(step, turn, results)
        return [*found, _Item(len(self.turns), "ends", self.end, self.end)]


class _Stage:
    """A recorded run's tools and history, ready to be played."""

    def __init__(
        self,
        run: Run,
        turns: Sequence[Turn],
        calls: Sequence[ToolCall],
        toolset: Toolset,
        api_key_id: int | None,
    ) -> None:
        self._run, self._turns, self._api_key_id = run, turns, api_key_id
        self._by_id: dict[str, list[ToolCall]] = defaultdict(list)
        self._by_arguments: dict[str, list[ToolCall]] = defaultdict(list)
        for row in calls:
            self._by_id[row.call_id].append(row)
            self._by_arguments[_mark(row.name, row.arguments)].append(row)
        recorded = {row.name for row in calls if row.error_code != "unknown_tool"}
        here = [self._mocked(tool) for tool in toolset]
        gone = [self._stand_in(name) for name in sorted(recorded) if toolset.get(name) is None]
        self._toolset = Toolset([*here, *(tool for tool in gone if tool is not None)])

    async def play(
        self, provider: Provider, used: list[UsageEvent], reservations: BudgetReservations | None
    ) -> _Capture:
        """Return what the loop does with the recorded outputs."""
        capture = _Capture()
        profile = None
        model = self._turns[0].model
        if not isinstance(provider, _Recorded):
            model, profile = loop_model(provider, self._run.model)
        history: list[ModelMessage] = [message_from_json(data) for data in self._run.request["history"]]
        events = run_loop(
            LoopInput(
                model=model,
                system=self._run.request.get("system", ""),
                history=history,
                toolset=self._toolset,
                limits=self._limits(),
                mock_tools=True,
            ),
            LoopServices(
                provider=provider,
                profile=profile,
                journal=capture,
                on_usage=None if isinstance(provider, _Recorded) else used.append,
                usage_metadata={"replay_of": self._run.pk, "api_key_id": self._api_key_id},
                reservations=reservations,
            ),
        )
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    if isinstance(event, RunFinished):
                        capture.end = _ending(event.status, event.error_code)
        finally:
            await provider.aclose()
        return capture

    def _limits(self) -> Limits:
        known = {
            k: v for k, v in self._run.request.get("limits", {}).items() if k in Limits.__dataclass_fields__
        }
        return replace(Limits(**known), max_seconds=SECONDS)

    def _mocked(self, tool: Tool) -> Tool:
        async def recorded(replay_context: ToolContext, **arguments: Any) -> ToolOutput:
            return self._output(tool.name, arguments, replay_context.call_id)

        return replace(
            tool,
            function=recorded,
            mock=recorded,
            context_parameter="replay_context",
            injected={},
            converters={},
            blocking=False,
            external=False,
            permit=None,
            needs_approval=False,
        )

    def _stand_in(self, name: str) -> Tool | None:
        schema = {"type": "object", "properties": {}}
        plain = Tool(name, "A tool that is no longer available.", schema, lambda: "")
        return self._mocked(plain)

    def _output(self, name: str, arguments: Mapping[str, Any], call_id: str) -> ToolOutput:
        """Return what was recorded for a call: under its id, else for the same arguments, each record once."""
        mark = _mark(name, arguments)
        rows = [row for row in self._by_id.get(call_id, ()) if row.name == name]
        row = next(iter(rows), None) or next(iter(self._by_arguments.get(mark, ())), None)
        if row is None:
            raise ToolError(NOT_RECORDED)
        for known in (self._by_id[row.call_id], self._by_arguments[_mark(name, row.arguments)]):
            if row in known:
                known.remove(row)
        if row.status != ToolCallStatus.SUCCEEDED:
            raise ToolError(row.content)
        return ToolOutput(row.content, row.payload)


@dataclass(frozen=True, slots=True)
class _Item:
    step: int
    kind: str
    shown: str
    compared: str


def _recorded_items(run: Run, turns: Sequence[Turn], calls: Sequence[ToolCall]) -> list[_Item]:
    rows = {call_key(row.step, row.call_id): row for row in calls}
    found: list[_Item] = []
    for step, turn in enumerate(turns):
        results = []
        for call in turn.tool_calls:
            row = rows.get(call_key(step, call.id))
            results.append((row.content, row.error_code) if row else ("", "none"))
        found += _turn_items(step, turn, results)
    end = _ending(run.status, run.error_code)
    return [*found, _Item(len(turns), "ends", end, end)]


def _turn_items(step: int, turn: Turn, results: Sequence[tuple[str, str]]) -> list[_Item]:
    found = [_Item(step, "says", turn.text, turn.text.strip())] if turn.text.strip() else []
    for call in turn.tool_calls:
        arguments = call.raw if call.arguments is None else call.arguments
        shown = f"{call.name} {json.dumps(masked(arguments), ensure_ascii=False)}"
        found.append(_Item(step, "calls", shown, _mark(call.name, arguments)))
    for content, code in results:
        by = code if code in _BY_CODE else content.strip()
        found.append(_Item(step, "result", content, by))
    return found


def _compared(recorded: Sequence[_Item], replayed: Sequence[_Item]) -> list[ReplayRow]:
    """Put two courses side by side, step by step and kind by kind."""
    rows: list[ReplayRow] = []
    last = max([item.step for item in (*recorded, *replayed)], default=-1)
    for step in range(last + 1):
        for kind in ("says", "calls", "result", "ends"):
            left = [i for i in recorded if (i.step, i.kind) == (step, kind)]
            right = [i for i in replayed if (i.step, i.kind) == (step, kind)]
            for place in range(max(len(left), len(right))):
                a = left[place] if place < len(left) else None
                b = right[place] if place < len(right) else None
                rows.append(
                    ReplayRow(
                        step,
                        kind,
                        a.shown if a else "",
                        b.shown if b else "",
                        a is not None and b is not None and _same(a, b),
                    )
                )
    return rows


def _same(a: _Item, b: _Item) -> bool:
    # A warning of the loop stands in the recorded output already, and is added once more.
    return a.compared == b.compared or (
        a.kind == "result" and bool(a.compared) and b.compared.startswith(f"{a.compared}\n")
    )


def _ending(status: str, error_code: str) -> str:
    return f"{status}: {error_code}" if error_code else str(status)


def _mark(name: str, arguments: Any) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"
