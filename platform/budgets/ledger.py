"""Reserve money before a model call; its usage record settles it (``budgets.ledger_sql``)."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from django.db import connection
from django.utils import formats
from django.utils.translation import gettext_lazy

from basics.errors import DomainError
from basics.texts import gettext as _
from basics.texts import pgettext, sentences
from budgets.models import BudgetHold
from budgets.money import dollars
from budgets.periods import budget_resets

EXCEEDED = "budget_exceeded"
ANY_BUDGET = "EXISTS (SELECT FROM budgets_budget WHERE tenant_id = own_tenant())"
"""In a statement of a workspace: whether it has any budget. While it has none, no call is held money for."""
# A call of the function sees what those before it hold.
_RESERVE = """
SELECT r.*, set_config('synchronous_commit', 'off', true)
FROM unnest(%s::numeric[], %s::numeric[], %s::numeric[], %s::boolean[], %s::integer[])
    WITH ORDINALITY AS a (needed, fair, most, is_priced, seconds, place),
LATERAL budget_reserve(%s, %s, %s, %s, %s, %s, a.needed, a.fair, a.most, a.is_priced, a.seconds) r
ORDER BY a.place
"""
# Rows of a new period are made by the function and seen by the next statement only.
_SPENT = """
SELECT own.is_new, b.kind, b.period, s.starts_at, b.amount_usd, b.amount_usd - s.spent_usd
FROM budget_spends(%s, %s, %s, %s, %s) AS own
LEFT JOIN budgets_budgetspend s ON s.tenant_id = own_tenant() AND s.id = own.spend_id
LEFT JOIN budgets_budget b ON b.tenant_id = own_tenant() AND b.id = s.budget_id
WHERE own.is_new OR s.spent_usd >= b.amount_usd * 0.99 ORDER BY own.is_new DESC, b.id LIMIT 1
"""
# Translators: the budget is named so at the beginning of sentences, such as "%(budget)s is used up."
_NAMED = {
    "tenant": gettext_lazy("The workspace's budget of %(amount)s"),
    "member": gettext_lazy("Your budget of %(amount)s"),
    "key": gettext_lazy("This API key's budget of %(amount)s"),
    "assistant": gettext_lazy("This assistant's budget of %(amount)s"),
    "job": gettext_lazy("This job's budget of %(amount)s"),
}
_NAMED_FOR = {
    "tenant": gettext_lazy("The workspace's budget of %(amount)s for %(time)s"),
    "member": gettext_lazy("Your budget of %(amount)s for %(time)s"),
    "key": gettext_lazy("This API key's budget of %(amount)s for %(time)s"),
    "assistant": gettext_lazy("This assistant's budget of %(amount)s for %(time)s"),
    "job": gettext_lazy("This job's budget of %(amount)s for %(time)s"),
}
"""The same of a day or month."""


class BudgetExceeded(DomainError):
    """There is no money left for a model call."""

    default_status = 402

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(EXCEEDED, refusal.message, data=refusal.data)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class BillingAccount:
    """On whose account a model call goes; every budget that is about any of them must have room.

    Attributes:
        tenant_id: the workspace.
        user_id, api_key_id, assistant_id: who and what asked, where known.
        job_id: ``jobs.Job`` with a budget of its own (``budgets.services.job_budget_set``).
    """

    tenant_id: int
    user_id: int | None = None
    api_key_id: int | None = None
    assistant_id: int | None = None
    job_id: int | None = None

    @property
    def attribution(self) -> dict[str, int | None]:
        """Return the facts of a usage record by which the ledger finds the budgets that it settles."""
        facts = {"assistant": self.assistant_id, "budget_job": self.job_id}
        known = {name: value for name, value in facts.items() if value is not None}
        return {"api_key_id": self.api_key_id, **known}


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """What a call may cost.

    Attributes:
        needed_usd: must be left, or the call is refused.
        fair_usd: is held for it as long as so much is left.
        most_usd: is held for it while there is plenty.
        is_priced: the model's price is known.
        seconds: after which the hold counts no more, whatever became of the call.
    """

    needed_usd: float
    fair_usd: float
    most_usd: float
    is_priced: bool
    seconds: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call may not be made.

    Attributes:
        why: ``spent``, nothing is left; ``held``, what is left is held for calls under way; ``unpriced``.
        kind, period, starts_at, amount_usd: of the budget; "" and None for ``unpriced``.
        left_usd: not spent yet.
    """

    why: Literal["spent", "held", "unpriced"]
    kind: str = ""
    period: str = ""
    starts_at: datetime.datetime | None = None
    amount_usd: Decimal | None = None
    left_usd: Decimal | None = None

    @property
    def message(self) -> str:
        """Return what happened and what to do."""
        if self.why == "unpriced" or self.amount_usd is None or self.left_usd is None:
            return _(
                "The price of this model is unknown, and this workspace doesn't use such models while a "
                "budget applies. Choose another model, or ask an owner to enter its price under Settings > "
                "Models."
            )
        whose = budget_named(self.kind, self.amount_usd, self.period, self.starts_at)
        if self.why == "held":
            return _(
                "What is left of %(budget)s is reserved for answers in progress. Try again in a minute."
            ) % {"budget": f"{whose[0].lower()}{whose[1:]}"}
        raised = way_out(self.kind, self.period, self.starts_at)
        if self.left_usd > self.amount_usd / 20:
            said = _("%(budget)s has %(left)s left, which is not enough for this request.")
            return sentences(said % {"budget": whose, "left": dollars(self.left_usd)}, *raised)
        return sentences(_("%(budget)s is used up.") % {"budget": whose}, *raised)

    @property
    def data(self) -> dict[str, object]:
        """Return the same for programs; ``resets_at`` is None where the budget never begins anew."""
        resets_at = budget_resets(self.period, self.starts_at)
        return {
            "why": self.why,
            "kind": self.kind,
            "period": self.period,
            "amount_usd": None if self.amount_usd is None else str(self.amount_usd),
            "resets_at": None if resets_at is None else resets_at.isoformat(),
            "left_usd": None if self.left_usd is None else str(max(self.left_usd, Decimal(0))),
        }


