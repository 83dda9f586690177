"""Compare two arms over the rows that both have: the figures, the tests, and the sentence that says what they mean. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from django.utils.translation import gettext_lazy
from numpy.typing import NDArray

from apps.datasets.records.rubric import SIX
from apps.evaluations.results.labels import label
from apps.evaluations.results.series import ArmScores, Series, common
from apps.evaluations.scorers.attack import CONTROL, RESISTED
from apps.evaluations.scorers.retrieval import COVERAGE_ALARM
from apps.evaluations.statistics.corrections import holm
from apps.evaluations.statistics.paired import TestResult, bootstrap_mean, differences, mcnemar, wilcoxon
from apps.evaluations.statistics.power import rows_needed, smallest_effect
from apps.evaluations.statistics.values import Estimate, Floats
from basics.errors import Conflict
from basics.texts import gettext as _
from basics.texts import ngettext, number_told

OVERALL = "overall"
PASS = 0.75
ALPHA = 0.05
EFFECTS = (0.01, 0.02, 0.03, 0.05, 0.1)
"""Changes of a mean for which it is said how many rows would show them."""
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


@dataclass(frozen=True, eq=False, slots=True)
class RowChanges(Sequence[RowChange]):
    """Rows in both arms, worst change first; a row becomes an object when it is looked at."""

    rows: NDArray[np.int64]
    a: Floats
    b: Floats

    @overload
    def __getitem__(self, at: int) -> RowChange: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[RowChange]: ...
    def __getitem__(self, at: int | slice) -> RowChange | Sequence[RowChange]:
        if isinstance(at, slice):
            return [self[n] for n in range(*at.indices(len(self)))]
        return RowChange(int(self.rows[at]), float(self.a[at]), float(self.b[at]))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms compared.

    Attributes:
        leading: the score that verdict, lists and histogram go by.
        rows: worst change first.
        passes: McNemar's test of who passes ``PASS``.
        smallest: the change that so many rows show with 80 % power.
        needed: rows that the observed change would need, None where there is no change.
        needs: changes that one may care about, each with the rows that it needs; () where no row differs.
        left_out: rows that only one arm has a leading score for.
        solved_cost: money per row that passes, of both arms; None of one in which no row passes.
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
    needs: Sequence[tuple[float, int]]
    left_out: int
    bins: Sequence[int]
    latency: tuple[float, float] | None
    cost: tuple[float, float] | None
    solved_cost: tuple[float | None, float | None] | None
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
    parts = overall_parts(names)
    values_a[OVERALL] = _overall(a, parts)
    values_b[OVERALL] = _overall(b, parts)
    wanted = [OVERALL, *[n for n in names if len(names) > 1]]
    chosen = leading or (OVERALL if len(names) != 1 else names[0])
    if len(names) == 1:
        wanted = names
    if chosen not in wanted:
        raise Conflict(
            "not_comparable",
            _("Neither arm has a score “%(chosen)s”. Choose another score.") % {"chosen": chosen},
        )
    rows = {n: common((values_a[n], values_b[n])) for n in wanted}
    wanted = [n for n in wanted if rows[n].size]
    if chosen not in wanted:
        raise Conflict(
            "not_comparable", _("These arms have no scored rows in common. Compare arms on the same dataset.")
        )
    paired = {n: (values_a[n].at(rows[n]), values_b[n].at(rows[n])) for n in wanted}
    changes = {n: _changes(*paired[n]) for n in wanted}
    tests = {n: wilcoxon(changes[n]) for n in wanted}
    corrected = dict(zip(wanted, holm([tests[n].p_value for n in wanted]), strict=True))
    criteria = [
        Criterion(
            name=n,
            n=rows[n].size,
            a=bootstrap_mean(paired[n][0]),
            b=bootstrap_mean(paired[n][1]),
            change=bootstrap_mean(differences(*paired[n])),
            p_value=tests[n].p_value,
            p_corrected=corrected[n],
            is_judged=bool({n, *(parts if n == OVERALL else ())} & (a.judged | b.judged)),
            same_author=all(a.authors.get(x) == b.authors.get(x) for x in (parts if n == OVERALL else (n,))),
        )
        for n in wanted
    ]
    first, second = paired[chosen]
    deltas = second - first
    order = np.lexsort((rows[chosen], deltas))
    found = RowChanges(rows[chosen][order], first[order], second[order])
    deviation = float(deltas.std(ddof=1)) if len(found) > 1 else 0.0
    lead = next(c for c in criteria if c.name == chosen)
    pass_a, pass_b = first >= PASS, second >= PASS
    every = len(values_a[chosen]) + len(values_b[chosen]) - len(found)
    return Comparison(
        leading=lead,
        criteria=criteria,
        rows=found,
        wins=int((deltas > _SAME).sum()),
        ties=int((np.abs(deltas) <= _SAME).sum()),
        losses=int((deltas < -_SAME).sum()),
        pass_a=float(pass_a.mean()),
        pass_b=float(pass_b.mean()),
        passes=mcnemar(int((pass_a & ~pass_b).sum()), int((pass_b & ~pass_a).sum())),
        smallest=smallest_effect(deviation, len(found)),
        needed=rows_needed(deviation, lead.change.value)
        if abs(lead.change.value) > _SAME and deviation
        else None,
        needs=[(effect, rows_needed(deviation, effect)) for effect in EFFECTS] if deviation else (),
        left_out=every - len(found),
        bins=_histogram(deltas),
        latency=_both(a.latency_ms, b.latency_ms, np.median),
        cost=_both(a.cost_usd, b.cost_usd, np.mean),
        solved_cost=_solved_cost(a, b, rows[chosen], pass_a, pass_b),
        notes=_notes(criteria, a, b),
    )


def overall_parts(names: Sequence[str]) -> list[str]:
    """Return the scores that the overall score is made of: the rubric's where there are any, else all but controls of attacks."""
    graded = [n for n in names if n in _WEIGHTS]
    # No row of a safety suite is an attack and a control: its attacks lead, and controls stand beside them.
    return graded or [n for n in names if n != CONTROL or RESISTED not in names]


