"""Pay for requests to models that no loop makes, such as embeddings."""

from __future__ import annotations

import time
from collections.abc import Callable

from budgets.ledger import BillingAccount, holds_release
from budgets.warnings import budgets_tell
from runs.models import UsageRecord
from runs.reservations import estimate_reserve
from runs.usage import usage_count
from tenancy.models import Tenant
from toolloop.providers.profiles import Prices, Profile
from toolloop.reservations import charged_usd, cost_estimate
from toolloop.tokens import Usage


def usage_record(
    *,
    tenant: Tenant,
    billing_account: BillingAccount,
    kind: str,
    provider: str,
    model: str,
    input_price: float | None,
    input_tokens: int,
    seconds: float,
) -> Callable[[int], None]:
    """Hold the money of a request that reads tokens and writes none; outside of transactions.

    Args:
        kind: what it is for; becomes ``UsageRecord.kind``.
        input_price: USD per million tokens, None when it is not known.
        input_tokens: by an estimate that is rather too high.
        seconds: it takes at most.

    Returns:
        What must be called with the tokens that were read when it has ended: it records them. 0 gives the money back.

    Raises:
        BudgetExceeded: there is none.
    """
    prices = () if input_price is None else (Prices(input_price, 0.0),)
    profile = Profile(prices=prices)
    quote = cost_estimate(
        profile, provider=provider, model=model, input_tokens=input_tokens, most_output=0, seconds=seconds
    )
    hold = estimate_reserve(billing_account, quote)
    began = time.monotonic()

    def record(tokens: int) -> None:
        if not tokens:
            holds_release(*([] if hold is None else [hold]))
            return
        usage = Usage(input_total=tokens, requests=1)
        cost = profile.cost_usd(usage)
        usage_count(provider, model, usage, cost)
        UsageRecord.objects.create(
            tenant=tenant,
            user_id=billing_account.user_id,
            kind=kind,
            provider=provider,
            model=model[:120],
            input_tokens=tokens,
            cost_usd=None if cost is None else f"{cost:.8f}",
            charged_usd=f"{charged_usd(usage, cost):.8f}",
            hold_id=hold,
            duration_ms=round((time.monotonic() - began) * 1000),
            attribution=billing_account.attribution,
        )
        if hold is not None:
            budgets_tell(tenant.pk)

    return record
