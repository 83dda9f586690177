"""Compare two arms over the rows that both have: the figures, the tests, and the sentence that says what they mean. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from apps.datasets.rubric import SIX
from apps.evaluations.selectors import ArmScores
from apps.evaluations.statistics.corrections import holm
from apps.evaluations.statistics.paired import (
    TestResult,
    bootstrap_mean,
    differences,
    mcnemar,
    paired_difference,
    wilcoxon,
)
from apps.evaluations.statistics.power import rows_needed, smallest_effect
from apps.evaluations.statistics.values import Estimate
from basics.errors import Conflict

OVERALL = "overall"
PASS = 0.75
ALPHA = 0.05
_SAME = 1e-9
_WEIGHTS = {criterion.name: criterion.weight for criterion in SIX.criteria}
_BINS = (-0.35, -0.25, -0.15, -0.05, 0.05, 0.15, 0.25, 0.35)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One score of both arms over the rows that have it in both.

    Attributes:
        change: mean of B minus A with its 95 % interval.
        p_value: of Wilcoxon's test, as it is; ``p_corrected`` after Holm over all criteria.
        is_judged: judges gave it.
        same_author: both arms were scored by the same scorers in the same version.
    """

    name: str
    n: int
    a: Estimate
    b: Estimate
    change: Estimate
    p_value: float
    p_corrected: float
    is_judged: bool
    same_author: bool

    @property
    def is_shown(self) -> bool:
        """Return whether a change is shown: the interval is without 0, and the corrected test agrees."""
        return self.change.excludes(0) and self.p_corrected < ALPHA


@dataclass(frozen=True, slots=True)
class RowChange:
    """One row in both arms, by the score that leads."""

    row: int
    a: float
    b: float

    @property
    def change(self) -> float:
        """Return B minus A."""
        return self.b - self.a


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms compared.

    Attributes:
        leading: the score that verdict, lists and histogram go by.
        rows: worst change first.
        passes: McNemar's test of who passes ``PASS``.
        smallest: the change that so many rows show with 80 % power.
        needed: rows that the observed change would need, None where there is no change.
        left_out: rows that only one arm has a leading score for.
        bins: rows by change; the middle one is "no change".
    """

    leading: Criterion
    criteria: Sequence[Criterion]
    rows: Sequence[RowChange]
    wins: int
    ties: int
    losses: int
    pass_a: float
    pass_b: float
    passes: TestResult
    smallest: float
    needed: int | None
    left_out: int
    bins: Sequence[int]
    latency: tuple[float, float] | None
    cost: tuple[float, float] | None
    notes: Sequence[str] = field(default_factory=tuple)


def arms_compare(a: ArmScores, b: ArmScores, *, leading: str = "") -> Comparison:
    """Compare arm B with arm A.

    Args:
        leading: name of the score that decides; "" for the weighted mean of the rubric's scores, or of all.

    Raises:
        Conflict: ``not_comparable``, the two have no scored row in common.
    """
    names = [n for n in a.names if n in b.values]
    values_a, values_b = {n: a.values[n] for n in names}, {n: b.values[n] for n in names}
    parts = [n for n in names if n in _WEIGHTS] or names
    values_a[OVERALL] = _overall(a.values, parts)
    values_b[OVERALL] = _overall(b.values, parts)
    wanted = [OVERALL, *[n for n in names if len(names) > 1]]
    chosen = leading or (OVERALL if len(names) != 1 else names[0])
    if len(names) == 1:
        wanted = names
    if chosen not in wanted:
        raise Conflict("not_comparable", f"Both arms have no score “{chosen}”.")
    paired = {n: sorted(set(values_a[n]) & set(values_b[n])) for n in wanted}
    wanted = [n for n in wanted if paired[n]]
    if chosen not in wanted:
        raise Conflict(
            "not_comparable", "These two have no scored row in common. Compare arms over the same dataset."
        )  # fmt: skip
    tests = {n: wilcoxon(_changes(values_a[n], values_b[n], paired[n])) for n in wanted}
    corrected = dict(zip(wanted, holm([tests[n].p_value for n in wanted]), strict=True))
    criteria = [
        Criterion(
            name=n,
            n=len(paired[n]),
            a=bootstrap_mean([values_a[n][r] for r in paired[n]]),
            b=bootstrap_mean([values_b[n][r] for r in paired[n]]),
            change=paired_difference(
                [values_a[n][r] for r in paired[n]], [values_b[n][r] for r in paired[n]]
            ),
            p_value=tests[n].p_value,
            p_corrected=corrected[n],
            is_judged=bool({n, *(parts if n == OVERALL else ())} & (a.judged | b.judged)),
            same_author=all(
                a.authors.get(x) == b.authors.get(x) for x in (parts if n == OVERALL else (n,))
            ),
        )
        for n in wanted
    ]
    rows = [RowChange(r, values_a[chosen][r], values_b[chosen][r]) for r in paired[chosen]]
    rows.sort(key=lambda row: (row.change, row.row))
    deltas = np.array([row.change for row in rows])
    deviation = float(deltas.std(ddof=1)) if len(rows) > 1 else 0.0
    lead = next(c for c in criteria if c.name == chosen)
    pass_a = [row.a >= PASS for row in rows]
    pass_b = [row.b >= PASS for row in rows]
    every = set(values_a[chosen]) | set(values_b[chosen])
    return Comparison(
        leading=lead,
        criteria=criteria,
        rows=rows,
        wins=int((deltas > _SAME).sum()),
        ties=int((np.abs(deltas) <= _SAME).sum()),
        losses=int((deltas < -_SAME).sum()),
        pass_a=sum(pass_a) / len(rows),
        pass_b=sum(pass_b) / len(rows),
        passes=mcnemar(
            sum(x and not y for x, y in zip(pass_a, pass_b, strict=True)),
            sum(y and not x for x, y in zip(pass_a, pass_b, strict=True)),
        ),
        smallest=smallest_effect(deviation, len(rows)),
        needed=rows_needed(deviation, lead.change.value)
        if abs(lead.change.value) > _SAME and deviation
        else None,
        left_out=len(every) - len(rows),
        bins=_histogram(deltas),
        latency=_medians(a.latency_ms, b.latency_ms),
        cost=_means(a.cost_usd, b.cost_usd),
        notes=_notes(criteria, a, b),
    )


def verdict(found: Comparison) -> tuple[str, str]:
    """Return what a comparison means: a headline, and two or three sentences."""
    lead = found.leading
    if not lead.is_shown:
        head = "No difference can be shown"
    elif lead.change.value > 0:
        head = "B answers better"
    else:
        head = "B answers worse"
    if found.cost is not None and found.cost[0] > 0:
        ratio = found.cost[1] / found.cost[0]
        if ratio > 1.05:
            head += ", at a higher price"
        elif ratio < 0.95:
            head += ", at a lower price"
    judge = "same scorers" if lead.same_author else "different scorers, so take care"
    told = [
        f"{len(found.rows)} question{'' if len(found.rows) == 1 else 's'}, {judge}.",
        f"B wins {found.wins}, ties {found.ties}, loses {found.losses}.",
        f"{label(lead.name)} {_moves(lead)}.",
    ]
    if not lead.is_shown:
        told.append(
            f"With so many questions a change of {found.smallest:.2f} or more would show; "
            + (
                f"one of this size needs about {found.needed:,}."
                if found.needed and found.needed > len(found.rows)
                else "the interval still holds 0."
            )
        )
    return head, " ".join(told)


def label(name: str) -> str:
    """Return a score's name for people."""
    return name.replace("_", " ").capitalize() if name.islower() else name


