"""What a process counts for its operator: the instruments behind ``/metrics``, each with the few values its labels may have.

The text that Prometheus reads: https://prometheus.io/docs/instrumenting/exposition_formats/. A label never holds what people
wrote, a workspace's name or a secret: callers pass names from code, and ``bounded`` makes "other" of the rest. Processes
that are forked from one that calls ``share_with_forks`` first count into files, which any of them reads as one.
"""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

logger = logging.getLogger(__name__)

PREFIX: Final = "groundwork_"
OTHER: Final = "other"
MOST_SERIES: Final = 2000
"""Label sets of one instrument; those that come later count under "other", so that no mistake fills a disk."""

_SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"
_FOLDER: Final = "groundwork-metrics-"
_LOCK: Final = "in-use"
_all: list[Instrument] = []
_is_told = False


class Instrument:
    """A metric that is made when it is first used, so that ``share_with_forks`` can come before.

    Args:
        name: without the prefix, with its unit at the end.
        help: what it counts, for people.
        labels: names of its labels, in the order in which values are given.
        kept: labels with a handful of values, which are told even past ``MOST_SERIES``: alerts read them.
    """

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 - Prometheus's own word
        labels: Sequence[str] = (),
        *,
        kept: Collection[str] = (),
    ) -> None:
        self.name, self.help, self.labels = PREFIX + name, help, tuple(labels)
        self._is_kept = tuple(label in kept for label in self.labels)
        self._family: Any = None
        self._children: dict[tuple[str, ...], Any] = {}
        _all.append(self)

    def _make(self) -> Any:
        raise NotImplementedError

    @property
    def is_made(self) -> bool:
        """Whether it has been used."""
        return self._family is not None

    def family(self) -> Any:
        """Return Prometheus's object, made once."""
        if self._family is None:
            self._family = self._make()
        return self._family

    def _child(self, values: tuple[str, ...]) -> Any:
        found = self._children.get(values)
        if found is None:
            if len(self._children) >= MOST_SERIES:
                values = tuple(
                    v if is_kept else OTHER for v, is_kept in zip(values, self._is_kept, strict=True)
                )
            found = self.family().labels(*values) if values else self.family()
            self._children[values] = found
        return found


class Counter(Instrument):
    """A number that only grows; Prometheus reads it with ``_total`` at its end."""

    def _make(self) -> Any:
        from prometheus_client import Counter as Made

        return Made(self.name, self.help, self.labels, registry=_registry())

    def add(self, *values: str, amount: float = 1.0) -> None:
        """Count.

        Args:
            values: of the labels, in their order.
            amount: 0 or more.
        """
        try:
            self._child(values).inc(amount)
        except OSError as error:
            _not_counted(error)


class Gauge(Instrument):
    """A number that rises and falls; over processes that share, the sum of those that live."""

    def _make(self) -> Any:
        from prometheus_client import Gauge as Made

        return Made(self.name, self.help, self.labels, registry=_registry(), multiprocess_mode="livesum")

    def change(self, *values: str, by: float) -> None:
        """Add to it, or take away."""
        try:
            self._child(values).inc(by)
        except OSError as error:
            _not_counted(error)


class Timer(Instrument):
    """How long something took, in seconds: a count, a sum, and how many took no longer than each bound.

    Args:
        bounds: in seconds, rising; each is a series for every label set.
    """

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002
        labels: Sequence[str] = (),
        *,
        bounds: Sequence[float],
        kept: Collection[str] = (),
    ) -> None:
        super().__init__(name, help, labels, kept=kept)
        self.bounds = tuple(bounds)

    def _make(self) -> Any:
        from prometheus_client import Histogram as Made

        return Made(self.name, self.help, self.labels, buckets=self.bounds, registry=_registry())

    def observe(self, *values: str, seconds: float) -> None:
        """Note one that has ended."""
        try:
            self._child(values).observe(seconds)
        except OSError as error:
            _not_counted(error)


def bounded(value: str, known: Collection[str]) -> str:
    """Return a value that is among the known ones, otherwise "other"."""
    return value if value in known else OTHER