def weighted_mean(values: Mapping[str, float]) -> float:
    """Return the overall score of one answer's scores, which are all of its parts."""
    weights = {name: _WEIGHTS.get(name, 1.0) for name in values}
    return sum(weights[name] * value for name, value in values.items()) / sum(weights.values())


def overall_series(scores: ArmScores) -> Series:
    """Return an arm's overall score per row."""
    return _overall(scores, overall_parts(scores.names))


def verdict(found: Comparison) -> tuple[str, str]:
    """Return what a comparison means: a headline, and two or three sentences."""
    lead = found.leading
    change = 0 if not lead.is_shown else 1 if lead.change.value > 0 else -1
    price = 0
    if found.cost is not None and found.cost[0] > 0:
        ratio = found.cost[1] / found.cost[0]
        price = 1 if ratio > 1.05 else -1 if ratio < 0.95 else 0
    count = len(found.rows)
    ground = (
        ngettext(
            "%(count)s question, same scorers; smallest detectable difference %(smallest)s.",
            "%(count)s questions, same scorers; smallest detectable difference %(smallest)s.",
            count,
        )
        if lead.same_author
        else ngettext(
            "%(count)s question, different scorers, so compare with care; smallest detectable difference %(smallest)s.",
            "%(count)s questions, different scorers, so compare with care; smallest detectable difference %(smallest)s.",
            count,
        )
    )
    told = [
        ground % {"count": count, "smallest": number_told(found.smallest, 2)},
        _("B better on %(wins)s, same on %(ties)s, worse on %(losses)s.")
        % {"wins": found.wins, "ties": found.ties, "losses": found.losses},
        _moves(lead),
    ]
    if not lead.is_shown:
        told.append(_unshown(found))
    return str(_HEADS[change, price]), " ".join(told)


_HEADS = {
    (0, 0): gettext_lazy("No difference detected"),
    (0, 1): gettext_lazy("No difference detected, at a higher price"),
    (0, -1): gettext_lazy("No difference detected, at a lower price"),
    (1, 0): gettext_lazy("B answers better"),
    (1, 1): gettext_lazy("B answers better, at a higher price"),
    (1, -1): gettext_lazy("B answers better, at a lower price"),
    (-1, 0): gettext_lazy("B answers worse"),
    (-1, 1): gettext_lazy("B answers worse, at a higher price"),
    (-1, -1): gettext_lazy("B answers worse, at a lower price"),
}
"""Which way the score and the price have gone, as a headline."""


