"""A crowd at the search: who comes first is served first, as many at once as the processors can work on.

Twenty searches that run at the same moment share two cores in thin slices: each takes as long as all of them together.
One after the other, the first ones are done early and the last ones no later. So a search takes a place before it works,
and those without one wait in the order in which they came (a plain semaphore hands its places to whoever happens to run,
and starves the rest). The line has an end: who would stand behind it is told to come again.

A place is for the work of this machine. Nobody holds one while waiting for somebody's server: an embedder is asked
before, a reranker afterwards.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from django.conf import settings
from django.contrib.humanize.templatetags.humanize import intcomma

from basics.errors import DomainError
from basics.machine import cores
from basics.texts import gettext as _
from tenancy.database.waiting import connections_let_go, in_transaction

PER_CORE = 2
"""Searches at once for each core: while one is computed here, Postgres works on the other."""
WAITING_PER_PLACE = 32
"""How many may wait for each place: at 20 ms a search, the last one waits for two thirds of a second."""
RETRY_S = 1


class SearchBusy(DomainError):
    """More searches wait than can be answered soon."""

    default_status = 429

    def __init__(self, waiting: int) -> None:
        super().__init__(
            "search_busy",
            _("%(count)s other searches are waiting to run. Try again in %(seconds)s s.")
            % {"count": intcomma(waiting), "seconds": RETRY_S},
            data={"retry_after": RETRY_S},
        )


class Gate:
    """Places for searches of one process, given in the order in which they are asked for.

    Args:
        places: searches that work at once.
        most_waiting: searches that may wait for a place.
    """

    def __init__(self, places: int, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._free = places
        self._line: deque[threading.Event] = deque()
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(places, thread_name_prefix="search-embedding")

    @property
    def aside(self) -> Executor:
        """The threads that embed questions while the database is asked; as many as places, and kept."""
        return self._threads

    @property
    def waiting(self) -> int:
        """How many wait for a place now."""
        return len(self._line)

    @contextmanager
    def place(self, *, is_patient: bool = False) -> Iterator[None]:
        """Hold a place, waiting for it without a database connection.

        Whoever has a transaction open can't give its connection back and waits for none: those who hold a place need
        connections to finish.

        Args:
            is_patient: wait however long the line is, for work that nobody would ask for again.

        Raises:
            SearchBusy: the line is full.
        """
        if in_transaction():
            yield
            return
        self._take(is_patient=is_patient)
        try:
            yield
        finally:
            self._give()

    def _take(self, *, is_patient: bool) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            if not is_patient and len(self._line) >= self._most_waiting:
                raise SearchBusy(len(self._line))
            turn = threading.Event()
            self._line.append(turn)
        try:
            connections_let_go()
            turn.wait()
        except BaseException:
            with self._lock:
                if not turn.is_set():
                    self._line.remove(turn)
                    raise
            self._give()  # the place came in the same moment
            raise

    def _give(self) -> None:
        with self._lock:
            if self._line:
                self._line.popleft().set()  # from hand to hand: nobody who comes now gets it first
            else:
                self._free += 1


_gate: Gate | None = None
_gate_lock = threading.Lock()


def gate() -> Gate:
    """Return the gate of this process, made with its first search."""
    global _gate
    with _gate_lock:
        if _gate is None:
            places = settings.SEARCHES_AT_ONCE or PER_CORE * cores()
            _gate = Gate(places, WAITING_PER_PLACE * places)
        return _gate


def _fork_begin() -> None:
    """Forget the gate in a fork, which has none of the threads that hold its places."""
    global _gate, _gate_lock
    _gate, _gate_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_fork_begin)
