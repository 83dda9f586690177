"""What a chart is: numbers that a model gives, checked, in one form that pages, documents and programs read. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

KINDS: Final = ("line", "bar", "scatter", "histogram")
MOST_SERIES: Final = 8
MOST_POINTS: Final = 2_000
MOST_BARS: Final = 120
_TITLE, _NAME, _LABEL = 160, 80, 80
_BINS: Final = 50
_MOST: Final = 1e15
"""Beyond this a chart's axis can't be written any more."""
_LEAST: Final = 1e-100
"""Below this, 0 aside, the arithmetic of an axis loses its digits."""


class CannotDraw(ValueError):
    """The numbers make no chart; the message says what would."""


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers under one name.

    Attributes:
        y: values; None leaves a gap. Of a histogram, how many values each bin has.
        x: where each value stands, of a scatter chart and of a line over numbers; else empty: ``Chart.labels`` say it.
    """

    name: str
    y: Sequence[float | None]
    x: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, checked: every series has as many values as there are labels, or as many as it has ``x``.

    Attributes:
        edges: of a histogram, where its bins begin and where the last one ends.
    """

    kind: str
    title: str
    series: Sequence[Series]
    labels: Sequence[str] = ()
    x_label: str = ""
    y_label: str = ""
    edges: Sequence[float] = ()

    @property
    def key(self) -> str:
        """What the chart is called in an answer: it follows from what is drawn."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:8]

    def to_json(self) -> dict[str, Any]:
        """Return what ``from_json`` takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: object) -> Chart | None:
        """Rebuild what ``to_json`` wrote; None for anything else, such as what a retention rule has left of it."""
        if not isinstance(data, Mapping):
            return None
        try:
            chart = cls(**{**data, "series": [Series(**series) for series in data["series"]]})
            _checked(chart)
        except (KeyError, TypeError, ValueError):
            return None
        return chart

    def rows(self) -> list[list[str | float | None]]:
        """Return the numbers as a table, names first: a row for each label, bin or place on the axis."""
        if self.kind == "histogram":
            head: list[str | float | None] = ["From", "To", *(s.name for s in self.series)]
            bins = zip(self.edges[:-1], self.edges[1:], *(s.y for s in self.series), strict=True)
            return [head, *(list(row) for row in bins)]
        if self.labels:
            values = zip(self.labels, *(s.y for s in self.series), strict=True)
            return [[self.x_label, *(s.name for s in self.series)], *(list(row) for row in values)]
        points = [[s.name, x, y] for s in self.series for x, y in zip(s.x, s.y, strict=True)]
        return [["", self.x_label or "x", self.y_label or "y"], *points]


def chart_made(
    kind: str,
    title: str,
    series: Sequence[Mapping[str, Any]],
    *,
    labels: Sequence[str] = (),
    x_label: str = "",
    y_label: str = "",
    bins: int = 0,
) -> Chart:
    """Return a chart of what a model gave.

    Args:
        series: each with ``name`` and ``values``, some with ``x``.
        bins: of a histogram; 0 chooses as many as the numbers ask for.

    Raises:
        CannotDraw: says what is wrong, and what would work.
    """
    if kind not in KINDS:
        raise CannotDraw(f"There is no chart {kind!r}: use one of {', '.join(KINDS)}.")
    if not 1 <= len(series) <= MOST_SERIES:
        raise CannotDraw(f"A chart has 1 to {MOST_SERIES} series, and this has {len(series)}.")
    if not title.strip():
        raise CannotDraw("Give the chart a title that says what it shows.")
    made = [_series(number, one) for number, one in enumerate(series, 1)]
    if len({one.name for one in made}) < len(made):
        raise CannotDraw("Two series have the same name: give each its own.")
    if sum(len(one.y) for one in made) > MOST_POINTS:
        raise CannotDraw(f"A chart has at most {MOST_POINTS:,} values: leave some out, or sum them up.")
    edges: Sequence[float] = ()
    if kind == "histogram":
        made, edges = _binned(made, bins)
        labels = ()
    elif kind == "scatter":
        labels = ()
    elif kind == "line" and any(one.x for one in made):
        labels, made = (), [_in_order(one) for one in made]
    else:
        labels = labels or [str(number) for number in range(1, max(len(one.y) for one in made) + 1)]
    chart = Chart(
        kind,
        _short(title, _TITLE),
        made,
        [_short(str(label), _LABEL) for label in labels],
        _short(x_label, _LABEL),
        _short(y_label, _LABEL),
        edges,
    )
    _checked(chart)
    return chart


def _series(number: int, given: Mapping[str, Any]) -> Series:
    name = _short(str(given.get("name") or f"Series {number}"), _NAME)
    values = [_number(value, name) for value in given.get("values") or ()]
    places = [_number(value, name) for value in given.get("x") or ()]
    if all(value is None for value in values):
        raise CannotDraw(f"The series {name!r} has no values: give it at least one number.")
    if any(place is None for place in places):
        raise CannotDraw(f"The series {name!r} has an x that is null: leave the point out instead.")
    return Series(name, values, [place for place in places if place is not None])


def _number(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise CannotDraw(f"{str(value)[:40]!r} in the series {name!r} is not a number; use null for a gap.")
    if abs(value) > _MOST:  # not written into the message: an int can have any number of digits
        raise CannotDraw(f"A value in the series {name!r} is too large: give the values in a larger unit.")
    if 0 < abs(value) < _LEAST:
        raise CannotDraw(f"A value in the series {name!r} is too small: give the values in a smaller unit.")
    return value


def _in_order(one: Series) -> Series:
    if len(one.x) != len(one.y):
        return one  # refused with the others, in words for all kinds
    pairs = sorted(zip(one.x, one.y, strict=True), key=lambda pair: pair[0])
    return Series(one.name, [y for _x, y in pairs], [x for x, _y in pairs])


def _binned(series: Sequence[Series], bins: int) -> tuple[list[Series], list[float]]:
    """Count values in bins that all series share; a value on an edge belongs to the bin that begins there."""
    values = [value for one in series for value in one.y if value is not None]
    low, high = min(values), max(values)
    if low == high:
        low, high = low - 0.5, high + 0.5
    count = min(bins if bins > 0 else math.ceil(math.log2(len(values))) + 1, _BINS)  # Sturges' rule
    width = (high - low) / count
    edges = [low + width * number for number in range(count)] + [high]
    counted = []
    for one in series:
        found = [0] * count
        for value in one.y:
            if value is not None:
                found[min(int((value - low) / width), count - 1)] += 1
        counted.append(Series(one.name, found))
    return counted, edges


def _checked(chart: Chart) -> None:
    """Raise CannotDraw for a chart whose numbers don't fit each other."""
    if chart.kind == "histogram":
        if any(len(one.y) + 1 != len(chart.edges) for one in chart.series):
            raise CannotDraw("The bins and their counts differ.")
        return
    for one in chart.series:
        if chart.labels and len(one.y) != len(chart.labels):
            raise CannotDraw(
                f"The series {one.name!r} has {len(one.y)} values and there are {len(chart.labels)} labels: give one value "
                "for each label, null where there is none."
            )
        if not chart.labels and len(one.x) != len(one.y):
            raise CannotDraw(
                f"The series {one.name!r} has {len(one.y)} values and {len(one.x)} numbers in x: give as many x as values."
            )
    if chart.kind == "bar" and len(chart.labels) * len(chart.series) > MOST_BARS:
        raise CannotDraw(f"At most {MOST_BARS} bars fit: leave some out, or draw a line.")


def _short(text: str, most: int) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
