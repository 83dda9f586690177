"""The workspace's budgets as a loop's purse: held back before each model call, settled by its usage record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from budgets.ledger import Asked, BudgetExceeded, Payer, Reserved, budget_reserve_each, holds_release
from budgets.services import budgets_tell
from runs.models import Run
from toolloop.purse import Grant, PurseEmpty, Quote

HELD_WAIT_S = 20.0
"""How long a call waits for money that other calls hold."""
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 1.0
_SLACK_S = 60


class InDb(Protocol):
    """Runs ORM code for a coroutine, in whatever thread may."""

    def __call__(self, function: Callable[..., Any], /, *args: Any) -> Awaitable[Any]: ...


def run_payer(run: Run) -> Payer:
    """Return on whose account a run goes."""
    facts = run.request
    return Payer(
        run.tenant_id,
        run.user_id,
        (facts.get("actor") or {}).get("api_key_id"),
        facts.get("assistant"),
        facts.get("budget_job"),
    )


class BudgetPurse:
    """Implements ``toolloop.purse.Purse`` for one run or question.

    Args:
        payer: whose budgets.
        in_db: how to reach the database from the loop.
        run_id: so that an interrupted run's holds are found again.
        reserve: reserves instead of a statement of its own, for many purses of one payer at once.
    """

    def __init__(
        self,
        payer: Payer,
        in_db: InDb,
        *,
        run_id: int | None = None,
        reserve: Callable[[Asked], Awaitable[Reserved]] | None = None,
    ) -> None:
        self._payer, self._in_db, self._run_id = payer, in_db, run_id
        self._reserve = reserve or self._reserve_alone
        self._held: list[int] = []

    @property
    def is_used(self) -> bool:
        """Tell whether any budget applied, so that there is something to close."""
        return bool(self._held)

    async def reserve(self, quote: Quote) -> Grant:
        """See ``Purse``: one statement, again while other calls hold what is left."""
        asked = asked_of(quote)
        until, pause = time.monotonic() + HELD_WAIT_S, _FIRST_PAUSE_S
        while True:
            reserved = await self._reserve(asked)
            refusal = reserved.refusal
            if refusal is None:
                break
            if refusal.why != "held" or time.monotonic() + pause > until:
                raise PurseEmpty(refusal.message, retryable=refusal.why == "held")
            await asyncio.sleep(pause)
            pause = min(_LAST_PAUSE_S, pause * 2)
        if reserved.hold_id is None:
            return Grant()
        self._held.append(reserved.hold_id)
        return Grant(reserved.hold_id, quote.output_for(reserved.granted_usd))

    async def _reserve_alone(self, asked: Asked) -> Reserved:
        found: Reserved = await self._in_db(reserve_and_tell, self._payer, asked, self._run_id)
        return found

    def close(self) -> None:
        """Give back what was held for calls that cost nothing, and tell about budgets that were crossed.

        Call it when the usage records are written: until then their holds are needed.
        """
        if self.is_used:
            holds_release(*self._held)
            budgets_tell(self._payer.tenant_id)


def asked_of(quote: Quote) -> Asked:
    """Return a quote as the ledger takes it."""
    return Asked(
        quote.needed_usd, quote.fair_usd, quote.most_usd, quote.is_priced, int(quote.seconds) + _SLACK_S
    )


def reserve_and_tell(payer: Payer, asked: Asked, run_id: int | None = None) -> Reserved:
    """Reserve, and tell people where a budget was crossed that nobody was told about."""
    return reserve_each_and_tell(payer, [asked], run_id)[0]


def reserve_each_and_tell(payer: Payer, asked: Sequence[Asked], run_id: int | None = None) -> list[Reserved]:
    """Do the same for several calls of one payer, one after the other."""
    found = budget_reserve_each(payer, asked, run_id=run_id)
    if any(reserved.must_tell for reserved in found):
        budgets_tell(payer.tenant_id)
    return found


def quote_hold(payer: Payer, quote: Quote | None) -> int | None:
    """Hold the money of a call that is made outside of the loop; returns the hold for its usage record.

    Raises:
        BudgetExceeded: there is none.
    """
    if quote is None:
        return None
    reserved = reserve_and_tell(payer, asked_of(quote))
    if reserved.refusal is not None:
        raise BudgetExceeded(reserved.refusal)
    return reserved.hold_id
