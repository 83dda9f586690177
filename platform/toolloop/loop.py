"""The one tool-calling loop: model turn, tool calls, model turn, until the model is done or a limit is met."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal, cast

from toolloop.calls import CallRunner
from toolloop.compaction import Compaction, Compactor
from toolloop.deferred import Decision, PendingCall
from toolloop.errors import ContextTooLong
from toolloop.events import Event, LimitReached, RunFinished, RunStatus, StepReset
from toolloop.history import history_open, is_answer, own_turns
from toolloop.interrupts import Interrupted, Interrupter
from toolloop.journal import Journal, NullJournal
from toolloop.limits import Limits
from toolloop.messages import Message, ToolResult, Turn, UserMessage
from toolloop.metering import UsageHook, UsageReporter
from toolloop.notices import CUT_OFF, FINAL_NOTICE, NO_MORE_CALLS, REPAIR_NOTICE
from toolloop.output import Output, request_structured
from toolloop.providers.base import ModelRequest, Provider
from toolloop.providers.profiles import Profile, profile_for
from toolloop.purse import Purse, PurseEmpty
from toolloop.server_tools import ServerTool
from toolloop.service import seconds_allowed
from toolloop.tokens import Usage
from toolloop.tools.runtime import BlockingRunner, run_in_thread
from toolloop.tools.toolset import Toolset
from toolloop.turns import TurnFailed, TurnRunner
from toolloop.usage import ProfileLookup, Reserve, Spending

BUDGET = "budget_exceeded"
"""Error code of a run for whose answer its purse had no money."""


def run_loop(
    *,
    provider: Provider,
    model: str,
    system: str,
    history: Sequence[Message],
    toolset: Toolset,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    journal: Journal = NullJournal(),  # noqa: B008 - holds no state
    context: Mapping[str, Any] | None = None,
    first_step: int = 0,
    usage: Usage = Usage(),  # noqa: B008 - frozen
    options: Mapping[str, Any] | None = None,
    cache_key: str = "",
    user_key: str = "",
    stop: asyncio.Event | None = None,
    profile: Profile | None = None,
    run_blocking: BlockingRunner = run_in_thread,
    decisions: Mapping[str, Decision] | None = None,
    pending: Sequence[PendingCall] = (),
    mock_tools: bool = False,
    output: Output | None = None,
    tool_choice: Literal["auto", "required", "none"] = "auto",
    compaction: Compaction | None = Compaction(),  # noqa: B008 - frozen
    on_usage: UsageHook | None = None,
    usage_metadata: Mapping[str, Any] | None = None,
    server_tools: Sequence[ServerTool] = (),
    profiles: ProfileLookup | None = None,
    purse: Purse | None = None,
) -> AsyncGenerator[Event, None]:
    """Answer the last message of a history, calling tools on the way.

    Args:
        provider: where turns come from; the caller closes it.
        model: bare model name.
        system: system prompt, "" for none.
        history: messages, oldest first. One that ends in a turn with unanswered calls goes on with these.
        toolset: what the model may call; asked anew before each turn.
        limits: what the run may use.
        journal: told of everything before and after it happens.
        context: given to tools as ``ToolContext.data``.
        first_step: number of this run's turns that the history already holds.
        usage: tokens those turns used.
        options, cache_key, user_key: see ``ModelRequest``.
        stop: set it (in the loop's thread) to end the run: the provider's stream is closed and tools are cancelled
            at once.
        profile: facts about the model; looked up by its name when None.
        run_blocking: runs the functions of blocking tools off the event loop.
        decisions: by call id, what was decided about calls at which the run parked; see ``toolloop.deferred``.
        pending: what the run waited for when it parked; calls among it that nothing was decided about wait on where they
            are. Without it they run from their start until they wait again.
        output: form the answer must have, from ``toolloop.output.output_of``. An answer that does not fit goes back to the
            model ``Limits.max_output_repairs`` times; then the run fails with code "invalid_output", or ends with the
            text where the form is not ``is_required``.
        tool_choice: for the first turn of the run; the later ones are free, but for "none".
        compaction: how a history that outgrows the model's context window is cut; None lets such a run fail.
        mock_tools: call the mocks of tools; nothing has effects and nothing needs approval.
        on_usage: told what each model call used, attempts that were billed in vain included; see ``toolloop.metering``.
        usage_metadata: goes into its events.
        server_tools: what the provider may run itself; a model that has no such tool fails the run.
        profiles: facts about other models that may answer (fallbacks), for their prices; the built-in ones when None.
        purse: holds back the money of each model call; when there is none left, the run meets the limit "budget".

    Yields:
        Events in the order in which things happen, ``RunFinished`` as the last. Failures of the provider or of tools are
        events, not exceptions.

    Raises:
        asyncio.CancelledError: when the task is cancelled; the stream is closed and tools are cancelled by then.
        Exception: what the journal raised.
    """
    template = ModelRequest(
        model=model,
        system=system,
        messages=(),
        options=options or {},
        cache_key=cache_key,
        user_key=user_key,
        server_tools=server_tools,
        tool_choice=tool_choice,
        profile=profile,
        withheld=toolset.withheld,
    )
    interrupter = Interrupter(stop)
    profile = profile or profile_for(provider.name, model)
    reporter = UsageReporter(on_usage, provider=provider.name, model=model, metadata=usage_metadata)
    spending = Spending(
        limits,
        profile,
        provider=provider.name,
        model=model,
        reporter=reporter,
        profiles=profiles,
        purse=purse,
        tier=str(template.options.get("service_tier") or ""),
    )
    turns = TurnRunner(
        provider=provider,
        limits=limits,
        journal=journal,
        interrupter=interrupter,
        settle=spending.settle,
        settle_broken=spending.settle_broken,
        admit=spending.admit,
    )
    calls = CallRunner(
        toolset=toolset,
        limits=limits,
        journal=journal,
        interrupter=interrupter,
        context=context or {},
        run_blocking=run_blocking,
        decisions=decisions or {},
        waiting=pending,
        mock=mock_tools,
    )
    compactor = Compactor(compaction, profile, spending, system, toolset.specs)
    run = _Run(template, toolset, limits, interrupter, spending, turns, calls, output, profile, compactor)
    return run.events(history, first_step, usage)


class _Run:
    """State of one run."""

    def __init__(
        self,
        template: ModelRequest,
        toolset: Toolset,
        limits: Limits,
        interrupter: Interrupter,
        spending: Spending,
        turns: TurnRunner,
        calls: CallRunner,
        output: Output | None,
        profile: Profile,
        compactor: Compactor,
    ) -> None:
        self.template, self.toolset, self.limits = template, toolset, limits
        self.interrupter, self.spending = interrupter, spending
        self.turns, self.calls, self.output, self.profile = turns, calls, output, profile
        self.repairs = 0  # Turns that were asked for because an answer did not fit ``output``.
        self.compactor = compactor
        self.history: list[Message] = []
        self.step = 0
        self.limit, self.detail = "", ""
        self.carried = ""  # Text of paused turns: the answer goes on in the next one.
        self.deadline: float | None = None  # In the event loop's time.
        self.notes: list[str] = []
        self.problem = ""  # What is wrong with an answer that is taken all the same.

    async def events(
        self, history: Sequence[Message], first_step: int, usage: Usage
    ) -> AsyncGenerator[Event, None]:
        """Run to the end; see ``run_loop``."""
        if self.limits.max_seconds is not None:
            self.deadline = asyncio.get_running_loop().time() + self.limits.max_seconds
        opened = history_open(history)
        self.history, self.step = opened.messages, first_step
        own = own_turns(opened.messages, first_step)
        turns = [message for message in own if isinstance(message, Turn)]
        self.spending.begin(usage, turns)
        self.turns.requests = usage.requests
        for turn in turns[:-1]:
            self.carried = self.carried + turn.text if turn.stop == "pause" else ""
            self.repairs += is_answer(turn)
        self.calls.accounts.count_past(own)
        self.interrupter.open()
        try:
            async with aclosing(self._steps(opened.turn, opened.answered)) as steps:
                async for event in steps:
                    yield event
        except Interrupted:
            yield self._finished("stopped", stop="stopped")
        except TurnFailed as failure:
            yield self._finished(
                "failed",
                stop="error",
                error_code=failure.code,
                error_message=failure.message,
                retryable=failure.retryable,
            )
        finally:
            self.interrupter.close()

    async def _steps(
        self, open_turn: Turn | None, answered: Mapping[str, ToolResult]
    ) -> AsyncGenerator[Event, None]:
        turn = self._resumed(open_turn)
        final = False
        if turn is not None:
            final = self.step - self.repairs >= self.limits.max_steps
        while True:
            if turn is None:
                self.history = await self.compactor.fitted(self.history)
                reserve = self._allowance()
                final = bool(self.limit)
                if final:
                    yield LimitReached(self.limit, self.detail, self.step)
                    reserve = self._reserve(final=True)
                    if reserve.limit:
                        self.notes.append("There was no money left for a final answer.")
                        yield self._finished("completed", stop="end")
                        return
                hard = self._hard_deadline()
                request = self._request(reserve, hard, final=final)
                soft = hard if final else self.deadline
                self.spending.step = self.step
                try:
                    async with aclosing(
                        self.turns.run(self.step, request, soft=soft, hard=hard, final=final)
                    ) as events:
                        async for event in events:
                            yield event
                except Interrupted as interrupted:
                    if interrupted.cause == "stop":
                        raise
                    if final or self.turns.partial:
                        raise self._out_of_time() from None
                    self._meet("max_seconds", f"{self.limits.max_seconds:g} s have passed")
                    if self.turns.visible:
                        yield StepReset("max_seconds", self.step)
                    continue
                except PurseEmpty as empty:
                    if final:
                        raise TurnFailed(BUDGET, empty.detail, retryable=empty.retryable) from empty
                    self._meet("budget", empty.detail)
                    if self.turns.visible:
                        yield StepReset("budget", self.step)
                    continue
                except TurnFailed as failure:
                    if failure.code != ContextTooLong.code or self.turns.visible:
                        raise
                    smaller = await self.compactor.forced(self.history)
                    if smaller is None:
                        raise
                    self.history = smaller
                    continue
                turn = cast(Turn, self.turns.turn)
                self.history.append(turn)
            if turn.tool_calls:
                async with aclosing(
                    self._answer(turn, answered, final=final, decided=turn is open_turn)
                ) as events:
                    async for event in events:
                        yield event
                if self.calls.pending:
                    yield self._finished("parked", stop=turn.stop)
                    return
            goes_on = turn.stop == "pause" or (
                bool(turn.tool_calls) and turn.stop not in ("refusal", "filter")
            )
            if final or not goes_on:
                problem, value = self._checked_output()
                if not problem or not is_answer(turn):
                    has_output = self.output is not None and not problem
                    yield self._finished("completed", stop=turn.stop, output=value, has_output=has_output)
                    return
                if final or self.repairs >= self.limits.max_output_repairs:
                    if self.output is not None and not self.output.is_required:
                        self.problem = problem
                        yield self._finished("completed", stop=turn.stop)
                        return
                    raise TurnFailed(
                        "invalid_output",
                        f"The answer does not have the form asked for: {problem}",
                        retryable=True,
                    )
                self.repairs += 1
                self.history.append(UserMessage(REPAIR_NOTICE.format(problem=problem), notice=True))
                yield StepReset("invalid_output", self.step)
            self._next_step(turn)
            turn, answered = None, {}

    def _checked_output(self) -> tuple[str, Any]:
        """Return what is wrong with the answer, "" for nothing, and its value."""
        if self.output is None:
            return "", None
        value, problem = self.output.parse(self.carried + self.turns.text)
        return problem, value

    def _resumed(self, open_turn: Turn | None) -> Turn | None:
        """Return the turn an earlier attempt ended in, when what follows it has not happened yet."""
        last = self.history[-1] if self.history else None
        turn = open_turn or (last if isinstance(last, Turn) and self.step > 0 else None)
        if turn is not None:
            self.step = max(0, self.step - 1)
            self.turns.turn = turn
        return turn

    def _next_step(self, turn: Turn) -> None:
        self.carried = self.carried + turn.text if turn.stop == "pause" else ""
        self.turns.clear()
        self.step += 1

    def _meet(self, limit: str, detail: str) -> None:
        if limit and not self.limit:
            self.limit, self.detail = limit, detail

    def _allowance(self) -> Reserve:
        """Check every limit before a model turn; the only place where they are."""
        limits = self.limits
        if self.interrupter.cause == "stop":
            raise Interrupted("stop")
        self._meet(self.calls.accounts.limit, self.calls.accounts.detail)
        if self.step - self.repairs >= limits.max_steps:
            self._meet("max_steps", f"{limits.max_steps} model turns were made")
        if limits.max_requests is not None and self.turns.requests >= limits.max_requests:
            self._meet("max_requests", f"{self.turns.requests} model requests were made")
        if self.deadline is not None and asyncio.get_running_loop().time() >= self.deadline:
            self._meet("max_seconds", f"{limits.max_seconds:g} s have passed")
        reserve = Reserve()
        if not self.limit:
            reserve = self._reserve(final=False)
            self._meet(reserve.limit, reserve.detail)
        return reserve

    def _reserve(self, *, final: bool) -> Reserve:
        return self.spending.reserve(
            system=self.template.system, history=self.history, tools=self.toolset.specs(), final=final
        )

    def _request(self, reserve: Reserve, end: float | None, *, final: bool) -> ModelRequest:
        messages = list(self.history)
        if final:
            messages.append(UserMessage(FINAL_NOTICE.format(detail=self.detail), notice=True))
        choice = self.template.tool_choice
        if choice == "required" and self.step:
            choice = "auto"  # else it could never answer
        now = asyncio.get_running_loop().time()
        request = replace(
            self.template,
            messages=messages,
            tools=self.toolset.specs(),
            tool_choice="none" if final else choice,
            max_output_tokens=reserve.max_output_tokens,
            timeout_s=self._seconds() if end is None else max(0.1, end - now),
        )
        if self.output is None or self.output.asked_by_provider:
            return request
        return request_structured(request, self.output, self.profile)

    def _seconds(self) -> float:
        tier = str(self.template.options.get("service_tier") or "")
        return seconds_allowed(self.limits.request_timeout_s, tier)

    def _hard_deadline(self) -> float | None:
        """Return when even a final answer ends."""
        return None if self.deadline is None else self.deadline + self.limits.final_seconds

    async def _answer(
        self, turn: Turn, answered: Mapping[str, ToolResult], *, final: bool, decided: bool
    ) -> AsyncGenerator[Event, None]:
        """Answer the turn's calls and append the results to the history."""
        self.interrupter.deadline_set(None if final else self.deadline)
        refusal = None
        if final:
            refusal = NO_MORE_CALLS
        elif turn.stop not in ("tools", "end", "pause"):
            refusal = CUT_OFF
        answers = self.calls.answer(self.step, turn, answered, refusal, decided=decided)
        async with aclosing(answers) as events:
            async for event in events:
                yield event
        self.history.extend(self.calls.results)

    def _out_of_time(self) -> TurnFailed:
        self._meet("max_seconds", f"{self.limits.max_seconds:g} s have passed")
        seconds = self.limits.total_seconds
        return TurnFailed("deadline", f"The answer was not complete after {seconds:g} s.", retryable=True)

    def _finished(
        self,
        status: RunStatus,
        *,
        stop: str,
        error_code: str = "",
        error_message: str = "",
        retryable: bool = False,
        output: Any = None,
        has_output: bool = False,
    ) -> RunFinished:
        pending = self.calls.pending if status == "parked" else []
        return RunFinished(
            status=status,
            text=self.carried + self.turns.text,
            usage=self.spending.usage,
            stop=stop,
            limit=self.limit,
            error_code=error_code,
            error_message=error_message,
            retryable=retryable,
            data={
                "cost_usd": self.spending.cost_usd,
                "notes": [*self.spending.notes, *self.calls.notes, *self.notes],
                **({"output_problem": self.problem} if self.problem else {}),
            },
            step=self.step,
            tools=self.calls.accounts.figures,
            pending=tuple(pending),
            output=output,
            has_output=has_output,
        )
