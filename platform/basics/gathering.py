"""Do for many at once what each of them asks the database for: rows of a dataset, runs that write down what they say.

One question to the database costs the worker more in building and fetching than the database in answering, and many ask
the same again and again. Here those that ask within a moment are answered together. The moment costs no throughput as
long as more rows are under way than calls, so it is as long as there are more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

GATHER_S = 0.3
"""How long the first of a group waits at most for others, while twice as many rows are under way as calls."""
FEW = 4
"""A group is complete with one of so many rows under way."""


@dataclass(slots=True)
class Crowd:
    """How many there are who may ask.

    Attributes:
        rows: under way now.
        calls: that may be under way at once.
    """

    calls: int
    rows: int = 0

    @property
    def pause_s(self) -> float:
        """Return how long a group may gather; nothing when every row is needed to keep all calls under way."""
        return GATHER_S * min(1.0, max(0.0, self.rows / self.calls - 1))


class Gathered(Generic[T, R]):
    """Groups what is asked of one function; belongs to one event loop.

    One group is under way at a time, and the next one gathers meanwhile.

    Args:
        answer: answers a whole group, in its order; an exception among the answers is raised to the one who asked.
        crowd: who may ask.
    """

    def __init__(self, answer: Callable[[list[T]], Awaitable[Sequence[R | Exception]]], crowd: Crowd) -> None:
        self._answer, self._crowd = answer, crowd
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._complete = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None

    async def ask(self, wanted: T) -> R:
        """Return what the function says to this; a cancelled caller does not take its question back.

        Raises:
            Exception: the function's, for the whole group or this question.
        """
        return await asyncio.shield(self.put(wanted))

    def put(self, wanted: T) -> asyncio.Future[R]:
        """Ask without waiting; returns where the answer will be."""
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, done))
        if self._pump is None:
            self._pump = asyncio.create_task(self._answered())
        if len(self._waiting) * FEW >= self._crowd.rows:
            self._complete.set()
        return done

    async def flush(self) -> None:
        """Answer at once what has been asked by now, also where nobody waits for it any more."""
        while self._pump is not None:
            self._complete.set()
            await asyncio.shield(self._pump)

    async def _answered(self) -> None:
        try:
            while self._waiting:
                pause = self._crowd.pause_s
                timer = asyncio.get_running_loop().call_later(pause, self._complete.set)
                await self._complete.wait()
                timer.cancel()
                self._complete.clear()
                group, self._waiting = self._waiting, []
                for (_, done), said in zip(group, await self._said(group), strict=True):
                    if done.done():
                        continue
                    if isinstance(said, BaseException):
                        done.set_exception(said)
                        done.exception()  # Seen here: who was cancelled meanwhile does not ask.
                    else:
                        done.set_result(said)
        finally:
            self._pump = None

    async def _said(self, group: list[tuple[T, asyncio.Future[R]]]) -> Sequence[R | BaseException]:
        try:
            return await self._answer([wanted for wanted, _ in group])
        except asyncio.CancelledError:
            for _, done in group:
                done.cancel()
            raise
        except BaseException as error:  # noqa: BLE001 - told to each that waits, and nobody waits for ever
            return [error] * len(group)
