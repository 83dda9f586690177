"""Tell the application what each model call cost, call by call: for billing, attribution and dashboards."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolloop.errors import ConfigurationError
from toolloop.messages import Turn
from toolloop.tokens import Usage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """What one model call has used.

    Attributes:
        model, provider: who answered; a fallback is named here, not the model that was asked for first.
        step: the run's model turn, from 0. A turn that was asked again has several events of one step.
        usage: tokens of this call alone.
        cost_usd: its price, None when it is unknown.
        tool_calls: names of the tools the turn calls, in order.
        is_cached: the answer came out of a response cache and cost nothing.
        is_lost: the call was billed, but no usable turn came of it.
        is_stopped: that is so because somebody stopped it, not because anything failed.
        is_estimate: the call ended before the provider had counted: what it had not told is an estimate, rather too high.
        metadata: what the application gave to the run for attribution (tenant, user, feature).
        hold: the money its ``BudgetReservations`` held back for the call, which is settled by this.
        seconds: from the request to the end of its answer; None when nobody has measured it.
        service_tier: the tier it is priced by: the one the provider names, else what ``toolloop.service`` says.
    """

    model: str
    provider: str
    step: int
    usage: Usage
    cost_usd: float | None
    tool_calls: tuple[str, ...] = ()
    is_cached: bool = False
    is_lost: bool = False
    is_stopped: bool = False
    is_estimate: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    hold: int | None = None
    seconds: float | None = None
    service_tier: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the event as JSON values, as far as the metadata are."""
        return {
            "model": self.model,
            "provider": self.provider,
            "step": self.step,
            "usage": self.usage.to_json(),
            "cost_usd": self.cost_usd,
            "tool_calls": list(self.tool_calls),
            "is_cached": self.is_cached,
            "is_lost": self.is_lost,
            "is_stopped": self.is_stopped,
            "is_estimate": self.is_estimate,
            "metadata": dict(self.metadata),
            "hold": self.hold,
            "seconds": self.seconds,
            "service_tier": self.service_tier,
        }


class Meter:
    """What a model call under way has used so far, for when it ends without a turn.

    The loop puts one into each ``ModelRequest``; the adapter that makes the call says where its count is to be read, which
    costs nothing while it streams. Each further call for the same turn (a fallback, an executor) is added up.

    Attributes:
        provider, model: who makes the call now, "" while nobody has said so.
        is_exact: the count is the whole truth, nothing need be estimated.
    """

    __slots__ = ("_began", "_counted", "_past", "is_exact", "model", "provider")

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.provider, self.model, self.is_exact = "", "", False
        self._past = Usage()
        self._counted: Callable[[], Usage] = Usage

    def begin(
        self, provider: str, model: str, counted: Callable[[], Usage], *, is_exact: bool = False
    ) -> None:
        """Say who makes a call, and what tells at any time how much of it the provider has counted."""
        self._past = self.usage
        self.provider, self.model, self.is_exact = provider, model, is_exact
        self._counted = counted

    @property
    def is_input_known(self) -> bool:
        """Tell whether the provider has said what the call it makes now has read."""
        return bool(self._counted().input_total)

    @property
    def seconds(self) -> float:
        """Return how long ago the call began."""
        return time.monotonic() - self._began

    @property
    def usage(self) -> Usage:
        """Return what has been counted by now; nothing while the provider has told nothing."""
        return self._past + self._counted()


UsageHook = Callable[[UsageEvent], None]
"""Called in the event loop's thread after each model call: it must be quick, and hand on what takes long."""


class UsageReporter:
    """Hands usage events to a hook.

    A hook that raises does not end the run: the money is spent, and an answer thrown away would not bring it back. The
    error goes to the log with its traceback, and ``note`` says in ``RunFinished.data["notes"]`` how many events were not
    taken.

    Args:
        hook: None reports to nobody.
        provider, model: named in events of calls of which no turn came.
        metadata: copied into every event.

    Raises:
        ConfigurationError: for a coroutine function; nobody would await it.
    """

    def __init__(
        self, hook: UsageHook | None, *, provider: str, model: str, metadata: Mapping[str, Any] | None = None
    ) -> None:
        if inspect.iscoroutinefunction(hook):
            raise ConfigurationError(
                "on_usage must be a plain function: put the event into a queue and do slow work elsewhere"
            )
        self._hook, self._provider, self._model = hook, provider, model
        self._metadata = dict(metadata or {})
        self._failures = 0
        self._error = ""
        self.step = 0
        self.hold: int | None = None

    @property
    def note(self) -> str:
        """Say that events were not taken, "" when all were."""
        if not self._failures:
            return ""
        return f"on_usage failed {self._failures} times ({self._error}): usage was not reported in full."

    def report(
        self,
        usage: Usage,
        cost_usd: float | None,
        turn: Turn | None,
        *,
        is_cached: bool = False,
        broken: Meter | None = None,
        seconds: float | None = None,
        is_stopped: bool = False,
        service_tier: str = "",
    ) -> None:
        """Report one model call; ``turn`` is None when none came of it, ``broken`` its meter when it had no end."""
        hold = None if is_cached else self.hold
        self.hold = self.hold if is_cached else None
        if self._hook is None:
            return
        is_lost = turn is None or turn.stop == "error"
        provider, model = self._provider, self._model
        if turn is not None:
            provider, model = turn.provider, turn.model
        elif broken is not None and broken.provider:
            provider, model = broken.provider, broken.model
        event = UsageEvent(
            model=model,
            provider=provider,
            step=self.step,
            usage=usage,
            cost_usd=cost_usd,
            tool_calls=() if turn is None else tuple(call.name for call in turn.tool_calls),
            is_cached=is_cached,
            is_lost=is_lost,
            is_stopped=is_lost and is_stopped,
            is_estimate=broken is not None and not broken.is_exact,
            metadata=dict(self._metadata),
            hold=hold,
            seconds=seconds if broken is None else broken.seconds,
            service_tier=service_tier,
        )
        try:
            self._hook(event)
        except Exception as error:
            self._failures += 1
            self._error = type(error).__name__
            logger.exception("on_usage failed; the usage of a model call was not reported")
