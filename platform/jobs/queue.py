"""The queue between a cluster's processes, with locks that die with their holder.

``multiprocessing.Queue`` guards its pipe with semaphores. A worker that waits for work holds the reader's semaphore, so
one killed there (kill -9, out of memory) keeps it for ever and every other worker hangs. A POSIX record lock is the
kernel's: it is free again when its process is gone.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import signal
import tempfile
import time
from types import TracebackType
from typing import Any

from django_q import cluster
from django_q.queues import Queue


class ProcessLock:
    """A lock between processes that share it by fork; freed by the kernel when the holder dies.

    It does not exclude threads of one process from each other: a queue's reader and its feeder are one thread each.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the lock

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Take the lock; without ``block`` return False when another process holds it."""
        if timeout is not None:
            raise NotImplementedError("a cluster's queue never waits with a timeout")
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | (0 if block else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Give the lock back."""
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class SurvivingQueue(Queue):  # type: ignore[misc]
    """django-q2's queue, usable on after the death of any of its readers and writers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rlock = ProcessLock()
        self._wlock = ProcessLock()


class SharedFlag:
    """An event that forked processes share; unlike ``multiprocessing.Event`` no dead waiter can make ``set`` hang.

    Waiting polls a byte of shared memory: what waits here looks every half second anyway.
    """

    _POLL_S = 0.05

    def __init__(self) -> None:
        self._byte = multiprocessing.get_context("fork").RawValue("b", 0)

    def set(self) -> None:
        """Raise the flag, for good."""
        self._byte.value = 1

    def is_set(self) -> bool:
        """Tell whether it was raised."""
        return bool(self._byte.value)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is raised, or ``timeout`` seconds; tell whether it is."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = self._POLL_S if until is None else until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, self._POLL_S))
        return True


class PatientSentinel(cluster.Sentinel):  # type: ignore[misc]
    """A sentinel that leaves an orderly stop to its parent.

    A service manager sends SIGTERM to the whole group; django-q2's sentinel would die of it at once, and its workers
    with it, in mid-job.
    """

    def start(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # inherited by pusher and monitor
        super().start()


def install() -> None:
    """Make clusters of this process use these classes; django-q2 has no setting for them."""
    cluster.Queue = SurvivingQueue
    cluster.Event = SharedFlag
    cluster.Sentinel = PatientSentinel
