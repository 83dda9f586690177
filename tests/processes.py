"""End processes as an out-of-memory killer does."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil

from config import processes
from tests.servers import wait_for

_LISTED = Path("/proc/thread-self/children")
"""Where Linux lists children."""
RUN = "TEST_RUN_PID"
"""Environment variable with the pid of the process that hands out the work; all that a run starts inherits it."""


def kill_hard(pid: int) -> None:
    """kill -9, and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid), f"the end of process {pid}")


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended (its parent need not have noticed)."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def below(pid: int) -> Iterator[int]:
    """Yield the processes that one has started, and those that these have: those of them that run now.

    For who asks many times a second. psutil's ``children`` reads the table of all processes, 10 to 25 ms each time.
    """
    if not _LISTED.exists():
        yield from (process.pid for process in psutil.Process(pid).children(recursive=True))
        return
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        for thread in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, thread.read_text().split()):
                yield child
                yield from below(child)


def end_the_rest(run: int) -> list[str]:
    """End what a run started and has left behind; return their command lines, cut at 200 characters."""
    rest = []
    for process in psutil.process_iter():
        # Gone meanwhile, or not ours to look into: no process of this run.
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            if process.pid != os.getpid() and process.environ().get(RUN) == str(run):
                rest.append((process, " ".join(process.cmdline())[:200]))
    processes.end([process for process, _ in rest], grace_s=2.0)
    return [words for _, words in rest]
