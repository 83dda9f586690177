"""Ask a model for a stage of an item so that each call is paid for once.

The loop's journal is the ledger: a turn is committed before its tools run and before the next turn is asked for. A later
attempt gives the loop the history of the turns that are there, and the loop goes on behind them; a stage whose last turn
is there is not asked at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from apps.datasets.generation.committing import Write
from apps.datasets.generation.work import NO_MONEY, Away, Failed, Halted, Item, Model, Released, Work
from basics.texts import gettext as _
from batches.asking import BatchedCall
from budgets.ledger import EXCEEDED
from runs.reservations import RunReservations
from runs.services import AnsweredCall, loop_ask
from runs.usage import usage_columns, usage_kind
from toolloop.batches.base import AnswersLater
from toolloop.events import RunFinished
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, ToolCall, ToolResult, Turn, UserMessage, message_from_json
from toolloop.metering import UsageEvent
from toolloop.output import output_of
from toolloop.storable import json_storable
from toolloop.tokens import Usage
from toolloop.tools import Tool, Toolset
from toolloop.tools.tool import Verdict

_OF_THE_JOB = {EXCEEDED, "auth_failed", "quota_exhausted", "model_unavailable", "permission_denied"}
"""Failures that no other item would be spared."""
MOST_OUTPUT_TOKENS = 4000
_RESPONSE = "response"  # in an item's data: the answer in the background that is waited for
USAGE = "dataset"
"""What usage records of generation are called."""


@dataclass(slots=True)
class StageAnswer:
    """What came of a stage's question.

    Attributes:
        value: of the form asked for; None for text.
        history: question, turns and results.
    """

    text: str
    value: Any
    history: list[ModelMessage]
    turns: list[Turn]
    calls: list[AnsweredCall]
    usage: Usage
    cost_usd: float | None
    seconds: float


@dataclass(slots=True)
class PaidJournal:
    """Implements ``toolloop.journal.JudgingJournal`` and ``RememberingJournal`` for one stage of one item.

    Attributes:
        is_recorded: somebody else writes the usage records: those of a batch are written with its answers.
    """

    work: Work
    item: Item
    stage: str
    attempt: int
    toolset: Toolset
    turns: list[Turn] = field(default_factory=list)
    results: list[list[ToolResult]] = field(default_factory=list)
    calls: list[AnsweredCall] = field(default_factory=list)
    used: list[UsageEvent] = field(default_factory=list)
    started: float = 0.0
    verdicts: dict[tuple[int, str], Verdict] = field(default_factory=dict)
    is_recorded: bool = False

    async def turn_started(self, step: int) -> None:
        """Refuse to begin a call when the job is to halt: nothing of this step has been paid for."""
        await self.settle()
        if self.work.halting:
            raise Released(self.work.halting)
        self.started = time.monotonic()

    async def turn_finished(self, step: int, turn: Turn) -> None:
        """Commit the turn with what it cost, and with the results that led to it.

        One that ends a question without tools is left to be committed with what its stage makes of it, which is at once.
        """
        self.item.data.pop(_RESPONSE, None)
        before = self.results[step - 1] if step else []
        cost = sum(e.cost_usd for e in self.used if e.cost_usd is not None)
        is_known = any(e.cost_usd is not None for e in self.used)
        self.item.spent_usd += Decimal(f"{cost:.8f}")
        paid = {
            "stage": self.stage,
            "attempt": self.attempt,
            "step": step,
            "turn": json_storable(turn.to_json()),
            "results": json_storable([result.to_json() for result in before]),
            "input_tokens": turn.usage.input_total,
            "output_tokens": turn.usage.output_total,
            "cost_usd": f"{cost:.8f}" if is_known else None,
            "duration_ms": round((time.monotonic() - self.started) * 1000),
        }
        self.item.owed = Write(self.item.pk, paid, self.usage_take())
        if self.toolset:
            await self.settle()
        self.turns.append(turn)
        self.results.append([])

    async def response_started(self, step: int, response_id: str) -> None:
        """Commit under which id the provider answers in the background, so that a later worker fetches the answer."""
        self.item.data[_RESPONSE] = {"of": self._place(step), "id": response_id}
        await self.work.committer.write(Write(self.item.pk, change=self.item.changed()))

    def response_of(self, step: int) -> str:
        """Return the id that was committed for this call, "" for none."""
        known = self.item.data.get(_RESPONSE) or {}
        return str(known["id"]) if known.get("of") == self._place(step) else ""

    def _place(self, step: int) -> list[str | int]:
        return [self.stage, self.attempt, step]

    async def settle(self) -> None:
        """Commit the call that is not committed yet."""
        owed, self.item.owed = self.item.owed, None
        if owed is not None:
            await self.work.committer.write(owed)

    async def call_started(self, step: int, call: ToolCall, tool: Tool | None) -> ToolResult | None:
        """Let it run: the tools of a dataset only read, and may be called again."""
        return None

    async def call_finished(self, step: int, call: ToolCall, result: ToolResult, duration_s: float) -> None:
        """Keep the result; it is committed with the next turn."""
        self.results[step].append(result)
        verdict = self.verdicts.pop((step, call.id), None)
        tool = self.toolset.get(call.name)
        self.calls.append(AnsweredCall(step, call, result, duration_s, tool, verdict))

    def call_judged(self, step: int, call: ToolCall, verdict: Verdict) -> None:
        """Keep what the policy said, for the call's row."""
        self.verdicts[step, call.id] = verdict

    def usage_take(self) -> tuple[dict[str, Any], ...]:
        """Return the records of what was used since the last commit."""
        columns = tuple(
            {**usage_columns(event), "kind": usage_kind(event, USAGE), "step": None}
            for event in self.used
            if not event.is_cached and not self.is_recorded
        )
        self.used.clear()
        return columns

    def restore(
        self, stored: Sequence[tuple[Turn, list[dict[str, Any]]]], after: Sequence[dict[str, Any]] = ()
    ) -> list[ModelMessage]:
        """Take over the turns of an earlier attempt; returns them with their results, in order.

        Args:
            after: what tools have answered to the last turn, where that is known.
        """
        history: list[ModelMessage] = []
        for turn, before in stored:
            history += [*self._answered(before), turn]
            self.turns.append(turn)
            self.results.append([])
        return [*history, *self._answered(after)]

    def _answered(self, stored: Sequence[dict[str, Any]]) -> list[ToolResult]:
        """Take over the results of the last turn's calls."""
        results = [r for data in stored if isinstance(r := message_from_json(data), ToolResult)]
        if self.turns:
            place = len(self.turns) - 1
            self.results[place] = results
            by_id = {call.id: call for call in self.turns[place].tool_calls}
            self.calls += [
                AnsweredCall(place, by_id[r.call_id], r, 0.0, self.toolset.get(r.name), None)
                for r in results
                if r.call_id in by_id
            ]
        return results

    def results_stored(self) -> list[dict[str, Any]]:
        """Return the results of the last turn's calls, which are committed with the next turn."""
        return [result.to_json() for result in self.results[-1]] if self.results else []


