"""What the edge has the sweeper do from time to time."""

from __future__ import annotations

from tenancy.idempotency import answers_expire
from tenancy.lagging import marks_expire
from tenancy.services.connections import tokens_expire
from web.shared_cache import values_expire
from web.windows import windows_expire
from webhooks.services import rotations_end


def old_rows_sweep() -> int:
    """Forget what is over: answers to idempotent writes, OAuth tokens, counts, cached values, marks of writes, secrets."""
    old = answers_expire() + tokens_expire() + windows_expire() + values_expire()
    return old + marks_expire() + rotations_end()
