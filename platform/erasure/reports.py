"""What an erasure found and did, line by line, without a name of anybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from basics.texts import gettext_noop

REMOVED, REPLACED, KEPT = gettext_noop("removed"), gettext_noop("pseudonymised"), gettext_noop("kept")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a report.

    Attributes:
        where: a table, a kind of file, or a place.
        what: removed, pseudonymised or kept.
        count: rows or files.
        why: for what was kept.
    """

    where: str
    what: str
    count: int
    why: str = ""


@dataclass(slots=True)
class Report:
    """The lines of one erasure."""

    lines: list[Line] = field(default_factory=list)

    def add(self, where: str, what: str, count: int, why: str = "") -> None:
        """Add a line, unless nothing was found."""
        if count:
            self.lines.append(Line(where, what, count, why))

    def add_all(self, found: Mapping[str, int], what: str, why: str = "") -> None:
        """Add a line for each place."""
        for where, count in found.items():
            self.add(where, what, count, why)

    def merged(self, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return these lines after those of a try that was interrupted."""
        return [*before, *(asdict(line) for line in self.lines)]
