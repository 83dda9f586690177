"""The life of processes: tie one to its parent's, and tell for certain that one has died (Linux; elsewhere nothing)."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_parent(signum: int = signal.SIGKILL, parent: int | None = None) -> Callable[[], None] | None:
    """Return what a child calls to be sent ``signum`` when its parent dies, even by SIGKILL; None where unsupported.

    Meant for ``preexec_fn`` and ``os.register_at_fork``: the library is loaded before the fork, not after it. The tie is
    to the *thread* that forks: fork from a thread that lives as long as the child should. A change of user clears the
    tie; subprocess runs ``preexec_fn`` after it, so Popen's ``user=`` works as well.

    Args:
        parent: the parent's pid; by default whoever is the parent when the child calls it. Given, a child whose parent
            died before the tie was made ends at once.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
        if parent is not None and os.getppid() != parent:
            os._exit(1)

    return tie


def end_with_parent(signum: int = signal.SIGKILL, parent: int | None = None) -> None:
    """Have this very process sent ``signum`` when its parent dies; see ``die_with_parent``."""
    if tie := die_with_parent(signum, parent if parent is not None else os.getppid()):
        tie()


def process_mark(pid: int) -> str:
    """Return what tells a living process from all others that have its pid, at most 30 characters; "" where unsupported.

    The machine since it was started, its namespace of pids, and the moment the process began (field 22 of
    ``/proc/<pid>/stat``; see proc_pid_stat(5)).
    """
    place, found = _place(), _stat(pid)
    return f"{place}.{found[1]}" if place and found else ""


def process_is_dead(mark: str, pid: int) -> bool:
    """Tell whether the process with this pid and mark has died; False while that cannot be known from here."""
    place, _, began = mark.partition(".")
    if not place or place != _place():
        return False  # another machine's, or from before this one was started
    found = _stat(pid)
    if found is not None:
        return found[0] in "ZX" or found[1] != began
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # another user's, which /proc may hide
    return False


@functools.cache
def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    # Here, because the readers' processes import this module and do without: it loads OpenSSL.
    import hashlib

    return hashlib.sha256(f"{boot} {space}".encode()).hexdigest()[:12]


def _stat(pid: int) -> tuple[str, str] | None:
    """Return state and beginning (in clock ticks since the machine was started) of a process, None when it is not seen."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # its name may hold anything
    return fields[0], fields[19]
