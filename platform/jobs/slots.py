"""The slots of this machine: how many jobs of the cpu lane it works on at once, one for small ones alone, one for scans.

A slot is a lock that the kernel frees when the process dies, however it dies. Regular slots are one fewer than the
worker processes and are held by their main threads, so that one process always takes chat runs. A worker of one process
has its regular slot in a thread, and its main thread for chat runs. The other two are always held by threads: a small
file neither waits for a large one nor keeps chat waiting, and the pages of a scan, each of which takes seconds, wait for
nobody and hold nobody up.
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


class ThreadSlot:
    """A slot that one thread of one process of this machine holds while there is work for it.

    Args:
        name: of the thread.
        lock: shared by the processes; None (no worker command): the work is done by who asks.
    """

    def __init__(self, name: str, lock: ProcessLock | None = None) -> None:
        self._name, self._lock = name, lock
        self._guard = threading.Lock()  # a record lock does not exclude threads of one process
        self._thread: threading.Thread | None = None

    def start(self, work: Callable[[], None], is_wanted: Callable[[], bool]) -> None:
        """Have a thread of this process do ``work`` in the slot, unless somebody holds that.

        Args:
            is_wanted: asked after the slot was given back, because whoever came just before found it taken.
        """
        lock = self._lock
        if lock is None:
            work()
            return
        with self._guard:
            if self._thread is not None and self._thread.is_alive():
                return
            if not lock.acquire(block=False):
                return
            self._thread = threading.Thread(
                target=self._hold, args=(work, is_wanted, lock), name=self._name, daemon=True
            )
            self._thread.start()

    def join(self) -> None:
        """Wait for the thread that holds the slot; as the process exits."""
        thread = self._thread
        if thread is not None:
            thread.join(JOIN_S)

    def _hold(self, work: Callable[[], None], is_wanted: Callable[[], bool], lock: ProcessLock) -> None:
        try:
            while True:
                work()
                with self._guard:
                    lock.release()
                    if not is_wanted() or not lock.acquire(block=False):
                        self._thread = None
                        return
        except Exception:  # the next entry starts it again
            log.exception("slot_failed", slot=self._name)
            with self._guard:
                self._thread = None
                lock.release()
        finally:
            connections.close_all()


# Set by the worker command before it forks; without it there is nothing to share.
_regular: list[ProcessLock] | None = None
single: ThreadSlot | None = None
"""The regular slot of a worker of one process, None where main threads hold the regular ones."""
small = ThreadSlot("small-slot")
scans = ThreadSlot("scan-slot")


def install(processes: int) -> None:
    """Make the slots of a worker command with so many processes; before it forks."""
    global _regular, single, small, scans
    _regular = [ProcessLock() for _ in range(processes - 1)]
    single = ThreadSlot("regular-slot", ProcessLock()) if processes == 1 else None
    small = ThreadSlot("small-slot", ProcessLock())
    scans = ThreadSlot("scan-slot", ProcessLock())


def join() -> None:
    """Wait for the threads of this process that hold slots; as it exits."""
    for slot in (single, small, scans):
        if slot is not None:
            slot.join()


@contextmanager
def regular() -> Iterator[bool]:
    """Hold one of the regular slots of main threads; yields False when all are taken."""
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
