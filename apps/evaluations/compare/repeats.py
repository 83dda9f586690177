"""What repeats of an arm show: how far its scores vary, whether answers or judges make them vary, and which rows are flaky."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apps.evaluations.compare.comparison import OVERALL, PASS, overall_parts, weighted_mean
from apps.evaluations.models import Arm, Score, ScoreAuthor
from apps.evaluations.scorers.metrics import pass_hat_k
from apps.evaluations.statistics.variance import Variance, variance_split
from basics.errors import Missing
from tenancy.actors import Actor

REPLICATES = "replicates"
"""In a score's details: what each judgement of the same answer gave."""
_MOST_FLAKY = 100


@dataclass(frozen=True, slots=True)
class FlakyRow:
    """A row that passes in some repeats and fails in others.

    Attributes:
        values: its score in each repeat.
        judge_spread: how far judgements of one and the same answer lay apart at most; 0 where each was judged once.
    """

    row: int
    values: Sequence[float]
    judge_spread: float

    @property
    def passes(self) -> int:
        """Return how many repeats passed."""
        return sum(value >= PASS for value in self.values)

    @property
    def spread(self) -> float:
        """Return how far its repeats lie apart."""
        return max(self.values) - min(self.values)


@dataclass(frozen=True, slots=True)
class Repeats:
    """An arm by its repeats.

    Attributes:
        score: what is looked at; ``names`` are those there are.
        rows: scored in every repeat; ``repeats`` is how many there are.
        means: of each repeat.
        deviation: standard deviation of these means; None for a single one.
        pass_all: share of rows that would pass in every one of so many tries (pass^k, k the repeats); None without rows.
        flaky: the widest spread first, ``flaky_count`` of all.
    """

    score: str
    names: Sequence[str]
    rows: int
    repeats: int
    means: Sequence[float]
    deviation: float | None
    variance: Variance
    pass_all: float | None
    flaky_count: int
    flaky: Sequence[FlakyRow] = field(default_factory=tuple)


@dataclass(slots=True)
class _Given:
    """One score of one answer: its value, and what its single judgements gave."""

    value: float
    replicates: Sequence[float] = ()


def arm_repeats(*, actor: Actor, arm: Arm, score: str = "") -> Repeats:
    """Return what an arm's repeats show by one score, in one query.

    Args:
        score: its name; "" for the weighted mean that comparisons lead by.

    Raises:
        Missing: the arm has no such score.
    """
    actor.require("evaluation.read")
    rows = Score.objects.visible_to(actor).filter(trial__arm=arm, value__isnull=False)
    rows = rows.exclude(author_kind=ScoreAuthor.PERSON).order_by("pk")
    given: dict[tuple[int, int], dict[str, _Given]] = {}
    for row, repeat, name, value, replicates in rows.values_list(
        "trial__row_ref", "trial__repeat", "name", "value", f"details__{REPLICATES}"
    ):
        if value is not None:
            given.setdefault((row, repeat), {})[name] = _Given(value, replicates or ())
    names = sorted({name for scores in given.values() for name in scores})
    wanted = score or OVERALL
    if wanted == OVERALL:
        parts = overall_parts(names)
        chosen = {
            at: _overall(scores, parts) for at, scores in given.items() if parts and set(parts) <= set(scores)
        }
    elif wanted in names:
        chosen = {at: scores[wanted] for at, scores in given.items() if wanted in scores}
    else:
        raise Missing("score")
    return _summary(wanted, [OVERALL, *names] if len(names) > 1 else names, chosen)


def _overall(scores: Mapping[str, _Given], parts: Sequence[str]) -> _Given:
    """Return the weighted mean; of single judgements too where every part has as many of them."""
    counts = {len(scores[name].replicates) for name in parts}
    count = counts.pop() if len(counts) == 1 else 0
    return _Given(
        weighted_mean({name: scores[name].value for name in parts}),
        [weighted_mean({name: scores[name].replicates[n] for name in parts}) for n in range(count)],
    )


def _summary(score: str, names: Sequence[str], given: Mapping[tuple[int, int], _Given]) -> Repeats:
    by_row: dict[int, list[_Given]] = {}
    by_repeat: dict[int, list[float]] = {}
    for (row, repeat), one in sorted(given.items()):
        by_row.setdefault(row, []).append(one)
        by_repeat.setdefault(repeat, []).append(one.value)
    repeats = len(by_repeat)
    full = {row: ones for row, ones in by_row.items() if len(ones) == repeats}
    flaky = [
        FlakyRow(row, [one.value for one in ones], max(_spread(one.replicates) for one in ones))
        for row, ones in by_row.items()
        if len({one.value >= PASS for one in ones}) > 1
    ]
    flaky.sort(key=lambda one: (-one.spread, one.row))
    means = [statistics.fmean(values) for _, values in sorted(by_repeat.items())]
    passing = [pass_hat_k(sum(one.value >= PASS for one in ones), repeats, repeats) for ones in full.values()]
    return Repeats(
        score=score,
        names=names,
        rows=len(full),
        repeats=repeats,
        means=means,
        deviation=statistics.stdev(means) if repeats > 1 else None,
        variance=variance_split(
            (row, one.replicates or (one.value,)) for row, ones in by_row.items() for one in ones
        ),
        pass_all=statistics.fmean(passing) if passing else None,
        flaky_count=len(flaky),
        flaky=flaky[:_MOST_FLAKY],
    )


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values) if values else 0.0
