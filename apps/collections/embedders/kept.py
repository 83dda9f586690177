"""A model that is in memory while it is used, and given back after a while without work."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

IDLE_S = 300.0
"""After so long without a text a model leaves the memory."""
QUIET_S = 5.0
"""After so long without a text, what a batch needed besides the model goes back to the system (17 MB for the built-in one)."""

Model = TypeVar("Model")


class KeptModel(Generic[Model]):
    """A model shared by all threads of a process.

    Args:
        load: gives the model; what it raises is passed on, and the next use tries again.
        idle_s: seconds without a use after which it is given back.
        quiet_s: seconds without a use after which freed memory is given back, and the model stays.
    """

    def __init__(
        self, load: Callable[[], Model], *, idle_s: float = IDLE_S, quiet_s: float = QUIET_S
    ) -> None:
        self._load, self._idle_s, self._quiet_s = load, idle_s, quiet_s
        self._changed = threading.Condition()
        self._model: Model | None = None
        self._users = 0
        self._used_at = 0.0
        self._watch: threading.Thread | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether it is in memory now."""
        return self._model is not None

    @contextmanager
    def use(self) -> Iterator[Model]:
        """Hold the model, loaded if need be; it stays as long as one holds it."""
        with self._changed:
            if self._model is None:
                self._model = self._load()
            model = self._model
            self._users += 1
            if self._watch is None:
                self._watch = threading.Thread(target=self._give_back, name="model-idle", daemon=True)
                self._watch.start()
        try:
            yield model
        finally:
            with self._changed:
                self._users -= 1
                self._used_at = time.monotonic()

    def idle_wait(self) -> None:
        """Wait until it was given back; at once when it is not loaded."""
        if (watch := self._watch) is not None:
            watch.join()

    def _left_s(self) -> float:
        return self._idle_s if self._users else self._used_at + self._idle_s - time.monotonic()

    def _give_back(self) -> None:
        with self._changed:
            # Nobody wakes it at the end of a use, of which there may be many a second.
            seen: float | None = None
            trimmed: float | None = None
            while (left := self._left_s()) > 0:
                if not self._users and trimmed != self._used_at == seen:
                    trimmed = seen
                    memory_trim()
                seen = self._used_at
                self._changed.wait(min(left, self._quiet_s))
            self._model = self._watch = None
        memory_trim()


def memory_trim() -> None:
    """Give memory that was freed back to the system, which glibc else keeps for later (malloc_trim(3)); elsewhere nothing."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