async def ask(
    work: Work,
    item: Item,
    stage: str,
    *,
    model: Model,
    system: str,
    prompt: str,
    form: type[Any] | None = None,
    toolset: Toolset | None = None,
    attempt: int | None = None,
    before: Sequence[ModelMessage] = (),
) -> StageAnswer:
    """Ask for a stage, or return what an earlier attempt has paid for.

    Args:
        form: pydantic model of the answer; None for text.
        toolset: what the model may call.
        before: what was said before it.
        attempt: tells this question from others of the same stage and item; None takes the number of repairs.

    Raises:
        Away: the next call goes with a batch.
        Released: the job halts, or another worker has the item.
        Failed: there is no usable answer for this item.
    """
    tools = toolset or Toolset()
    attempt = item.repairs if attempt is None else attempt
    journal = PaidJournal(work, item, stage, attempt, tools, is_recorded=work.is_batched)
    question: list[ModelMessage] = [UserMessage(prompt)]
    stored = item.paid.get((stage, attempt), [])
    facts = {
        "run_kind": "dataset",
        "generation": work.job.pk,
        "item": item.pk,
        "api_key_id": work.actor.api_key_id,
    }
    batched = _batched(work, item, stage, attempt, model, journal, len(stored), facts)
    if batched is not None:
        await batched.begin()
    after = () if batched is None else batched.told or ()
    history = [*before, *question, *journal.restore(stored, after)]
    usage = Usage()
    for turn, _after in stored:
        usage += turn.usage
    limits = Limits(
        max_steps=work.settings.max_steps if toolset else 1,
        max_tool_calls=3 * work.settings.max_steps if toolset else 0,
        max_seconds=None,
        max_output_tokens=MOST_OUTPUT_TOKENS,
        max_retries=8,
        # The loop counts what the restored turns have cost as well, and so does the item.
        max_cost_usd=_left(item, stored, model),
        request_timeout_s=300,
        max_tool_output_chars=20_000,
    )
    began = time.monotonic()
    reservations = None
    if batched is None:
        reservations = RunReservations(work.billing_account, work.in_db, reserve=work.reserve.ask)
    try:
        finished = await loop_ask(
            provider=batched or model.provider,
            model=model.bare,
            profile=model.profile,
            system=system,
            history=history,
            limits=limits,
            toolset=tools,
            journal=journal,
            context=work.context,
            first_step=len(stored),
            usage=usage,
            options=work.settings.service,
            output=None if form is None else output_of(form),
            run_blocking=work.blocking,
            on_usage=journal.used.append,
            usage_metadata=facts,
            reservations=reservations or batched,
        )
    finally:
        if reservations is not None and reservations.is_used:
            try:
                await journal.settle()  # Its usage record is what settles the money held for it.
            finally:
                await work.in_db(reservations.close)
    _raise_failure(item, finished)
    if form is not None and finished.output is None:
        raise Failed(_("The model gave no usable answer to “%(stage)s”.") % {"stage": stage})
    return StageAnswer(
        finished.text,
        finished.output,
        [*question, *_interleaved(journal)],
        journal.turns,
        journal.calls,
        finished.usage,
        finished.data.get("cost_usd"),
        time.monotonic() - began,
    )


