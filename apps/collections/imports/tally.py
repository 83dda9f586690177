"""What an import counts and lists."""

from __future__ import annotations

from collections import Counter
from typing import Any

from apps.collections.ingestion.sources.base import Problem

MAX_LISTED = 1000
_COUNTS = (
    "found",
    "created",
    "updated",
    "unchanged",
    "retried",
    "files_kept",
    "skipped",
    "problems",
    "removed",
    "unlisted",
)


class Tally:
    """Counts, facts and problems of one attempt.

    Attributes:
        counts: by name; ``entries`` gives those that are stored.
        facts: what the source says of itself.
        problems: what became no document, as ``Import.problems`` stores it, at most ``MAX_LISTED``.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.facts: dict[str, Any] = {}
        self.problems: list[dict[str, Any]] = []
        self._reasons: Counter[str] = Counter()

    def list(self, problem: Problem, *, is_found: bool = False) -> None:
        """Count and list what became no document.

        Args:
            is_found: it is counted among what was found.
        """
        if not is_found:
            self.counts["found"] += problem.count
        self.counts["skipped" if problem.is_skip else "problems"] += problem.count
        self._reasons[problem.reason] += problem.count
        # Rules leave out thousands; a problem must still find its place among them.
        room = MAX_LISTED if not problem.is_skip else MAX_LISTED // 2
        if len(self.problems) >= room:
            self.counts["unlisted"] += problem.count
            return
        self.problems.append(
            {
                "path": problem.path,
                "reason": str(problem.reason),
                "message": problem.message,
                "count": problem.count,
                "is_skip": problem.is_skip,
            }
        )

    def entries(self) -> dict[str, Any]:
        """Return ``Import.entries``: the counts, the reasons with theirs, and the facts."""
        return {
            **{name: self.counts[name] for name in _COUNTS},
            "by_reason": dict(self._reasons),
            **self.facts,
        }
