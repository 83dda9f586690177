"""The two ends of a cluster's queue, as threads of the worker command: entries in, and word of what was done out.

django-q2 has a process for each, which share nothing with its parent that they do not need: 6 MB of memory of their own and
a copy of all page tables, for what waits nearly always. They can't be threads of the sentinel, which forks new workers
whenever one has died: a fork copies the locks that other threads hold. The command forks nothing any more once they run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import structlog
from django.db import connections
from django_q.conf import Conf
from django_q.monitor import monitor
from django_q.pusher import pusher

from jobs.queue import SharedFlag, SurvivingQueue

log = structlog.get_logger(__name__)
AGAIN_S = 1.0


class End:
    """One end as the sentinel sees it: what it asks of a process of its own.

    Attributes:
        name: for the sentinel's log.
        pid: of the process whose thread it is.
    """

    def __init__(self, name: str) -> None:
        self.name, self.pid = name, os.getpid()
        self._ended = SharedFlag()

    def is_alive(self) -> bool:
        """Tell whether it goes on; it always does until it was told that no more comes."""
        return not self._ended.is_set()

    def start(self, work: Callable[[], bool]) -> None:
        """Do ``work`` in a thread of this process until it returns True; also again after it has failed."""
        threading.Thread(target=self._hold, args=(work,), name=self.name, daemon=True).start()

    def _hold(self, work: Callable[[], bool]) -> None:
        pause = threading.Event()
        while True:
            try:
                if work():
                    break
            except Exception:  # whatever it was: without this end nothing runs on this machine
                log.exception("queue_end_failed", end=self.name)
            connections.close_all()
            pause.wait(AGAIN_S)
        connections.close_all()
        self._ended.set()


class QueueEnds:
    """The queues of a cluster and their ends. Made by the command before it forks the sentinel; started after that.

    Attributes:
        tasks: entries for workers.
        results: what workers say of entries they are done with.
        closing: raised by the sentinel when no further entry is to be taken.
        pusher: takes entries from the broker.
        monitor: tells the broker what was done.
    """

    def __init__(self) -> None:
        self.tasks, self.results = SurvivingQueue(Conf.QUEUE_LIMIT or 0), SurvivingQueue()
        self.closing = SharedFlag()
        self.pusher, self.monitor = End("queue-pusher"), End("queue-monitor")

    def start(self) -> None:
        """Let entries in, and results out."""
        self.pusher.start(self._push)
        self.monitor.start(self._acknowledge)

    def _push(self) -> bool:
        pusher(self.tasks, self.closing)
        return self.closing.is_set()  # else its broker failed

    def _acknowledge(self) -> bool:
        monitor(self.results)
        return True