def _batched(
    work: Work,
    item: Item,
    stage: str,
    attempt: int,
    model: Model,
    journal: PaidJournal,
    step: int,
    facts: dict[str, Any],
) -> BatchedCall | None:
    """Return what asks the model by batch, None where it is asked directly."""
    if model.engine is None:
        return None
    return BatchedCall(
        engine=model.engine,
        tenant_id=work.tenant.pk,
        owner=work.job.topic,
        key=f"{item.pk}-{stage}-{attempt}",
        step=step,
        kind=USAGE,
        attribution=facts,
        context=journal.results_stored,
        in_db=work.in_db,
    )


def _left(item: Item, stored: Sequence[tuple[Turn, Any]], model: Model) -> float | None:
    if not item.reserved_usd or model.profile is None:
        return None
    past = sum(model.profile.cost_usd(turn.usage, turn.service_tier) or 0.0 for turn, _after in stored)
    return max(0.0, float(item.reserved_usd - item.spent_usd) + past)


def _raise_failure(item: Item, finished: RunFinished) -> None:
    if finished.limit == "max_cost_usd":
        if item.is_short:
            raise Halted(NO_MONEY)
        raise Failed(_("The row cost more than the limit per row."))
    if finished.status == "completed":
        return
    if finished.error_code == AnswersLater.code:
        raise Away(finished.error_message)
    if finished.status == "parked":
        raise Halted(_("A search tool needs approval, and generation can't wait for one. Allow the tool."))
    if finished.error_code in _OF_THE_JOB:
        raise Halted(finished.error_message)
    raise Failed(
        finished.error_message or _("The model stopped with “%(stop)s”.") % {"stop": finished.stop},
        is_retryable=finished.retryable,
    )


def _interleaved(journal: PaidJournal) -> list[ModelMessage]:
    history: list[ModelMessage] = []
    for turn, results in zip(journal.turns, journal.results, strict=True):
        history.append(turn)
        history += results
    return history
