"""Which processes are ours: proved, never guessed from a pid alone.

A pid says nothing: it is reused, and a zombie still answers to ``kill(pid, 0)``. A process counts as ours when it carries
our mark in its environment (children inherit it), or when it is a Postgres whose working directory is our data directory.
Nothing else is ever signalled.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

MARK = "_GROUNDWORK_MARK"
"""Environment variable that says which supervised group a process belongs to (``<group>/<service>/<number>``)."""

_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess, OSError)


def marked(prefix: str) -> list[psutil.Process]:
    """Return the living processes whose mark is ``prefix`` or lies below it (``prefix/...``), without this one."""
    found = []
    for process in _others():
        with contextlib.suppress(*_GONE):
            mark = process.environ().get(MARK, "")
            if mark == prefix or mark.startswith(prefix + "/"):
                found.append(process)
    return found


def postgres_on(pgdata: Path) -> list[psutil.Process]:
    """Return the Postgres processes that work in this data directory, the postmaster first.

    Every Postgres process sits in its data directory, so the kernel's ``cwd`` is the proof; a reused pid fails it, and a
    zombie has none.
    """
    directory = os.path.realpath(pgdata)
    found = []
    for process in _others():
        with contextlib.suppress(*_GONE):
            if process.name().startswith("postgres") and process.cwd() == directory:
                found.append(process)
    pids = {process.pid for process in found}

    def is_child(process: psutil.Process) -> bool:
        with contextlib.suppress(*_GONE):
            return process.ppid() in pids
        return True

    return sorted(found, key=is_child)


def end(processes: Iterable[psutil.Process], *, grace_s: float) -> int:
    """Ask processes to end with SIGTERM, kill those left after ``grace_s`` seconds; return how many there were.

    psutil compares pid and start time before each signal, so a pid reused meanwhile is never hit.
    """
    remaining = list(processes)
    count = len(remaining)
    for signum, patience in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        for process in remaining:
            with contextlib.suppress(*_GONE):
                process.send_signal(signum)
        remaining = wait_gone(remaining, patience)
        if not remaining:
            break
    return count


def wait_gone(processes: list[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Wait until the processes have ended (a zombie has) and return those that have not after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while processes := [process for process in processes if is_alive(process)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return processes


def is_alive(process: psutil.Process) -> bool:
    """Say whether the very process (pid and start time) runs; a zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except _GONE:
        return False


def _others() -> Iterator[psutil.Process]:
    own = os.getpid()
    for process in psutil.process_iter():
        if process.pid != own:
            yield process
