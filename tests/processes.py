"""End processes as an out-of-memory killer does."""

from __future__ import annotations

import contextlib
import os
import signal

import psutil

from config import processes
from tests.servers import wait_for

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
