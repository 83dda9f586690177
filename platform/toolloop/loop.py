"""The one tool-calling loop: model turn, tool calls, model turn, until the model is done or a limit is met."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar, Literal, cast

from toolloop.calls import CallRunner
from toolloop.compaction import Compactor
from toolloop.errors import ContextTooLong
from toolloop.events import Event, LimitReached, RunFinished, RunStatus, StepReset
from toolloop.history import history_open, is_answer, own_turns
from toolloop.interrupts import Interrupted, Interrupter
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, ToolResult, Turn, UserMessage
from toolloop.metering import UsageReporter
from toolloop.notices import CUT_OFF, FINAL_NOTICE, NO_MORE_CALLS, REPAIR_NOTICE
from toolloop.output import request_structured
from toolloop.providers.base import ModelRequest
from toolloop.providers.profiles import profile_for
from toolloop.reservations import NothingReserved
from toolloop.retries import TurnFailed
from toolloop.service import seconds_allowed
from toolloop.turns import TurnRunner
from toolloop.usage import Reserve, Spending

BUDGET = "budget_exceeded"
"""Error code of a run for whose answer there was no money left to reserve."""


def run_loop(asked: LoopInput, services: LoopServices) -> AsyncGenerator[Event, None]:
    """Answer the last message of a history, calling tools on the way.

    Args:
        asked: what to answer, with which model and tools, within which limits.
        services: what the run stands on.

    Yields:
        Events in the order in which things happen, ``RunFinished`` as the last. Failures of the provider or of tools are
        events, not exceptions.

    Raises:
        asyncio.CancelledError: when the task is cancelled; the stream is closed and tools are cancelled by then.
        Exception: what the journal raised.
    """
    return _Run(asked, services).events()


State = Literal["ask", "answer", "judge", "over"]


class _Run:
    """State of one run: the model is asked, its calls are answered, the turn is judged; then once more, or it is over."""

    def __init__(self, asked: LoopInput, services: LoopServices) -> None:
        self.asked, self.toolset, self.limits, self.output = asked, asked.toolset, asked.limits, asked.output
        self.template = ModelRequest(
            model=asked.model,
            system=asked.system,
            messages=(),
            options=asked.options or {},
            cache_key=asked.cache_key,
            user_key=asked.user_key,
            server_tools=asked.server_tools,
            tool_choice=asked.tool_choice,
            profile=services.profile,
            withheld=asked.toolset.withheld,
        )
        self.interrupter = Interrupter(services.stop)
        self.profile = services.profile or profile_for(services.provider.name, asked.model)
        self.spending = self._spending(services)
        self.turns = TurnRunner(
            provider=services.provider,
            limits=asked.limits,
            journal=services.journal,
            interrupter=self.interrupter,
            settle=self.spending.settle,
            settle_broken=self.spending.settle_broken,
            admit=self.spending.admit,
        )
        self.calls = CallRunner(
            toolset=asked.toolset,
            limits=asked.limits,
            journal=services.journal,
            interrupter=self.interrupter,
            context=asked.context or {},
            run_blocking=services.run_blocking,
            run_admission=services.run_admission,
            decisions=asked.decisions or {},
            waiting=asked.pending,
            mock=asked.mock_tools,
        )
        self.compactor = Compactor(
            services.compaction, self.profile, self.spending, asked.system, asked.toolset.specs
        )
        self.repairs = 0  # Turns that were asked for because an answer did not fit ``output``.
        self.history: list[ModelMessage] = []
        self.step = 0
        self.limit, self.detail = "", ""
        self.carried = ""  # Text of paused turns: the answer goes on in the next one.
        self.deadline: float | None = None  # In the event loop's time.
        self.notes: list[str] = []
        self.problem = ""  # What is wrong with an answer that is taken all the same.
        self.state: State = "ask"
        self.final = False  # Whether the turn is the last one, because a limit is met.
        self.answered: Mapping[str, ToolResult] = {}  # Calls of the turn that an earlier attempt ran.
        self.is_decided = False  # Whether decisions are about the calls of the turn.

    def _spending(self, services: LoopServices) -> Spending:
        name, model = services.provider.name, self.asked.model
        return Spending(
            self.limits,
            self.profile,
            provider=name,
            model=model,
            reporter=UsageReporter(
                services.on_usage, provider=name, model=model, metadata=services.usage_metadata
            ),
            profiles=services.profiles,
            reservations=services.reservations,
            tier=str(self.template.options.get("service_tier") or ""),
        )

    async def events(self) -> AsyncGenerator[Event, None]:
        """Run to the end; see ``run_loop``."""
        if self.limits.max_seconds is not None:
            self.deadline = asyncio.get_running_loop().time() + self.limits.max_seconds
        opened = history_open(self.asked.history)
        self.history, self.step = opened.messages, self.asked.first_step
        own = own_turns(opened.messages, self.step)
        turns = [message for message in own if isinstance(message, Turn)]
        self.spending.begin(self.asked.usage, turns)
        self.turns.requests = self.asked.usage.requests
        for turn in turns[:-1]:
            self.carried = self.carried + turn.text if turn.stop == "pause" else ""
            self.repairs += is_answer(turn)
        self.calls.accounts.count_past(own)
        self.interrupter.open()
        self._resume(opened.turn, opened.answered)
        try:
            while self.state != "over":
                async with aclosing(self._states[self.state](self)) as happened:
                    async for event in happened:
                        yield event
        except Interrupted:
            yield self._over("stopped", stop="stopped")
        except TurnFailed as failure:
            yield self._over(
                "failed",
                stop="error",
                error_code=failure.code,
                error_message=failure.message,
                retryable=failure.retryable,
            )
        finally:
            self.interrupter.close()

    def _resume(self, open_turn: Turn | None, answered: Mapping[str, ToolResult]) -> None:
        """Take up the turn an earlier attempt ended in, when what follows it has not happened yet."""
        last = self.history[-1] if self.history else None
        turn = open_turn or (last if isinstance(last, Turn) and self.step > 0 else None)
        if turn is None:
            return
        self.step = max(0, self.step - 1)
        self.turns.turn = turn
        self.final = self.step - self.repairs >= self.limits.max_steps
        self.answered, self.is_decided = answered, turn is open_turn
        self.state = "answer"

    async def _ask(self) -> AsyncGenerator[Event, None]:
        """Have the model write a turn; what a limit or a long history spoils is asked again, and differently."""
        self.history = await self.compactor.fitted(self.history)
        reserve = self._allowance()
        self.final = bool(self.limit)
        if self.final:
            yield LimitReached(self.limit, self.detail, self.step)
            reserve = self._reserve(final=True)
            if reserve.limit:
                self.notes.append("There was no money left for a final answer.")
                yield self._over("completed", stop="end")
                return
        hard = self._hard_deadline()
        request = self._request(reserve, hard, final=self.final)
        soft = hard if self.final else self.deadline
        self.spending.step = self.step
        try:
            written = self.turns.run(self.step, request, soft=soft, hard=hard, final=self.final)
            async with aclosing(written) as events:
                async for event in events:
                    yield event
        except Interrupted as interrupted:
            if interrupted.cause == "stop":
                raise
            if self.final or self.turns.partial:
                raise self._out_of_time() from None
            limit = self._met("max_seconds", f"{self.limits.max_seconds:g} s have passed")
        except NothingReserved as empty:
            if self.final:
                raise TurnFailed(BUDGET, empty.detail, retryable=empty.retryable) from empty
            limit = self._met("budget", empty.detail)
        except TurnFailed as failure:
            if failure.code != ContextTooLong.code or self.turns.visible:
                raise
            smaller = await self.compactor.forced(self.history)
            if smaller is None:
                raise
            self.history = smaller
            return
        else:
            self.history.append(cast(Turn, self.turns.turn))
            self.answered, self.is_decided = {}, False
            self.state = "answer"
            return
        if self.turns.visible:
            yield StepReset(limit, self.step)

    async def _answer(self) -> AsyncGenerator[Event, None]:
        """Run the calls of the turn; a run some of whose calls wait is over for now."""
        turn = cast(Turn, self.turns.turn)
        self.state = "judge"
        if not turn.tool_calls:
            return
        self.interrupter.deadline_set(None if self.final else self.deadline)
        refusal = None
        if self.final:
            refusal = NO_MORE_CALLS
        elif turn.stop not in ("tools", "end", "pause"):
            refusal = CUT_OFF
        answers = self.calls.answer(self.step, turn, self.answered, refusal, decided=self.is_decided)
        async with aclosing(answers) as events:
            async for event in events:
                yield event
        self.history.extend(self.calls.results)
        if self.calls.pending:
            yield self._over("parked", stop=turn.stop)

    async def _judge(self) -> AsyncGenerator[Event, None]:
        """Say whether the turn was the last one, and have an answer mended that has not the form asked for."""
        turn = cast(Turn, self.turns.turn)
        goes_on = turn.stop == "pause" or (bool(turn.tool_calls) and turn.stop not in ("refusal", "filter"))
        if self.final or not goes_on:
            problem, value = self._checked_output()
            if not problem or not is_answer(turn):
                has_output = self.output is not None and not problem
                yield self._over("completed", stop=turn.stop, output=value, has_output=has_output)
                return
            if self.final or self.repairs >= self.limits.max_output_repairs:
                yield self._unfit(turn, problem)
                return
            self.repairs += 1
            self.history.append(UserMessage(REPAIR_NOTICE.format(problem=problem), notice=True))
            yield StepReset("invalid_output", self.step)
        self.carried = self.carried + turn.text if turn.stop == "pause" else ""
        self.turns.clear()
        self.step += 1
        self.state = "ask"

    # Of the class: methods bound to a run, kept by it, would keep it with all that was said until the collector comes.
    _states: ClassVar[Mapping[str, Callable[[_Run], AsyncGenerator[Event, None]]]] = {
        "ask": _ask,
        "answer": _answer,
        "judge": _judge,
    }

    def _unfit(self, turn: Turn, problem: str) -> RunFinished:
        """End the run with an answer that nothing brought into the form asked for.

        Raises:
            TurnFailed: the form is required.
        """
        if self.output is not None and not self.output.is_required:
            self.problem = problem
            return self._over("completed", stop=turn.stop)
        raise TurnFailed(
            "invalid_output", f"The answer does not have the form asked for: {problem}", retryable=True
        )

    def _checked_output(self) -> tuple[str, Any]:
        """Return what is wrong with the answer, "" for nothing, and its value."""
        if self.output is None:
            return "", None
        value, problem = self.output.parse(self.carried + self.turns.text)
        return problem, value

    def _met(self, limit: str, detail: str) -> str:
        """Note a limit, the first one alone, and return it."""
        if limit and not self.limit:
            self.limit, self.detail = limit, detail
        return limit

    def _allowance(self) -> Reserve:
        """Check every limit before a model turn; the only place where they are."""
        limits = self.limits
        if self.interrupter.cause == "stop":
            raise Interrupted("stop")
        self._met(self.calls.accounts.limit, self.calls.accounts.detail)
        if self.step - self.repairs >= limits.max_steps:
            self._met("max_steps", f"{limits.max_steps} model turns were made")
        if limits.max_requests is not None and self.turns.requests >= limits.max_requests:
            self._met("max_requests", f"{self.turns.requests} model requests were made")
        if self.deadline is not None and asyncio.get_running_loop().time() >= self.deadline:
            self._met("max_seconds", f"{limits.max_seconds:g} s have passed")
        reserve = Reserve()
        if not self.limit:
            reserve = self._reserve(final=False)
            self._met(reserve.limit, reserve.detail)
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

    def _out_of_time(self) -> TurnFailed:
        self._met("max_seconds", f"{self.limits.max_seconds:g} s have passed")
        seconds = self.limits.total_seconds
        return TurnFailed("deadline", f"The answer was not complete after {seconds:g} s.", retryable=True)

    def _over(
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
        self.state = "over"
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
