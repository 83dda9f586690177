"""End processes as an out-of-memory killer does."""

from __future__ import annotations

import os
import signal

import psutil

from tests.servers import wait_for


def kill_hard(pid: int) -> None:
    """kill -9, and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid), 10, f"the end of process {pid}")


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended (its parent need not have noticed)."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
