"""Tokens and money of one run: reserved before each model call, settled after."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolloop.limits import Limits
from toolloop.messages import ModelMessage, Turn, UserMessage
from toolloop.metering import Meter, UsageReporter
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile, profile_for
from toolloop.reservations import FINAL_OUTPUT, LEAST_OUTPUT, BudgetReservations, cost_estimate
from toolloop.service import tier_charged
from toolloop.tokens import Usage

_BYTES_PER_TOKEN = 3  # Below the usual 4 for English: a reserve must not be too small.
_TOKENS_PER_MESSAGE = 8
_UNKNOWN_OUTPUT_CAP = 32_768
CACHED = "cached"
"""``Turn.stop_detail`` of an answer that came out of a response cache and cost nothing."""
BY_RULE = "by_rule"
"""``Turn.stop_detail`` of a turn that no model was asked for; see ``toolloop.modes``."""


ProfileLookup = Callable[[str, str], Profile]
"""From provider and bare model to what is known about it."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """Whether a model call fits: ``limit`` is "" when it does, and ``max_output_tokens`` is what it may write."""

    limit: str = ""
    detail: str = ""
    max_output_tokens: int | None = None


class Spending:
    """Counts what a run uses and decides before each call whether it still fits.

    Args:
        limits: the run's limits.
        profile: facts about the model, for its prices and output cap.
        provider, model: whose profile it is; turns of others (fallbacks) are priced by their own.
        reporter: told of every call that is settled.
        profiles: facts about those others, by provider and bare model; the built-in ones when None.
        reservations: where the money of each call is held back; None for no such place.
        tier: the service tier that calls ask for, see ``toolloop.service``. Money is held back by it, and settled by the
            tier that was used.

    Attributes:
        step: the model turn that calls belong to; for reports.
    """

    def __init__(
        self,
        limits: Limits,
        profile: Profile,
        *,
        provider: str = "",
        model: str = "",
        reporter: UsageReporter | None = None,
        profiles: ProfileLookup | None = None,
        reservations: BudgetReservations | None = None,
        tier: str = "",
    ) -> None:
        self._reservations, self._tier = reservations, tier
        self._profiles = profiles or profile_for
        self._limits = limits
        self._profile = profile
        self._key = (provider, model)
        self._reporter = reporter or UsageReporter(None, provider=provider, model=model)
        self.step = 0
        self._context = 0  # Tokens the provider counted for the history up to the last turn.
        self._estimated: tuple[tuple[int, ...], ModelMessage, int] | None = None
        self._unreported = False
        self._estimates = 0
        self._free = profile.cost_usd(Usage(input_total=1000, output_total=1000)) == 0.0
        self.usage = Usage()
        self.cost_usd: float | None = 0.0
        self.begin(Usage(), ())

    def begin(self, usage: Usage, turns: Sequence[Turn]) -> None:
        """Take over what earlier attempts used.

        Args:
            usage: their tokens.
            turns: their turns as far as known; these are priced one by one, because price tiers depend on the size
                of each prompt.
        """
        self.usage = usage
        known = sum((turn.usage for turn in turns), Usage())
        lost = Usage(
            input_total=max(0, usage.input_total - known.input_total),
            cached_read=max(0, usage.cached_read - known.cached_read),
            cache_write=max(0, usage.cache_write - known.cache_write),
            output_total=max(0, usage.output_total - known.output_total),
        )
        costs = [self._profile.cost_usd(lost, tier_charged("", self._tier))]
        costs += [
            self._profile_of(turn.provider, turn.model).cost_usd(
                turn.usage, tier_charged(turn.service_tier, self._tier)
            )
            for turn in turns
        ]
        self.cost_usd = None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def notes(self) -> list[str]:
        """Sentences about what could not be enforced."""
        limits, found = self._limits, []
        if limits.max_cost_usd is not None and self.cost_usd is None:
            found.append("The price of this model is unknown: max_cost_usd was not enforced.")
        if self._unreported and (limits.max_tokens is not None or limits.max_cost_usd is not None):
            found.append(
                "The provider reported no token usage: max_tokens and max_cost_usd were not enforced."
            )
        if self._estimates:
            found.append(
                f"{self._estimates} model calls ended before the provider counted them, so their usage is "
                f"an estimate."
            )
        if self.usage.server_tools:
            found.append(
                f"The provider ran {self.usage.server_tools} searches, page reads or programs itself; "
                f"their price is not counted."
            )
        if self._reporter.note:
            found.append(self._reporter.note)
        return found

    def _profile_of(self, provider: str, model: str) -> Profile:
        if not provider or not self._key[0] or (provider, model) == self._key:
            return self._profile
        return self._profiles(provider, model)

    def history_changed(self) -> None:
        """Forget what the provider counted: the history is another one now."""
        self._context = 0
        self._estimated = None

    def settle(
        self,
        usage: Usage,
        turn: Turn | None = None,
        seconds: float | None = None,
        *,
        is_stopped: bool = False,
    ) -> None:
        """Add what one model call has used; ``turn`` is what came of it, None for nothing, after so many seconds."""
        self._reporter.step = self.step
        if turn is not None and turn.stop_detail == BY_RULE:
            return
        if turn is not None and turn.stop_detail == CACHED:
            self._reporter.report(Usage(), 0.0, turn, is_cached=True)
            return
        counted = usage if usage.requests else usage + Usage(requests=1)
        self.usage += counted
        if turn is not None and turn.stop != "error":  # Any other is not in the history.
            self._context = usage.input_total + usage.output_total
        who = ("", "") if turn is None else (turn.provider, turn.model)
        tier = tier_charged("" if turn is None else turn.service_tier, self._tier)
        cost = self._profile_of(*who).cost_usd(usage, tier)
        if not (usage.input_total or usage.output_total) and not self._free:
            self._unreported = True
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost
        self._reporter.report(counted, cost, turn, seconds=seconds, is_stopped=is_stopped, service_tier=tier)

    def settle_broken(
        self, request: ModelRequest, meter: Meter, streamed: int, *, is_stopped: bool = False
    ) -> None:
        """Add what a call has used that we ended before its turn: it was stopped, or time was up.

        What the provider has told by then counts; the rest is estimated, so that stopping does not make a call free.

        Args:
            request: what was sent.
            meter: what the adapter has been told.
            streamed: length of text, reasoning and arguments that came.
            is_stopped: somebody stopped it.
        """
        usage = meter.usage
        if not meter.is_exact:
            self._estimates += 1
            sent = 0
            if not meter.is_input_known:
                sent = self._input_tokens(request.system, request.messages, request.tools)
            usage = replace(
                usage,
                input_total=usage.input_total + sent,
                output_total=max(usage.output_total, -(-streamed // _BYTES_PER_TOKEN)),
            )
        usage = replace(usage, requests=max(1, usage.requests))
        self.usage += usage
        tier = tier_charged("", self._tier)
        cost = self._profile_of(meter.provider, meter.model).cost_usd(usage, tier)
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost
        self._reporter.step = self.step
        self._reporter.report(usage, cost, None, broken=meter, is_stopped=is_stopped, service_tier=tier)

    def reserve(
        self, *, system: str, history: Sequence[ModelMessage], tools: Sequence[ToolSpec], final: bool
    ) -> Reserve:
        """Check the next model call against tokens and money.

        Args:
            system, history, tools: what the call will send.
            final: whether it is the final answer; that one is not held back by ``max_tokens``, and needs no money
                set aside for another.
        """
        limits = self._limits
        cap = limits.max_output_tokens
        if limits.max_tokens is None and (limits.max_cost_usd is None or self.cost_usd is None):
            return Reserve(max_output_tokens=cap)
        expected = self.input_tokens(system, history, tools)
        used = self.usage.input_total + self.usage.output_total
        if limits.max_tokens is not None and not final and used + expected + LEAST_OUTPUT > limits.max_tokens:
            detail = f"{used} of {limits.max_tokens} tokens are used; another turn would not fit"
            return Reserve("max_tokens", detail)
        if limits.max_cost_usd is None or self.cost_usd is None:
            return Reserve(max_output_tokens=cap)
        affordable = self._affordable(expected, limits.max_cost_usd - self.cost_usd, final)
        if affordable < LEAST_OUTPUT:
            detail = (
                f"${self.cost_usd:.4f} of ${limits.max_cost_usd:.4f} are spent; another turn would not fit"
            )
            return Reserve("max_cost_usd", detail)
        if affordable >= (self._profile.max_output_tokens or _UNKNOWN_OUTPUT_CAP):
            return Reserve(max_output_tokens=cap)
        return Reserve(max_output_tokens=affordable if cap is None else min(cap, affordable))

    async def admit(self, request: ModelRequest, final: bool) -> ModelRequest:
        """Reserve the money of a call; what was held for one that cost nothing serves the next.

        Returns:
            The request, with less output where the money is for less.

        Raises:
            NothingReserved: there is none.
        """
        if self._reservations is None or self._reporter.hold is not None:
            return request
        none_needed = getattr(self._reservations, "none_needed", None)
        if none_needed is not None and none_needed():
            return request
        cap = request.max_output_tokens or self._profile.max_output_tokens or _UNKNOWN_OUTPUT_CAP
        quote = cost_estimate(
            self._profile,
            provider=self._key[0],
            model=self._key[1],
            input_tokens=self.input_tokens(request.system, request.messages, request.tools),
            most_output=cap,
            seconds=request.timeout_s,
            final=final,
            tier=self._tier,
            keeps_long=bool(request.options.get("cache_ttl")),
        )
        if quote is None:
            return request
        grant = await self._reservations.reserve(quote)
        self._reporter.hold = grant.hold
        if grant.max_output_tokens is None:
            return request
        return replace(request, max_output_tokens=min(cap, grant.max_output_tokens))

    def _affordable(self, expected: int, left_usd: float, final: bool) -> int:
        """Return the output tokens that ``left_usd`` pays for, with the money for a final answer kept back."""
        input_usd = self._profile.cost_usd(Usage(input_total=expected), self._tier) or 0.0
        with_output = self._profile.cost_usd(Usage(input_total=expected, output_total=1_000_000), self._tier)
        output_usd = ((with_output or 0.0) - input_usd) / 1_000_000
        left_usd -= input_usd
        if not final:
            left_usd -= input_usd + FINAL_OUTPUT * output_usd
        if output_usd <= 0.0:
            return _UNKNOWN_OUTPUT_CAP if left_usd >= 0 else 0
        # What a turn writes is read again by the final answer: it costs the input price once more.
        per_token = output_usd if final else output_usd + input_usd / max(1, expected)
        return max(0, int(left_usd / per_token))

    def input_tokens(self, system: str, history: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> int:
        """Estimate the input of the next call: the provider's own count of the past, plus what came since.

        Compaction and reserve ask before the same call; the second of them gets the first one's answer.
        """
        if not history:
            return self._input_tokens(system, history, tools)
        key = (self._context, len(history), len(system), *map(id, tools))
        known = self._estimated
        if known is not None and known[0] == key and known[1] is history[-1]:
            return known[2]
        tokens = self._input_tokens(system, history, tools)
        self._estimated = key, history[-1], tokens
        return tokens

    def _input_tokens(self, system: str, history: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> int:
        size = 0
        since: list[ModelMessage] = []
        for message in reversed(history):
            if self._context and isinstance(message, Turn):
                break
            since.append(message)
        files = 0
        for message in since:
            size += _bytes(message)
            files += _file_tokens(message)
        if not self._context:
            size += _size(system)
            # A deferred tool costs nothing until it is found.
            size += sum(
                len(json.dumps(dict(tool.parameters))) + len(tool.description)
                for tool in tools
                if not tool.deferred
            )
        return self._context + files + size // _BYTES_PER_TOKEN + _TOKENS_PER_MESSAGE * len(since)


def text_tokens(message: ModelMessage) -> int:
    """Estimate the tokens of one message, its images and files included."""
    return _bytes(message) // _BYTES_PER_TOKEN + _TOKENS_PER_MESSAGE + _file_tokens(message)


def _size(text: str) -> int:
    """Return the length in bytes; what ends up in ASCII, as most of a history does, need not be encoded to know."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _file_tokens(message: ModelMessage) -> int:
    if isinstance(message, Turn) or not message.parts:
        return 0
    return sum(part.tokens for part in message.parts)


def _bytes(message: ModelMessage) -> int:
    # Asked for every message of a history before every call: texts are measured where they are, none is joined.
    if not isinstance(message, Turn):
        return _size(message.text if isinstance(message, UserMessage) else message.content)
    size = _size(message.text)
    if message.reasoning:
        size += _size(message.reasoning)
    for call in message.tool_calls:
        size += _size(call.raw)
    return size
