"""Which kinds of job exist and what runs them. Modules named ``tasks`` register theirs (``kinds_load``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import structlog
from django.apps import apps
from django.db import Error
from django.utils.module_loading import autodiscover_modules

if TYPE_CHECKING:
    from jobs.models import Job
    from tenancy.actors import Actor
    from tenancy.models import Tenant

log = structlog.get_logger(__name__)
Lane = Literal["cpu", "loop", "scan"]
MAX_DEATHS = 3
F = TypeVar("F", bound=Callable[..., Any])
Retry = Callable[["Tenant", "Actor", "Job"], object]


class ExpectedFailure(Exception):
    """What an attempt of a job may end with though nothing here is broken: the log has one line for it, and no traceback."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job.

    Attributes:
        lane: ``cpu`` runs in the worker process's main thread, few at a time; ``loop`` is a coroutine on the process's
            event loop, many at a time; ``scan`` runs one at a time on each machine, in a thread that mostly waits for a
            child process of the lowest priority.
        max_attempts: most errors in all, the last one included.
        max_deaths: so many workers may die in a row in the same step, which is then taken to be what kills them. A kind
            whose job carries many steps at once cannot tell which of them it is, and allows more.
        on_end: called inside the transaction that ends a job without success (failed or cancelled), also when the
            worker is dead and the sweeper ends it, so that the application's own row ends with it.
        on_retry: makes a new job of a failed one and brings the application's own row back, in the current transaction.
            A kind with ``on_end`` and without it can't be retried from outside: its row has ended.
    """

    name: str
    handler: Callable[..., Any]
    lane: Lane
    max_attempts: int
    max_deaths: int
    on_end: Callable[[Job], None] | None
    on_retry: Retry | None = None

    @property
    def is_retryable(self) -> bool:
        """Whether ``job_retry`` can do something with a failed job of this kind."""
        return self.on_end is None or self.on_retry is not None


_kinds: dict[str, JobKind] = {}


def job(
    name: str,
    *,
    lane: Lane = "cpu",
    max_attempts: int = 3,
    max_deaths: int | None = None,
    on_end: Callable[[Job], None] | None = None,
    on_retry: Retry | None = None,
) -> Callable[[F], F]:
    """Register the decorated function as what runs jobs of this kind.

    It is called as ``handler(ctx, **payload)`` inside the job's tenant scope and must be safe to run again.

    Raises:
        ValueError: the name is taken by another function.
    """

    def register(handler: F) -> F:
        known = _kinds.get(name)
        if known is not None and known.handler is not handler:
            raise ValueError(f"job kind {name!r} is registered twice")
        deaths = min(max_attempts, MAX_DEATHS) if max_deaths is None else max_deaths
        _kinds[name] = JobKind(name, handler, lane, max_attempts, deaths, on_end, on_retry)
        return handler

    return register


@cache
def kinds_load() -> None:
    """Import the modules named ``tasks`` at the top of all apps and in their rooms, which register their kinds.

    Web server and worker do so before anything waits for them. Commands that know no jobs start without.
    """
    autodiscover_modules("tasks")
    for config in apps.get_app_configs():
        for path in sorted(Path(config.path).glob("*/tasks.py")):
            import_module(f"{config.name}.{path.parent.name}.tasks")


_before_fork: list[Callable[[], None]] = []


def before_fork(hook: Callable[[], None]) -> None:
    """Have the worker command call this once before it forks its processes.

    For imports that all of them would make: done once, their memory is shared and no first job waits for them. A hook
    must open no connection and start no thread.
    """
    if hook not in _before_fork:
        _before_fork.append(hook)


def run_before_fork() -> None:
    """Load the kinds of jobs, then call the hooks in the order in which they came."""
    kinds_load()
    for hook in _before_fork:
        hook()


_after_start: list[Callable[[], None]] = []


def after_start(hook: Callable[[], None]) -> None:
    """Have the worker command call this once in its own process, when those that do its jobs were forked.

    For threads that repeat something beside the sweeper, which must not wait for a network.
    """
    if hook not in _after_start:
        _after_start.append(hook)


def run_after_start() -> None:
    """Call the hooks in the order in which they came."""
    for hook in _after_start:
        hook()


@dataclass
class _Sweep:
    every_s: float
    batch: float
    due: float = 0.0  # by the clock of this process


_sweeps: dict[Callable[[], int], _Sweep] = {}


def on_sweep(hook: Callable[[], int], *, every_s: float = 0.0, batch: float = inf) -> None:
    """Have the sweeper call this every few seconds; it brings on what waits for a time, and says how many that were.

    It must be safe in several processes at once, and cheap when there is nothing to do.

    Args:
        every_s: seconds that each process lets pass from one call to the next; the first comes with its start.
        batch: one that has brought on so many has more to do, and is called again in the next round.
    """
    _sweeps.setdefault(hook, _Sweep(every_s, batch))


def run_sweeps() -> int:
    """Call the hooks that are due; returns how many things they brought on.

    One that fails is logged by its name and keeps no other from running; it is called again when it is due.

    Raises:
        django.db.Error: the database failed, whose connection the caller then closes.
    """
    found = 0
    for hook, sweep in _sweeps.items():
        now = monotonic()
        if now < sweep.due:
            continue
        sweep.due = now + sweep.every_s
        try:
            count = hook()
        except Error:
            raise
        except Exception:  # a worker whose one hook fails still brings on all the rest
            log.exception("sweep_failed", hook=getattr(hook, "__qualname__", repr(hook)))
            continue
        if count >= sweep.batch:
            sweep.due = now
        found += count
    return found


_before_exit: list[Callable[[], Awaitable[None]]] = []


def before_exit(hook: Callable[[], Awaitable[None]]) -> None:
    """Have a worker process await this on its event loop before it exits, when its jobs have stopped."""
    if hook not in _before_exit:
        _before_exit.append(hook)


async def run_before_exit() -> None:
    """Await the hooks in the order in which they came; one that fails is logged and keeps no other from running."""
    for hook in _before_exit:
        try:
            await hook()
        except Exception:  # the process ends whatever happens
            log.exception("exit_hook_failed", hook=getattr(hook, "__qualname__", repr(hook)))


def get(name: str) -> JobKind:
    """Return the kind. Raises LookupError for a name nothing registers (an app removed, a worker out of date)."""
    kinds_load()
    try:
        return _kinds[name]
    except KeyError:
        raise LookupError(f"no code on this machine runs jobs of kind {name!r}") from None
