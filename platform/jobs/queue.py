"""The queue between a cluster's processes: nothing in it waits for, or is broken by, a process that was killed.

``multiprocessing.Queue`` is a pipe and three semaphores. A reader that is killed (kill -9, out of memory) keeps the
semaphore it waits in, and every other worker hangs; one killed between the length of a message and its bytes leaves
the pipe out of step, and whoever reads next takes bytes for a length. Here a message is one datagram, which the kernel
hands to one reader whole or not at all; what is left to exclude is held by record locks, which die with their holder.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import multiprocessing
import os
import pickle
import select
import signal
import socket
import struct
import tempfile
import time
from types import TracebackType
from typing import Any, ClassVar, Protocol

from django_q import cluster

STOP = "STOP"  # what django-q2 puts for "no more", once for each reader


class ProcessLock:
    """A lock between processes that share it by fork; freed by the kernel when the holder dies.

    It does not exclude threads of one process from each other: of each that takes it, one thread does.
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


class SurvivingQueue:
    """What django-q2 uses of a ``multiprocessing.Queue``, over a pair of datagram sockets that processes share by fork.

    Messages are numbered, and readers note the number of what they took: the difference is how many wait. A reader
    killed before it has noted one is made good by the next; a queue that has nothing to read always takes more.

    Args:
        maxsize: most messages that may wait before ``put`` blocks; 0: as many as the kernel holds.
    """

    _INLINE = 1_800  # bytes in the datagram itself; the systems with the smallest hold 2,048
    # How soon a full queue sees that it has room, at first; then twice as late each time, up to the second.
    _LOOK_S, _LOOK_MOST_S = 0.0005, 0.05
    _WAKE_S = 1.0  # how soon a reader sees a stop whose message did not reach it

    def __init__(self, maxsize: int = 0) -> None:
        self._inlet, self._outlet = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        # Waited for in the kernel, which wakes one reader for a message; a timeout of Python's would wake all.
        whole, part = int(self._WAKE_S), int(self._WAKE_S % 1 * 1e6)
        self._outlet.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", whole, part))
        self._limit = maxsize
        self._writing = ProcessLock()
        shared = multiprocessing.get_context("fork")
        self._sent, self._taken = shared.RawValue("q", 0), shared.RawValue("q", 0)
        self._is_stopped = SharedFlag()

    def put(self, message: Any) -> None:
        """Add a message; block while the queue is full. ``STOP`` never blocks, and reaches every reader.

        Raises:
            OSError: a large message could not be written to a temporary file.
        """
        if message == STOP:
            self._is_stopped.set()
            with contextlib.suppress(OSError):  # Full: readers that find nothing more look at the flag.
                self._inlet.send(pickle.dumps((0, STOP)), socket.MSG_DONTWAIT)
            return
        data = pickle.dumps(message)
        look_s = self._LOOK_S
        while 0 < self._limit <= self.qsize():
            time.sleep(look_s)
            look_s = min(2 * look_s, self._LOOK_MOST_S)
        with self._writing:
            number = self._sent.value = self._sent.value + 1
            if len(data) <= self._INLINE:
                self._send(pickle.dumps((number, data)), [])
                return
            with tempfile.TemporaryFile() as file:
                file.write(data)
                file.flush()
                self._send(pickle.dumps((number, None)), [file.fileno()])

    def get(self) -> Any:
        """Take the oldest message, waiting for one; ``STOP`` when there are no more and none will come."""
        while True:
            try:
                # Room for one descriptor: a message has no more.
                head, files, _, _ = socket.recv_fds(self._outlet, 2 * self._INLINE, 1)
            except BlockingIOError:  # nothing came for so long
                if self._is_stopped.is_set():
                    return STOP
                continue
            number, data = pickle.loads(head)  # noqa: S301 - from a process of this cluster, over no network
            if data == STOP:
                return STOP
            self._taken.value = max(self._taken.value, number)
            if files:
                with os.fdopen(files[0], "rb") as file:
                    file.seek(0)
                    data = file.read()
            return pickle.loads(data)  # noqa: S301 - likewise

    def qsize(self) -> int:
        """Return how many messages wait."""
        return 0 if self.empty() else max(1, self._sent.value - self._taken.value)

    def empty(self) -> bool:
        """Tell whether nothing waits."""
        return not select.select([self._outlet], [], [], 0)[0]

    def close(self) -> None:
        """Do nothing: messages have left this process when ``put`` returns, and readers may still be at work."""

    def join_thread(self) -> None:
        """Do nothing: there is no thread."""

    def _send(self, head: bytes, files: list[int]) -> None:
        with_files = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        while True:
            try:
                self._inlet.sendmsg([head], with_files)
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # How macOS says that it is full; Linux waits.
                    raise
                time.sleep(self._LOOK_S)
            else:
                return


