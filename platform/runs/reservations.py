"""The workspace's budgets as what a loop reserves money from: held back before each model call, settled by its usage record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from basics.metrics import BUDGET_REFUSALS
from budgets.ledger import (
    BillingAccount,
    BudgetExceeded,
    ReservationRequest,
    Reserved,
    budget_reserve_each,
    holds_release,
)
from budgets.warnings import budgets_tell
from runs.models import Run
from toolloop.reservations import CostEstimate, NothingReserved, Reservation

HELD_WAIT_S = 20.0
"""How long a call waits for money that other calls hold."""
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 1.0
_SLACK_S = 60
_KNOWN_S = 0.5
"""Seconds for which a call that begins takes it as given that there is no budget: it was found out just before."""


class InDb(Protocol):
    """Runs ORM code for a coroutine, in whatever thread may."""

    def __call__(self, function: Callable[..., Any], /, *args: Any) -> Awaitable[Any]: ...


def run_billing_account(run: Run) -> BillingAccount:
    """Return on whose account a run goes."""
    facts = run.request
    return BillingAccount(
        run.tenant_id,
        run.user_id,
        (facts.get("actor") or {}).get("api_key_id"),
        facts.get("assistant"),
        facts.get("budget_job"),
    )


class RunReservations:
    """Implements ``toolloop.reservations.KnowingReservations`` for one run or question.

    Args:
        billing_account: whose budgets.
        in_db: how to reach the database from the loop.
        run_id: so that an interrupted run's holds are found again.
        reserve: reserves instead of a statement of its own, for many runs of one billing account at once.
        has_budget: see ``known``.
    """

    def __init__(
        self,
        billing_account: BillingAccount,
        in_db: InDb,
        *,
        run_id: int | None = None,
        reserve: Callable[[ReservationRequest], Awaitable[Reserved]] | None = None,
        has_budget: bool | None = None,
    ) -> None:
        self._billing_account, self._in_db, self._run_id = billing_account, in_db, run_id
        # Not _reserve_alone in its place: bound to this and kept by it, it would wait for the collector.
        self._reserve = reserve
        self._held: list[int] = []
        self._none_until = 0.0
        self.known(has_budget)

    @property
    def is_used(self) -> bool:
        """Tell whether any budget applied, so that there is something to close."""
        return bool(self._held)

    def known(self, has_budget: bool | None) -> None:
        """Take what was found out on the way to the next call, which need not ask for it again where there is no budget.

        Good for one call, and for no later one: that asks again, so a budget that is set meanwhile counts there.

        Args:
            has_budget: whether the workspace has any budget; None for not found out.
        """
        self._none_until = time.monotonic() + _KNOWN_S if has_budget is False else 0.0

    def none_needed(self) -> bool:
        """See ``KnowingReservations``: where ``known``."""
        until, self._none_until = self._none_until, 0.0
        return time.monotonic() < until

    async def reserve(self, quote: CostEstimate) -> Reservation:
        """See ``BudgetReservations``: one statement, again while other calls hold what is left."""
        asked = reservation_request(quote)
        until, pause = time.monotonic() + HELD_WAIT_S, _FIRST_PAUSE_S
        while True:
            reserved = await (self._reserve or self._reserve_alone)(asked)
            refusal = reserved.refusal
            if refusal is None:
                break
            if refusal.why != "held" or time.monotonic() + pause > until:
                raise NothingReserved(refusal.message, retryable=refusal.why == "held")
            await asyncio.sleep(pause)
            pause = min(_LAST_PAUSE_S, pause * 2)
        if reserved.hold_id is None:
            return Reservation()
        self._held.append(reserved.hold_id)
        return Reservation(reserved.hold_id, quote.output_for(reserved.granted_usd))

    async def _reserve_alone(self, asked: ReservationRequest) -> Reserved:
        found: Reserved = await self._in_db(reserve_and_tell, self._billing_account, asked, self._run_id)
        return found

    def close(self) -> None:
        """Give back what was held for calls that cost nothing, and tell about budgets that were crossed.

        Call it when the usage records are written: until then their holds are needed.
        """
        if self.is_used:
            holds_release(*self._held)
            budgets_tell(self._billing_account.tenant_id)


def reservation_request(quote: CostEstimate) -> ReservationRequest:
    """Return a quote as the ledger takes it."""
    return ReservationRequest(
        quote.needed_usd, quote.fair_usd, quote.most_usd, quote.is_priced, int(quote.seconds) + _SLACK_S
    )


def reserve_and_tell(
    billing_account: BillingAccount, asked: ReservationRequest, run_id: int | None = None
) -> Reserved:
    """Reserve, and tell people where a budget was crossed that nobody was told about."""
    return reserve_each_and_tell(billing_account, [asked], run_id)[0]


def reserve_each_and_tell(
    billing_account: BillingAccount, asked: Sequence[ReservationRequest], run_id: int | None = None
) -> list[Reserved]:
    """Do the same for several calls of one billing account, one after the other."""
    found = budget_reserve_each(billing_account, asked, run_id=run_id)
    for reserved in found:
        if reserved.refusal is not None and reserved.refusal.why != "held":  # that one waits
            BUDGET_REFUSALS.add()
    if any(reserved.must_tell for reserved in found):
        budgets_tell(billing_account.tenant_id)
    return found


def estimate_reserve(billing_account: BillingAccount, quote: CostEstimate | None) -> int | None:
    """Hold the money of a call that is made outside of the loop; returns the hold for its usage record.

    Raises:
        BudgetExceeded: there is none.
    """
    if quote is None:
        return None
    reserved = reserve_and_tell(billing_account, reservation_request(quote))
    if reserved.refusal is not None:
        raise BudgetExceeded(reserved.refusal)
    return reserved.hold_id