def _not_counted(error: OSError) -> None:
    """Say once that the shared folder is gone or full: what would be counted goes on without its count."""
    global _is_told
    if not _is_told:
        _is_told = True
        logger.error("what this process does is not counted for /metrics: %s", error)


@cache
def _registry() -> CollectorRegistry:
    from prometheus_client import CollectorRegistry

    return CollectorRegistry()


def registry_fresh() -> CollectorRegistry:
    """Return a registry with what this process and those that share with it have counted; one for each answer."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.multiprocess import MultiProcessCollector

    found = CollectorRegistry()
    if is_shared():
        MultiProcessCollector(found)  # type: ignore[no-untyped-call]
    else:
        for instrument in _all:
            found.register(instrument.family())
    return found


def is_shared() -> bool:
    """Tell whether this process counts into files that others read too."""
    return _SHARED in os.environ


def instruments() -> list[Instrument]:
    """Return every instrument of this process's code."""
    return list(_all)


def share_with_forks() -> Path:
    """Have this process and those it forks from now on count into a folder; call it before anything is counted.

    Returns:
        The folder, which goes when this process ends. What a killed one has left goes with the next start.

    Raises:
        RuntimeError: something was counted before, in memory.
    """
    from prometheus_client import values

    if any(instrument.is_made for instrument in _all):
        raise RuntimeError("share_with_forks comes before the first count")
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        _remove_if_left(left)
    folder, owner = Path(tempfile.mkdtemp(prefix=_FOLDER)), os.getpid()
    # Held by this process and its forks, for as long as one of them lives.
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.environ[_SHARED] = str(folder)
    # The client chooses where it counts when it is imported, and django-q2 has imported it.
    values.ValueClass = values.get_value_class()  # type: ignore[no-untyped-call]

    def remove() -> None:
        if os.getpid() == owner:  # a fork inherits this
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    for instrument in _all:
        instrument.family()
    return folder


def _remove_if_left(folder: Path) -> None:
    """Remove a folder whose processes have all died."""
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:  # another user's, or just being made
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:  # in use
        return
    finally:
        os.close(lock)


HTTP_SECONDS = Timer(
    "http_request_seconds",
    "Seconds per request, by route and class of status (2xx, 4xx, ...); for a stream, until it begins.",
    ("route", "status"),
    bounds=(0.05, 0.25, 1.0, 5.0),
    kept=("status",),  # anyone can ask for each route, in ways that are refused, and fill the bound
)
STREAMS_OPEN = Gauge("streams_open", "Runs that are followed right now, by this process's clients.")
JOBS_ENDED = Counter("jobs_ended", "Background jobs that ended here.", ("kind", "outcome"))
JOBS_RETRIED = Counter("jobs_retried", "Attempts of jobs that raised an error and are made again.", ("kind",))
RUNS_ENDED = Counter("runs_ended", "Runs that ended here.", ("kind", "outcome"))
MODEL_SECONDS = Timer(
    "model_call_seconds",
    "Calls of language models by outcome: ok, or error, or stopped by whoever asked.",
    ("provider", "outcome"),
    bounds=(0.5, 2.0, 10.0, 60.0),
)
MODEL_TOKENS = Counter("model_tokens", "Tokens, as usage records have them.", ("provider", "model", "type"))
MODEL_COST = Counter("model_cost_usd", "Money for models, as far as prices are known.", ("provider", "model"))
BUDGET_REFUSALS = Counter("budget_refusals", "Model calls refused because a budget was used up.")
SEARCH_SECONDS = Timer(
    "search_leg_seconds",
    "Parts of searches: wait (for a place in a crowd), embed, database, rerank, expand.",
    ("leg",),
    bounds=(0.01, 0.05, 0.25, 1.0),
)
INGESTION_SECONDS = Timer(
    "ingestion_stage_seconds",
    "Work on documents by stage; a stage that is interrupted counts for each part.",
    ("stage",),
    bounds=(0.1, 1.0, 10.0, 60.0),
)
STORE_ERRORS = Counter("blob_store_errors", "Times that the store of files did not answer, or refused.")