def _moves(criterion: Criterion) -> str:
    change = criterion.change
    if abs(change.value) < 0.005 and not criterion.is_shown:
        return "does not change"
    way = "rises" if change.value > 0 else "falls"
    return f"{way} by {abs(change.value):.2f}, 95 % interval {change.low:.2f} to {change.high:.2f}"


def _overall(values: Mapping[str, Mapping[int, float]], parts: Sequence[str]) -> dict[int, float]:
    """Return the weighted mean per row over the parts, for rows that have them all."""
    if not parts:
        return {}
    rows = set.intersection(*(set(values[n]) for n in parts))
    weights = [_WEIGHTS.get(n, 1.0) for n in parts]
    total = sum(weights)
    return {
        row: sum(w * values[n][row] for n, w in zip(parts, weights, strict=True)) / total
        for row in rows
    }


def _changes(
    a: Mapping[int, float], b: Mapping[int, float], rows: Sequence[int]
) -> Sequence[float]:
    found = differences([a[r] for r in rows], [b[r] for r in rows])
    # Means over repeats differ in their last bits where nothing has changed.
    return [0.0 if abs(d) <= _SAME else float(d) for d in found]


def _histogram(deltas: np.ndarray) -> list[int]:
    counts = [0] * 9
    for delta in deltas.tolist():
        counts[4 if abs(delta) <= _SAME else _bin(delta)] += 1
    return counts


def _bin(delta: float) -> int:
    """Return the bin of a change: tenths around 0; a small one counts as the nearest real change, not as none."""
    place = sum(delta > edge for edge in _BINS)
    if place == 4:
        return 5 if delta > 0 else 3
    return place


def _medians(a: Mapping[int, float], b: Mapping[int, float]) -> tuple[float, float] | None:
    return (statistics.median(a.values()), statistics.median(b.values())) if a and b else None


def _means(a: Mapping[int, float], b: Mapping[int, float]) -> tuple[float, float] | None:
    return (statistics.fmean(a.values()), statistics.fmean(b.values())) if a and b else None


def _notes(criteria: Sequence[Criterion], a: ArmScores, b: ArmScores) -> list[str]:
    notes = []
    other = [label(c.name) for c in criteria if not c.same_author]
    if other:
        notes.append(f"Scored by different scorers in A and B: {', '.join(other)}.")
    lexical = {x for n in a.authors for x in a.authors[n] | b.authors.get(n, set())}
    if any(x.startswith("lexical:") for x in lexical):
        notes.append("Some scores were counted by words; no model has judged them.")
    missing = sum(a.unscored.values()) + sum(b.unscored.values())
    if missing:
        notes.append(
            f"{missing:,} score{'' if missing == 1 else 's'} could not be told and {'is' if missing == 1 else 'are'} left out."
        )
    return notes
