"""How often tools were called, how many calls failed and how long they took: per tool and per group, over many runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class Figures:
    """Figures of one tool or group."""

    calls: int = 0
    errors: int = 0
    seconds: float = 0.0

    def add(self, calls: int, errors: int, seconds: float) -> None:
        """Count more."""
        self.calls += calls
        self.errors += errors
        self.seconds += seconds


class ToolFigures:
    """Sums up ``RunFinished.tools`` over runs.

    Args:
        group_of: the dotted group of a tool by its name, "" for none.
    """

    def __init__(self, group_of: Callable[[str], str]) -> None:
        self._group_of = group_of
        self._tools: dict[str, Figures] = {}

    def add(self, tools: Mapping[str, Mapping[str, float]]) -> None:
        """Count the calls of a run, as ``RunFinished.tools`` states them."""
        for name, found in tools.items():
            figures = self._tools.setdefault(name, Figures())
            figures.add(int(found["calls"]), int(found["errors"]), float(found["seconds"]))

    def by_tool(self) -> dict[str, Figures]:
        """Return the figures of each tool that was called."""
        return {name: Figures(f.calls, f.errors, f.seconds) for name, f in self._tools.items()}

    def by_group(self) -> dict[str, Figures]:
        """Return the figures of each group, those below it included; tools without a group count under ""."""
        groups: dict[str, Figures] = {}
        for name, found in self._tools.items():
            parts = self._group_of(name).split(".")
            for depth in range(1, len(parts) + 1):
                group = groups.setdefault(".".join(parts[:depth]), Figures())
                group.add(found.calls, found.errors, found.seconds)
        return dict(sorted(groups.items()))

    def reset(self) -> dict[str, Figures]:
        """Begin anew; return what was counted per tool."""
        before = self.by_tool()
        self._tools.clear()
        return before