@dataclass(frozen=True, slots=True)
class Reserved:
    """What came of asking.

    Attributes:
        hold_id: goes into the usage record; None where no budget applies.
        granted_usd: held for the call; what was asked for at most where no budget applies.
        must_tell: a budget has crossed 80 % or is used up, and nobody was told yet (``budgets_tell``).
        refusal: None when the call may be made.
    """

    hold_id: int | None
    granted_usd: float
    must_tell: bool = False
    refusal: Refusal | None = None


def budget_reserve(
    billing_account: BillingAccount, asked: ReservationRequest, *, run_id: int | None = None
) -> Reserved:
    """Hold money for a model call in every budget it counts in, or in none; one statement, outside of transactions."""
    return budget_reserve_each(billing_account, [asked], run_id=run_id)[0]


def budget_reserve_each(
    billing_account: BillingAccount, asked: Sequence[ReservationRequest], *, run_id: int | None = None
) -> list[Reserved]:
    """Hold money for several calls of one billing account, one after the other, in one statement; see ``budget_reserve``."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RESERVE,
            [
                [Decimal(f"{one.needed_usd:.8f}") for one in asked],
                [Decimal(f"{one.fair_usd:.8f}") for one in asked],
                [Decimal(f"{one.most_usd:.8f}") for one in asked],
                [one.is_priced for one in asked],
                [one.seconds for one in asked],
                billing_account.tenant_id,
                billing_account.user_id,
                billing_account.api_key_id,
                billing_account.assistant_id,
                billing_account.job_id,
                run_id,
            ],
        )
        rows = cursor.fetchall()
    return [
        Reserved(
            hold,
            float(granted),
            must_tell,
            Refusal(why, kind or "", period or "", starts_at, amount, left) if why else None,
        )
        for hold, granted, must_tell, why, kind, period, starts_at, amount, left, _ in rows
    ]


def budget_require(billing_account: BillingAccount) -> None:
    """Refuse what would begin although nothing is left for it; one statement (two in a new period), reserves nothing.

    Raises:
        BudgetExceeded: a budget is spent to the last hundredth.
    """
    whose = [
        billing_account.tenant_id,
        billing_account.user_id,
        billing_account.api_key_id,
        billing_account.assistant_id,
        billing_account.job_id,
    ]
    with connection.cursor() as cursor:
        cursor.execute(_SPENT, whose)
        row = cursor.fetchone()
        if row is not None and row[0]:
            cursor.execute(_SPENT, whose)
            row = cursor.fetchone()
    if row is not None:
        raise BudgetExceeded(Refusal("spent", *row[1:]))


def holds_release(*holds: int) -> None:
    """Give back what was held for calls that cost nothing; harmless for holds that are settled."""
    if holds:
        BudgetHold.objects.filter(pk__in=holds).delete()


def run_holds_release(run_id: int) -> None:
    """Give back what an ended or interrupted run still holds."""
    BudgetHold.objects.filter(run_id=run_id).delete()


def budget_named(kind: str, amount_usd: Decimal, period: str, starts_at: datetime.datetime | None) -> str:
    """Name a budget in a sentence: ``The workspace's budget of $20 for November``."""
    time = _time(period, starts_at)
    if not time:
        return _NAMED[kind] % {"amount": dollars(amount_usd)}
    return _NAMED_FOR[kind] % {"amount": dollars(amount_usd), "time": time}


def way_out(kind: str, period: str, starts_at: datetime.datetime | None) -> list[str]:
    """Return when a budget begins anew and who can raise it, a sentence each; none for that of a job."""
    if kind == "job":
        return []
    anew = budget_resets(period, starts_at)
    raised = _("An owner can raise it under Settings > Budgets.")
    if anew is None:
        return [raised]
    again = _("It starts again on %(day)s (UTC).") % {"day": _day(anew)}
    return [again, raised]


def _time(period: str, starts_at: datetime.datetime | None) -> str:
    if starts_at is None or period == "total":
        return ""
    day = starts_at.astimezone(datetime.UTC)
    return formats.date_format(day, "F") if period == "month" else _day(day)


def _day(moment: datetime.datetime) -> str:
    # Translators: Django's format of a day and its month, such as "3 November".
    return formats.date_format(moment, pgettext("day and month", "j F"))
