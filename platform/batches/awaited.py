"""Work that cannot go on before a batch has brought answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


class AnswersAwaited(Exception):
    """Answers that come with a batch are needed to go on.

    Args:
        keys: of their lines.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self.keys = sorted(set(keys))
        super().__init__(f"{len(self.keys)} answers come with a batch")


def together(calls: Iterable[Callable[[], T]]) -> list[T]:
    """Return what calls return that do not need each other.

    Raises:
        AnswersAwaited: some of them wait for answers. All were made, so that what they ask goes with one batch.
    """
    found: list[T] = []
    keys: list[str] = []
    for call in calls:
        try:
            found.append(call())
        except AnswersAwaited as awaited:
            keys += awaited.keys
    if keys:
        raise AnswersAwaited(keys)
    return found
