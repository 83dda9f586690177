"""Tie a process's life to its parent's (Linux; elsewhere nothing happens)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def die_with_parent(
    signum: int = signal.SIGKILL, parent: int | None = None
) -> Callable[[], None] | None:
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
