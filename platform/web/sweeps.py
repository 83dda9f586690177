"""What the edge has the sweeper do from time to time."""

from __future__ import annotations

from tenancy.idempotency import answers_expire
from tenancy.services.connections import tokens_expire
from web.windows import windows_expire
from webhooks.services import deliveries_expire


def old_rows_sweep() -> int:
    """Forget answers to idempotent writes, deliveries of webhooks, OAuth tokens and counts whose time is over."""
    return answers_expire() + deliveries_expire() + tokens_expire() + windows_expire()
