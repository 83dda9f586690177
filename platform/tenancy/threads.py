"""Work that a process repeats in a thread of its own, so that a store that hangs holds up nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from django.db import DatabaseError, connection

log = structlog.get_logger(__name__)


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
                connection.close()  # back to the pool
        time.sleep(every_s)
