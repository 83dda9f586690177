"""What the edge has the sweeper do from time to time."""

from __future__ import annotations

import time

from tenancy.idempotency import answers_expire
from tenancy.services.connections import tokens_expire
from webhooks.services import deliveries_expire

EVERY_S = 300.0
_next = 0.0


def old_rows_sweep() -> int:
    """Forget answers to idempotent writes, deliveries of webhooks and OAuth tokens whose time is over.

    Each process looks every five minutes only.
    """
    global _next
    now = time.monotonic()
    if now < _next:
        return 0
    _next = now + EVERY_S
    return answers_expire() + deliveries_expire() + tokens_expire()