class SharedNumber:
    """What django-q2 uses of ``multiprocessing.Value``: a number in shared memory, its lock one that dies with its holder.

    A worker holds that lock while it hands in a result. Killed there, a semaphore of it would hang the sentinel, which
    then starts no process any more.
    """

    def __init__(self, typecode: str, value: float) -> None:
        self._number: Any = multiprocessing.get_context("fork").RawValue(typecode, value)
        self._lock = ProcessLock()

    @property
    def value(self) -> float:
        """The number, as any of the processes set it last."""
        return float(self._number.value)

    @value.setter
    def value(self, value: float) -> None:
        self._number.value = value

    def get_lock(self) -> ProcessLock:
        """Return the lock to be held around reading and setting it in one go."""
        return self._lock


class SharedFlag:
    """An event that forked processes share; unlike ``multiprocessing.Event`` no dead waiter can make ``set`` hang.

    Whoever waits does so in the kernel, for a byte in a pipe that nobody takes out: it wakes all of them. Polling the flag
    cost an idle worker a fifth of its processor time.
    """

    _LOOK_S = 1.0  # how soon a waiter sees a flag whose raiser died before the byte was written

    def __init__(self) -> None:
        shared = multiprocessing.get_context("fork")
        self._byte = shared.RawValue("b", 0)
        self._outlet, self._inlet = shared.Pipe(duplex=False)

    def set(self) -> None:
        """Raise the flag, for good."""
        if not self._byte.value:  # again and again would fill the pipe
            self._byte.value = 1
            self._inlet.send_bytes(b"")

    def is_set(self) -> bool:
        """Tell whether it was raised."""
        return bool(self._byte.value)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is raised, or ``timeout`` seconds; tell whether it is."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = self._LOOK_S if until is None else until - time.monotonic()
            if left <= 0:
                return False
            self._outlet.poll(min(left, self._LOOK_S))
        return True


class Ends(Protocol):
    """The queues of a cluster and what works at their other ends, outside of the sentinel; see ``jobs.ends``."""

    tasks: SurvivingQueue
    results: SurvivingQueue
    closing: SharedFlag
    pusher: Any
    monitor: Any


class PatientSentinel(cluster.Sentinel):  # type: ignore[misc]
    """A sentinel that leaves an orderly stop to its parent, and the ends of the queue too.

    A service manager sends SIGTERM to the whole group; django-q2's sentinel would die of it at once, and its workers
    with it, in mid-job.
    """

    ends: ClassVar[Ends]

    def start(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.task_queue, self.result_queue = self.ends.tasks, self.ends.results
        self.event_out = self.ends.closing
        super().start()

    def spawn_pusher(self) -> Any:
        return self.ends.pusher

    def spawn_monitor(self) -> Any:
        return self.ends.monitor


def install(ends: Ends) -> None:
    """Make the cluster of this process use these classes; django-q2 has no setting for them."""
    PatientSentinel.ends = ends
    cluster.Queue = SurvivingQueue
    cluster.Value = SharedNumber
    cluster.Event = SharedFlag
    cluster.Sentinel = PatientSentinel