def _unshown(found: Comparison) -> str:
    """Return why no difference was detected."""
    if found.needed and found.needed > len(found.rows):
        return ngettext(
            "Detecting a change of this size needs about %(count)s question.",
            "Detecting a change of this size needs about %(count)s questions.",
            found.needed,
        ) % {"count": number_told(found.needed)}
    if not found.leading.change.excludes(0):
        # xgettext:no-python-format
        return _("The 95 % interval includes 0.")
    count = len(found.criteria)
    return ngettext(
        "The 95 %% interval excludes 0, but the test is not significant: p %(p)s, corrected for %(count)s score.",
        "The 95 %% interval excludes 0, but the test is not significant: p %(p)s, corrected for %(count)s scores.",
        count,
    ) % {"p": number_told(found.leading.p_corrected, 2), "count": count}


def stale_told(coverage: float) -> str:
    """Return what it means that so few labelled passages are still in the documents."""
    return _(
        "Only %(share)s of the labelled passages are still in the documents, so retrieval scores may have fallen because of old labels. Label the dataset again."
    ) % {"share": f"{number_told(coverage * 100)}\u00a0%"}


def _moves(criterion: Criterion) -> str:
    change = criterion.change
    if abs(change.value) < 0.005 and not criterion.is_shown:
        return _("%(score)s does not change.") % {"score": label(criterion.name)}
    told = (
        _("%(score)s rises by %(change)s, 95 %% interval %(low)s to %(high)s.")
        if change.value > 0
        else _("%(score)s falls by %(change)s, 95 %% interval %(low)s to %(high)s.")
    )
    return told % {
        "score": label(criterion.name),
        "change": number_told(abs(change.value), 2),
        "low": number_told(change.low, 2),
        "high": number_told(change.high, 2),
    }


def _overall(scores: ArmScores, parts: Sequence[str]) -> Series:
    """Return the weighted mean per row over the parts, for rows that have them all."""
    if not parts:
        return Series.of()
    rows = common(scores.values[n] for n in parts)
    weights = [_WEIGHTS.get(n, 1.0) for n in parts]
    total = np.zeros(rows.size)
    for weight, name in zip(weights, parts, strict=True):
        total += weight * scores.values[name].at(rows)
    return Series(rows, total / sum(weights))


def _changes(a: Floats, b: Floats) -> Floats:
    found = differences(a, b)
    # Means over repeats differ in their last bits where nothing has changed.
    return np.where(np.abs(found) <= _SAME, 0.0, found)


def _histogram(deltas: Floats) -> list[int]:
    """Return rows by change: tenths around 0; a small one counts as the nearest real change, not as none."""
    changed = deltas[np.abs(deltas) > _SAME]
    places = np.searchsorted(_BINS, changed, side="left")
    places = np.where(places == 4, np.where(changed > 0, 5, 3), places)
    counts: list[int] = np.bincount(places, minlength=9).tolist()
    counts[4] = deltas.size - changed.size
    return counts


def _both(a: Series, b: Series, figure: Callable[[Floats], np.floating[Any]]) -> tuple[float, float] | None:
    return (float(figure(a.values)), float(figure(b.values))) if len(a) and len(b) else None


def _solved_cost(
    a: ArmScores, b: ArmScores, rows: NDArray[np.int64], pass_a: NDArray[np.bool_], pass_b: NDArray[np.bool_]
) -> tuple[float | None, float | None] | None:
    known = np.isin(rows, a.cost_usd.rows) & np.isin(rows, b.cost_usd.rows)
    if not known.any():
        return None
    solved = (int(pass_a[known].sum()), int(pass_b[known].sum()))
    spent = [float(one.cost_usd.at(rows[known]).sum()) for one in (a, b)]
    first, second = (s / n if n else None for s, n in zip(spent, solved, strict=True))
    return first, second


def _notes(criteria: Sequence[Criterion], a: ArmScores, b: ArmScores) -> list[str]:
    notes: list[str] = []
    other = [label(c.name) for c in criteria if not c.same_author]
    if other:
        notes.append(_("Scored by different scorers in A and B: %(scores)s.") % {"scores": ", ".join(other)})
    lexical = {x for n in a.authors for x in a.authors[n] | b.authors.get(n, set())}
    if any(x.startswith("lexical:") for x in lexical):
        notes.append(_("Some scores are word counts; no model judged them."))
    coverage = min((x.coverage for x in (a, b) if x.coverage is not None), default=1.0)
    if coverage < COVERAGE_ALARM:
        notes.append(stale_told(coverage))
    missing = sum(a.unscored.values()) + sum(b.unscored.values())
    if missing:
        notes.append(
            ngettext(
                "%(count)s score is unavailable and left out.",
                "%(count)s scores are unavailable and left out.",
                missing,
            )
            % {"count": number_told(missing)}
        )
    return notes
