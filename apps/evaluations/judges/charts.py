"""The two charts of trust as plain geometry: agreement with its intervals and the bar, and a judge's curve against people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.datasets.records.rubric import LEVELS
from apps.evaluations.judges.trust import Agreement
from apps.evaluations.results.labels import label
from apps.evaluations.statistics.calibration import isotonic_fit, reliability
from apps.evaluations.statistics.values import Estimate
from basics.texts import number_told

_ROW, _TOP, _LEFT, _WIDTH, _RIGHT = 36, 16, 108, 440, 16
_SIDE, _PAD = 260, 30


@dataclass(frozen=True, slots=True)
class Dot:
    """A figure with its interval; lengths are units of the chart."""

    x: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class AgreementRow:
    """One score: the judge with people, and people with each other; None where it cannot be told."""

    name: str
    y: int
    judge: Dot | None
    people: Dot | None


@dataclass(frozen=True, slots=True)
class AgreementChart:
    """The chart; ``ticks`` are places with their labels, ``bar`` is where a score may gate."""

    width: int
    height: int
    bar: float
    ticks: Sequence[tuple[float, str]]
    rows: Sequence[AgreementRow]


def agreement_chart(found: Sequence[Agreement], bar: float) -> AgreementChart:
    """Return the chart of a judge's scores, from no agreement beyond chance (0, or below) to full agreement (1)."""
    lows = [e.low for one in found for e in (one.judge_human, one.human_human) if e is not None]
    first = -0.5 if any(low < 0 for low in lows) else 0.0

    def x(value: float) -> float:
        return round(_LEFT + (max(value, first) - first) * (_WIDTH - _LEFT - _RIGHT) / (1 - first), 1)

    def dot(estimate: Estimate | None) -> Dot | None:
        return None if estimate is None else Dot(x(estimate.value), x(estimate.low), x(estimate.high))

    steps = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    return AgreementChart(
        _WIDTH,
        _TOP + _ROW * len(found),
        x(bar),
        [
            (x(v), number_told(abs(v), None, "−" if v < 0 else ""))
            for v in ([first] if first < 0 else []) + steps
        ],
        [
            AgreementRow(
                label(one.name), _TOP + _ROW * place + 10, dot(one.judge_human), dot(one.human_human)
            )
            for place, one in enumerate(found)
        ],
    )


def agreement_told(found: Sequence[Agreement]) -> str:
    """Return the chart in words, for who cannot see it."""
    parts = []
    for one in found:
        judge = _("unknown") if one.judge_human is None else number_told(one.judge_human.value, 2)
        people = _("unknown") if one.human_human is None else number_told(one.human_human.value, 2)
        parts.append(
            _("%(score)s: judge and people %(judge)s, people among themselves %(people)s")
            % {"score": label(one.name), "judge": judge, "people": people}
        )
    return _("Agreement beyond chance. %(scores)s.") % {"scores": ". ".join(parts)}


@dataclass(frozen=True, slots=True)
class Curve:
    """A judge's levels across, people's up.

    Attributes:
        dots: x, y, radius, and the words of each.
        path: the rising curve that maps judge to people, as points of a polyline.
        ticks: place across, place up, label.
    """

    side: int
    dots: Sequence[tuple[float, float, float, str]]
    path: str
    ticks: Sequence[tuple[float, float, str]]
    told: str


def reliability_chart(pairs: Sequence[tuple[float, float]]) -> Curve:
    """Return the curve of (judge's level, people's median level) pairs, one or more."""
    judge, people = [a for a, _b in pairs], [b for _a, b in pairs]

    def across(value: float) -> float:
        return round(_PAD + (value - 1) * (_SIDE - _PAD - 12) / (LEVELS - 1), 1)

    def up(value: float) -> float:
        return round(_SIDE - _PAD - (value - 1) * (_SIDE - _PAD - 12) / (LEVELS - 1), 1)

    points = reliability(judge, people, bins=LEVELS)
    most = max(p.count for p in points)
    fit = isotonic_fit(judge, people)
    words = [
        ngettext(
            "Judge %(judge)s, people %(people)s, %(count)s answer",
            "Judge %(judge)s, people %(people)s, %(count)s answers",
            p.count,
        )
        % {"judge": number_told(p.judge, 1), "people": number_told(p.human, 1), "count": p.count}
        for p in points
    ]
    return Curve(
        _SIDE,
        [
            (across(p.judge), up(p.human), round(4 + 6 * (p.count / most) ** 0.5, 1), told)
            for p, told in zip(points, words, strict=True)
        ],
        " ".join(f"{across(x)},{up(y)}" for x, y in zip(fit.x, fit.y, strict=True)),
        [(across(n), up(n), str(n)) for n in range(1, LEVELS + 1)],
        _("People's grades for each of the judge's levels. %(levels)s.") % {"levels": ". ".join(words)},
    )
