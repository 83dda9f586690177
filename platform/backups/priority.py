"""Let a backup take what processor time nobody else wants: people search and chat while it is written.

Linux gives a thread, and a process of the database's server on this machine, a niceness of its own. Elsewhere, and for a
server on another machine or of another user, nothing is changed: that is no reason to write no backup.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Any, Final

import psutil
import psycopg
from django.conf import settings

_LOCAL: Final = frozenset({"", "localhost", "127.0.0.1", "::1"})


def thread_yield() -> None:
    """Lower the priority of the calling thread, and of threads and processes that it starts, for as long as it lives.

    Nothing raises it again, which takes rights that a server shouldn't have: threads and commands that call it do nothing
    else.
    """
    if settings.BACKUP_NICE:
        _lower(threading.get_native_id(), settings.BACKUP_NICE)


def session_follow(line: psycopg.Connection[Any]) -> None:
    """Give a session's process in the database's server the priority of the calling thread, where that is lower.

    It does where the server is on this machine and its processes are ours.

    Args:
        line: a session of its own, so that the priority ends with it.
    """
    host = line.info.host
    if sys.platform != "linux" or (host not in _LOCAL and not host.startswith("/")):
        return
    niceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    # Behind a port that leads elsewhere, or in a container, the number may be another program's.
    with suppress(psutil.Error):
        if niceness > 0 and psutil.Process(line.info.backend_pid).name() == "postgres":
            _lower(line.info.backend_pid, niceness)


def _lower(number: int, niceness: int) -> None:
    if sys.platform != "linux":
        return
    with suppress(PermissionError, ProcessLookupError):
        if os.getpriority(os.PRIO_PROCESS, number) < niceness:
            os.setpriority(os.PRIO_PROCESS, number, niceness)
