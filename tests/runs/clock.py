"""An event loop's clock that a test turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Clock:
    """Stands in for an event loop where only its time and its timers are used."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[..., None], tuple[Any, ...]]] = []

    def time(self) -> float:
        """Return the time in seconds."""
        return self.now

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> None:
        """Keep a timer until the clock is turned to its time."""
        self.timers.append((when, callback, args))

    def turn(self, seconds: float) -> None:
        """Go on, and call back whoever is due."""
        self.now += seconds
        due = [timer for timer in self.timers if timer[0] <= self.now]
        self.timers = [timer for timer in self.timers if timer[0] > self.now]
        for _, callback, args in due:
            callback(*args)
