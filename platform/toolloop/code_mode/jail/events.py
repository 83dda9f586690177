"""``asyncio`` for programs: an event loop that waits for the host. Imports the standard library only, and its neighbours."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from toolloop.code_mode.jail.talk import Host

_monotonic = time.monotonic
_TURNS, _GLANCE_S = 20, 0.001


class _Loop(asyncio.BaseEventLoop):
    """An event loop whose only source of events is the host."""

    host: Host

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._turns = 0
        self._skipped = 0.0  # Of waits that a program which is run again need not repeat.

    def time(self) -> float:
        return _monotonic() + self._skipped

    def select(self, timeout: float | None) -> list[Any]:
        host = self.host
        if timeout is not None and timeout <= 0:
            # Something of the program's own is ready; now and then the host is asked all the same.
            self._turns += 1
            if not host.waiting or self._turns % _TURNS:
                return []
            timeout = _GLANCE_S
        frame = host.wait(timeout)
        if frame[0] == "answers":
            host.settle(frame)
        elif frame[0] == "skip" and timeout is not None:
            self._skipped += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        return None

    def _write_to_self(self) -> None:
        return None


class _Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return _Loop()


def loop_of(host: Host) -> None:
    """Let every event loop of this process wait for a host."""
    _Loop.host = host
    asyncio.set_event_loop_policy(_Policy())
