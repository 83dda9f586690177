"""What ``/metrics`` reads from the database and the machine when it is asked: kept for some seconds, and never waited for long.

Each app registers what it reads of its own tables. The reading has a connection and a thread of its own: a full pool, a
server that hangs or one that is away must not keep the answer from saying so.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import psutil
import structlog
from django.conf import settings
from django.db import Error, connection

from basics.metrics import PREFIX
from tenancy.scope import platform_scope

log = structlog.get_logger(__name__)

KEPT_S: Final = 5.0
"""How long a reading is answered again: a scrape more costs nothing then."""
PATIENCE_S: Final = 5.0
"""How long an answer waits for the database."""
_STATEMENT_MS: Final = 2000


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a metric.

    Attributes:
        name: without the prefix, with its unit at the end.
        help: what it is, for people; the same in each figure of a metric.
        labels: names and values, the same names in each figure of a metric.
        kind: whether it only grows.
    """

    name: str
    help: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["gauge", "counter"] = "gauge"

    @property
    def full_name(self) -> str:
        """The name as Prometheus reads it."""
        return PREFIX + self.name


Read = Callable[[Any], Iterable[Figure]]
"""Asks a cursor that sees every workspace's rows, within two seconds; counts, ages and names of code come back."""


@dataclass
class _Reader:
    read: Read
    every_s: float
    due: float = 0.0  # by the clock of this process
    found: list[Figure] = field(default_factory=list)


_readers: dict[Read, _Reader] = {}


def reads_for_metrics(read: Read, *, every_s: float = KEPT_S) -> None:
    """Have ``/metrics`` ask this when it is asked, and again only after so many seconds."""
    _readers.setdefault(read, _Reader(read, every_s))


class Readings:
    """What was read last, and the thread that reads.

    Args:
        clock: seconds, from any start on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_at: float | None = None
        self._thread: threading.Thread | None = None
        self._found: list[Figure] = []

    def figures(self) -> list[Figure]:
        """Return what is known now; reads when what it has is older than ``KEPT_S``."""
        with self._lock:
            now = self._clock()
            if self._looked_at is None or now - self._looked_at >= KEPT_S:
                self._look()
                self._looked_at = self._clock()
            return [*self._found, *_of_pool(), *_of_machine()]

    def forget(self) -> None:
        """Read everything again when asked next."""
        with self._lock:
            self._looked_at = None
            for reader in _readers.values():
                reader.due = 0.0

    def _look(self) -> None:
        took: list[float] = []  # a thread that hangs fills its own, whenever that is
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._read, args=(took,), name="metrics-readings", daemon=True
            )
            self._thread.start()
        self._thread.join(PATIENCE_S)
        answered = list(took)
        self._found = [
            Figure("database_up", "Whether the database answered within five seconds.", len(answered))
        ]
        for seconds in answered:
            said = "How long what is read for /metrics took; nothing while the database is away."
            self._found.append(Figure("database_reading_seconds", said, seconds))
            self._found += [figure for reader in _readers.values() for figure in reader.found]

    def _read(self, took: list[float]) -> None:
        """Ask everything that is due; says how many seconds that took when the database has answered."""
        began = time.perf_counter()
        own = connection.copy()
        own.settings_dict["OPTIONS"].pop("pool", None)
        own.settings_dict["OPTIONS"].setdefault("connect_timeout", 4)
        try:
            with platform_scope():
                own.ensure_connection()
                own.set_autocommit(False)
                for reader in list(_readers.values()):
                    if reader.due <= (now := self._clock()):
                        reader.found = _asked(own, reader.read)
                        reader.due = now + reader.every_s
            took.append(time.perf_counter() - began)
        except Error as error:
            log.warning("metrics_not_read", error=type(error).__name__)
            for reader in _readers.values():
                reader.due = 0.0
        finally:
            own.close()


def _asked(own: Any, read: Read) -> list[Figure]:
    """Return what one reader finds; nothing when its own statement fails, while the others are asked."""
    try:
        with own.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {_STATEMENT_MS}")
            return list(read(cursor))
    except Error as error:
        if own.connection is None or own.connection.closed:
            raise
        log.warning("metrics_part_not_read", reader=read.__name__, error=type(error).__name__)
        return []
    finally:
        if own.connection is not None and not own.connection.closed:
            own.rollback()


readings = Readings()
"""Of this process."""


def database_read(cursor: Any) -> Iterator[Figure]:
    """Yield what the server says of itself: connections, and its clock against ours."""
    before = time.time()
    cursor.execute(
        "SELECT extract(epoch FROM clock_timestamp())::float, current_setting('max_connections')::int, "
        "(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())"
    )
    theirs, most, used = cursor.fetchone()
    middle = (before + time.time()) / 2
    yield Figure("database_connections", "Connections to this database, by all programs.", used)
    yield Figure("database_connections_most", "Connections that the server allows.", most)
    yield Figure(
        "database_clock_offset_seconds", "The database's clock, less this machine's.", theirs - middle
    )


reads_for_metrics(database_read)


def _of_pool() -> Iterator[Figure]:
    pool = getattr(connection, "pool", None)
    if pool is None:
        return
    stats = pool.get_stats()
    size, free = stats.get("pool_size", 0), stats.get("pool_available", 0)
    said = "Connections of this process's pool."
    yield Figure("database_pool_connections", said, size - free, {"state": "used"})
    yield Figure("database_pool_connections", said, free, {"state": "free"})
    waiting = stats.get("requests_waiting", 0)
    yield Figure("database_pool_waiting", "Requests that wait for a connection of the pool.", waiting)


def _of_machine() -> Iterator[Figure]:
    disk = shutil.disk_usage(settings.DATA_DIR)
    yield Figure("disk_free_bytes", "Free space where the data directory is.", disk.free)
    yield Figure("disk_size_bytes", "Size of the disk where the data directory is.", disk.total)
    seconds, memory, count = 0.0, 0, 0
    own = psutil.Process(os.getpid())
    for process in [own, *own.children(recursive=True)]:
        try:
            with process.oneshot():
                times = process.cpu_times()
                memory += process.memory_info().rss
        except psutil.Error:  # it has just ended
            continue
        count += 1
        seconds += times.user + times.system + times.children_user + times.children_system
    yield Figure("process_cpu_seconds", "Of this process and those below it.", seconds, kind="counter")
    said = "Resident memory of this process and those below it; what they share counts for each."
    yield Figure("process_memory_bytes", said, memory)
    yield Figure("processes", "This process and those below it.", count)
