"""Charts of slides and sheets: their series as a table, from the values that the file keeps beside the drawing."""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.collections.ingestion.readers.package import Package
from apps.collections.ingestion.readers.tables import one_line

_MAX_POINTS = 5000


@dataclass(slots=True)
class _Series:
    name: list[str] = field(default_factory=list)
    categories: dict[int, str] = field(default_factory=dict)
    values: dict[int, str] = field(default_factory=dict)


def chart_rows(package: Package, part: str) -> tuple[str, list[list[str]]]:
    """Read a chart part.

    Returns:
        Its title ("" if it has none) and rows: a header of series names, then one row for each category.

    Raises:
        ReadFailure: ``corrupt_file`` or ``too_large``.
    """
    title: list[str] = []
    series: list[_Series] = []
    path: list[str] = []
    index = 0
    for event in package.events(part):
        if event.kind == "end":
            path.pop()
        elif event.kind == "start":
            path.append(event.name)
            if event.name == "ser":
                series.append(_Series())
            elif event.name == "pt" and event.attributes.get("idx", "").isdigit():
                index = min(int(event.attributes["idx"]), _MAX_POINTS)
        elif path and path[-1] == "t" and "title" in path and "chart" in path[:3]:
            if "plotArea" not in path:
                title.append(event.name)
        elif path and path[-1] == "v" and series:
            _collect(series[-1], path, index, event.name)
    return one_line("".join(title)), _rows(series)


def _collect(series: _Series, path: list[str], index: int, text: str) -> None:
    if "tx" in path:
        series.name.append(text)
    elif "cat" in path or "xVal" in path:
        series.categories[index] = series.categories.get(index, "") + text
    elif "val" in path or "yVal" in path:
        series.values[index] = series.values.get(index, "") + text


def _rows(series: list[_Series]) -> list[list[str]]:
    points = sorted({i for one in series for i in (*one.values, *one.categories)})
    if not points:
        return []
    rows = [["", *(" ".join(one.name) for one in series)]]
    for i in points:
        category = next((one.categories[i] for one in series if i in one.categories), "")
        rows.append([category, *(one.values.get(i, "") for one in series)])
    return rows
