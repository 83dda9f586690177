"""Money that several runs share: asked for before each model call, settled by what the call reports.

``Limits.max_cost_usd`` is the money of one run, counted here in the loop. ``BudgetReservations`` is
implemented by the application: it holds back what a call may cost, and finds the hold again in ``UsageEvent.hold``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

from toolloop.providers.profiles import Prices, Profile
from toolloop.tokens import Usage

UNKNOWN_PRICE = Prices(input=5.0, output=25.0)
"""What a model of unknown price is counted with: that of a large model, so that a budget stops early, never late."""
LEAST_OUTPUT = 256
"""A turn that may write less than this is not worth its input."""
FAIR_OUTPUT = 4_096
FINAL_OUTPUT = 1_024
"""Kept back for an answer with what there is, when the money ends."""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What a model call may cost.

    Attributes:
        provider, model: who is asked.
        input_usd: its input by an estimate that is rather too high.
        output_usd: a token of output.
        most_output: tokens it may write.
        kept_usd: kept back for a final answer behind it, 0 for that answer itself.
        is_priced: the price is known; else the figures are by ``UNKNOWN_PRICE``.
        seconds: it takes at most, its repetitions after errors included.
    """

    provider: str
    model: str
    input_usd: float
    output_usd: float
    most_output: int
    kept_usd: float
    is_priced: bool
    seconds: float

    @property
    def needed_usd(self) -> float:
        """Return what must be left for the call to be worth it."""
        return self.usd(min(LEAST_OUTPUT, self.most_output)) + self.kept_usd

    @property
    def fair_usd(self) -> float:
        """Return what it should not be held below while there is so much."""
        return self.usd(min(FAIR_OUTPUT, self.most_output)) + self.kept_usd

    @property
    def most_usd(self) -> float:
        """Return what it may cost at most."""
        return self.usd(self.most_output)

    def usd(self, output: int) -> float:
        """Return the price of the call with so many tokens of output."""
        return self.input_usd + output * self.output_usd

    def output_for(self, granted_usd: float) -> int | None:
        """Return the tokens of output that a smaller grant pays for, None where it pays for all of them."""
        if granted_usd >= self.most_usd or self.output_usd <= 0:
            return None
        left = granted_usd - self.kept_usd - self.input_usd
        return max(min(LEAST_OUTPUT, self.most_output), int(left / self.output_usd))


@dataclass(frozen=True, slots=True)
class Reservation:
    """Leave to make a call.

    Attributes:
        hold: what the application knows the held money by; None where nothing is held.
        max_output_tokens: the call may write no more; None leaves it as it is.
    """

    hold: int | None = None
    max_output_tokens: int | None = None


class NothingReserved(Exception):
    """There is no money for a call; ``detail`` is a sentence for a person, ``retryable`` whether waiting helps."""

    def __init__(self, detail: str, *, retryable: bool = False) -> None:
        super().__init__(detail)
        self.detail, self.retryable = detail, retryable


class BudgetReservations(Protocol):
    """Where a run's money comes from; lives in the loop's thread."""

    async def reserve(self, quote: CostEstimate) -> Reservation:
        """Hold back money for a call.

        Raises:
            NothingReserved: there is none.
        """


class KnowingReservations(BudgetReservations, Protocol):
    """One that may know beforehand that no budget applies; the loop makes no estimate for such a call."""

    def none_needed(self) -> bool:
        """Tell whether the next call may be made as it is; that call uses up the answer."""


def cost_estimate(
    profile: Profile,
    *,
    provider: str,
    model: str,
    input_tokens: int,
    most_output: int,
    seconds: float,
    final: bool = True,
    tier: str = "",
    keeps_long: bool = False,
) -> CostEstimate | None:
    """Return what a call may cost; None for one that is known to cost nothing.

    Args:
        profile: facts about the model.
        input_tokens: what it will read.
        most_output: tokens it may write.
        seconds: for ``CostEstimate.seconds``.
        final: no final answer must be kept money for.
        tier: the service tier it asks for.
        keeps_long: it asks the provider to keep its prompt for longer than usual.
    """
    is_priced = bool(profile.prices)
    priced = profile if is_priced else replace(profile, prices=(UNKNOWN_PRICE,))
    plain_usd = _usd(priced, tier, input_total=input_tokens)
    with_output = _usd(priced, tier, input_total=input_tokens, output_total=1_000_000)
    output_usd = (with_output - plain_usd) / 1e6
    written_long = input_tokens if keeps_long else 0
    written = _usd(
        priced, tier, input_total=input_tokens, cache_write=input_tokens, cache_write_long=written_long
    )
    input_usd = max(plain_usd, written)
    if input_usd <= 0 and output_usd <= 0:
        return None
    kept = 0.0 if final else input_usd + FINAL_OUTPUT * output_usd
    return CostEstimate(provider, model, input_usd, output_usd, most_output, kept, is_priced, seconds)


def charged_usd(usage: Usage, cost_usd: float | None, tier: str = "") -> float:
    """Return what a budget counts for a call: its cost, or what it would cost at ``UNKNOWN_PRICE`` in its service tier."""
    if cost_usd is not None:
        return cost_usd
    return _usd(
        Profile(prices=(UNKNOWN_PRICE,)), tier, input_total=usage.input_total, output_total=usage.output_total
    )


def _usd(profile: Profile, tier: str, **tokens: Any) -> float:
    return profile.cost_usd(Usage(**tokens), tier) or 0.0
