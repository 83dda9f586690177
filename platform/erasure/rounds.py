"""Look for erasures that are due, and for what came back, in a thread of the worker's own process."""

from __future__ import annotations

from erasure.services import erasures_round, ledger_round
from tenancy.threads import begin_thread

LOOK_S = 10.0
LEDGER_S = 3600.0


def rounds_start() -> None:
    """Look from now on, until this process ends; never before the process forks."""
    begin_thread(erasures_round, every_s=LOOK_S, name="erasures")
    begin_thread(ledger_round, every_s=LEDGER_S, name="erasure-ledger")
