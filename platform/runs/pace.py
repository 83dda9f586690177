"""When streamed text is written: soon while few runs speak in a process, seldom and at the same moments while many do.

The moments are the same for all runs of a process, so that what they say is written together (``runs.recorder``), and
others in each process, so that not all processes write at once.
"""

from __future__ import annotations

import asyncio
import math
import os
import weakref
from collections.abc import Callable

FLUSH_S = 0.08
"""Seconds between two writes of a run's text while few runs speak."""
LOADED = ((16, 0.25), (8, 0.125))
"""(runs that speak, seconds between two writes) from the most on; each number of seconds is a multiple of those below."""
SPEAKS_S = 0.5
"""Most seconds between the words of a run that counts as one that speaks, and since the last of them."""
_COUNTED_S = 0.1


class Pace:
    """The moments of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._spoke: dict[int, tuple[float, bool]] = {}
        self._counted_at = 0.0
        self._every: float | None = None
        self._due: dict[float, list[Callable[[], None]]] = {}
        self._shift = LOADED[0][1] * (os.getpid() % 8) / 8

    @property
    def now(self) -> float:
        """Return the time of the loop's clock in seconds."""
        return self._loop.time()

    def spoken(self, run_id: int) -> None:
        """Note that a run has said something."""
        now = self._loop.time()
        last = self._spoke.get(run_id)
        # What says a word now and then has little to gather: waiting would only make it late.
        self._spoke[run_id] = now, last is not None and now - last[0] < SPEAKS_S
        if now - self._counted_at >= _COUNTED_S:
            self._spoke = {run: one for run, one in self._spoke.items() if now - one[0] < SPEAKS_S}
            self._counted_at = now
            speaking = sum(goes_on for _, goes_on in self._spoke.values())
            self._every = next((every for many, every in LOADED if speaking >= many), None)

    def next_after(self, written_at: float) -> float:
        """Return when a run that was last written at a time of the loop's clock is written again, on the same clock."""
        if self._every is None:
            return written_at + FLUSH_S
        earliest = max(self._loop.time(), written_at + self._every / 2)
        return (math.floor((earliest - self._shift) / self._every) + 1) * self._every + self._shift

    def call_at(self, due: float, callback: Callable[[], None]) -> None:
        """Call back at a time of the loop's clock, together with all others who wait for that moment."""
        waiting = self._due.get(due)
        if waiting is None:
            waiting = self._due[due] = []
            self._loop.call_at(due, self._ring, due)
        waiting.append(callback)

    def _ring(self, due: float) -> None:
        for callback in self._due.pop(due):
            callback()


_paces: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pace] = weakref.WeakKeyDictionary()


def pace_here() -> Pace:
    """Return the running event loop's pace."""
    loop = asyncio.get_running_loop()
    found = _paces.get(loop)
    if found is None:
        found = _paces[loop] = Pace(loop)
    return found
