"""Which rows to make: quotas of types and difficulties as slots, and the passages of each candidate. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Slot:
    """One wanted row."""

    number: int
    type: str
    difficulty: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """An attempt at a slot.

    Attributes:
        chunks: the passages that it is made from.
        data: what is known of it before its first stage.
    """

    slot: Slot
    round: int
    chunks: tuple[int, ...]
    data: Mapping[str, Any] = field(default_factory=dict)


def apportioned(total: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Divide a number by shares so that the parts add up to it (largest remainder; ties go to the first).

    Example: ``apportioned(10, {"a": 1, "b": 2})`` is ``{"a": 3, "b": 7}``.
    """
    weight = sum(shares.values())
    exact = {name: total * share / weight for name, share in shares.items() if share > 0}
    parts = {name: int(value) for name, value in exact.items()}
    order = sorted(exact, key=lambda name: parts[name] - exact[name])
    for name in order[: total - sum(parts.values())]:
        parts[name] += 1
    return parts


def slots_of(rows: int, types: Mapping[str, float], difficulty: Mapping[str, float]) -> list[Slot]:
    """Return one slot for each wanted row; both quotas are met as exactly as whole rows allow, types interleaved."""
    by_type = apportioned(rows, types)
    left = apportioned(rows, difficulty)
    pairs: list[tuple[int, str, str]] = []
    # The rarest types choose first, or a type of one row would always take what difficulty is left.
    for name, count in sorted(by_type.items(), key=lambda part: part[1]):
        share = {d: float(n) for d, n in left.items() if n > 0}
        mine = apportioned(count, share) if count else {}
        for level, n in mine.items():
            left[level] -= n
            pairs += [(i, name, level) for i in range(n)]
    pairs.sort(key=lambda pair: pair[0])
    return [Slot(number, name, level) for number, (_, name, level) in enumerate(pairs)]


def candidates_of(
    slots: Sequence[Slot], pools: Mapping[str, Sequence[tuple[int, ...]]], rounds: int
) -> list[Candidate]:
    """Give each slot its candidates, first round first; no group of passages twice for a type.

    A pool that is too small leaves slots with fewer candidates, or none: that is a shortfall, never a repetition.
    """
    totals = Counter(slot.type for slot in slots)
    seen: Counter[str] = Counter()
    made: list[Candidate] = []
    for slot in slots:
        place = seen[slot.type]
        seen[slot.type] += 1
        pool = pools.get(slot.type, ())
        for turn in range(rounds):
            at = place + turn * totals[slot.type]
            if at >= len(pool):
                break
            made.append(Candidate(slot, turn, tuple(pool[at])))
    return made
