"""Work that a process repeats in a thread of its own, so that a store that hangs holds up nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from django.db import DatabaseError, connection

log = structlog.get_logger(__name__)

KEPT_S = 5.0
"""Rounds that come at least so often keep their connection: a new one costs the database more than what most rounds ask."""


def begin_thread(work: Callable[[], object], *, every_s: float, name: str) -> None:
    """Call something again and again until the process ends; what it raises is logged."""
    threading.Thread(target=_repeat, args=(work, every_s), name=name, daemon=True).start()


def _repeat(work: Callable[[], object], every_s: float) -> None:
    while True:
        try:
            work()
        except Exception:  # nobody is above to hear of it, and the next round may do better
            log.exception("round_failed", work=work.__name__)
        finally:
            with suppress(DatabaseError):
                _let_go(every_s)
        time.sleep(every_s)


def _let_go(every_s: float) -> None:
    """Give the round's connection back to the pool; without one, keep it for the next round if that is soon."""
    if every_s <= KEPT_S and "pool" not in connection.settings_dict["OPTIONS"]:
        connection.close_if_unusable_or_obsolete()
    else:
        connection.close()
