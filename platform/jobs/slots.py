"""The slots of the cpu lane on this machine: how many jobs it works on at once, and one slot for small ones alone.

A slot is a lock that the kernel frees when the process dies, however it dies. Regular slots are one fewer than the
worker processes and are held by their main threads, so that one process always takes chat runs. The slot for small jobs
is held by a thread of its own beside them, so that a small file neither waits for a large one nor keeps chat waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from django.db import connections

from jobs.queue import ProcessLock

log = structlog.get_logger(__name__)
JOIN_S = 10.0

# Set by the worker command before it forks; without it there is nothing to share.
_regular: list[ProcessLock] | None = None
_small: ProcessLock | None = None

_guard = threading.Lock()  # a record lock does not exclude threads of one process
_thread: threading.Thread | None = None


def install(processes: int) -> None:
    """Make the slots of a worker command with so many processes; before it forks."""
    global _regular, _small
    _regular = [ProcessLock() for _ in range(max(1, processes - 1))]
    _small = ProcessLock()


@contextmanager
def regular() -> Iterator[bool]:
    """Hold one of the regular slots; yields False when all are taken."""
    if _regular is None:
        yield True
        return
    for slot in _regular:
        if slot.acquire(block=False):
            try:
                yield True
            finally:
                slot.release()
            return
    yield False


def small_start(work: Callable[[], None], is_wanted: Callable[[], bool]) -> None:
    """Have a thread of this process do ``work`` in the slot for small jobs, unless somebody holds that.

    Args:
        is_wanted: asked after the slot was given back, because whoever came just before found it taken.
    """
    global _thread
    if _small is None:
        return
    with _guard:
        if _thread is not None and _thread.is_alive():
            return
        if not _small.acquire(block=False):
            return
        _thread = threading.Thread(
            target=_hold, args=(work, is_wanted, _small), name="small-slot", daemon=True
        )
        _thread.start()


def _hold(work: Callable[[], None], is_wanted: Callable[[], bool], slot: ProcessLock) -> None:
    global _thread
    try:
        while True:
            work()
            with _guard:
                slot.release()
                if not is_wanted() or not slot.acquire(block=False):
                    _thread = None
                    return
    except Exception:  # the next entry starts it again
        log.exception("small_slot_failed")
        with _guard:
            _thread = None
            slot.release()
    finally:
        connections.close_all()


def small_join() -> None:
    """Wait for the thread of the slot for small jobs; as the process exits."""
    thread = _thread
    if thread is not None:
        thread.join(JOIN_S)
