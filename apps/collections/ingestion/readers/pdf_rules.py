"""The ruled grids of a PDF page: lines and boxes that PDFium draws, joined into the cells of tables."""

from __future__ import annotations

import ctypes
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium_c

MIN_PATHS = 6  # a table of two by two cells is drawn with at least six lines
_MAX_OBJECTS = 30_000
_MAX_RULES = 1500  # of one direction, after joining: more is a drawing
_THIN = 3.0
_SHORT = 4.0
_SNAP = 3.0
_MAX_FORM_DEPTH = 3
_MAX_SEGMENTS = 2000

Matrix = tuple[float, float, float, float, float, float]
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_BOUNDS = (ctypes.c_float(), ctypes.c_float(), ctypes.c_float(), ctypes.c_float())


class Rule(NamedTuple):
    """A line along one axis: ``at`` is its place on the other axis, in points."""

    at: float
    low: float
    high: float


class Cell(NamedTuple):
    """A cell, in points from the page's top left corner as it is shown."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class View:
    """Turns PDF coordinates into those of the page as it is shown: from its top left corner, after its rotation.

    Attributes:
        width: of the page without rotation, in points.
        height: of the page without rotation, in points.
        rotation: 0, 90, 180 or 270 degrees clockwise.
        left: of the page's box.
        bottom: of the page's box.
    """

    width: float
    height: float
    rotation: int
    left: float = 0.0
    bottom: float = 0.0

    def box(self, x0: float, y0: float, x1: float, y1: float) -> Cell:
        """Turn a box given by two opposite corners."""
        if not self.rotation:
            a, b = x0 - self.left, x1 - self.left
            top, bottom = self.height - y0 + self.bottom, self.height - y1 + self.bottom
            return Cell(min(a, b), min(top, bottom), max(a, b), max(top, bottom))
        (ax, ay), (bx, by) = self._point(x0, y0), self._point(x1, y1)
        return Cell(min(ax, bx), min(ay, by), max(ax, bx), max(ay, by))

    def _point(self, x: float, y: float) -> tuple[float, float]:
        x, y = x - self.left, y - self.bottom
        if self.rotation == 90:
            return y, x
        if self.rotation == 180:
            return self.width - x, y
        if self.rotation == 270:
            return self.height - y, self.width - x
        return x, self.height - y


def view_of(page: pypdfium2.PdfPage) -> View:
    """Find out how a page is shown."""
    left, bottom, right, top = page.get_cropbox()
    return View(right - left, top - bottom, page.get_rotation(), left, bottom)


def path_count(page: pypdfium2.PdfPage) -> int:
    """Count what is drawn on a page: the cheap test before looking for tables. Forms count as much as is needed."""
    raw = page.raw
    total = pdfium_c.FPDFPage_CountObjects(raw)
    if total > _MAX_OBJECTS:
        return 0
    found = 0
    for i in range(total):
        kind = pdfium_c.FPDFPageObj_GetType(pdfium_c.FPDFPage_GetObject(raw, i))
        if kind == pdfium_c.FPDF_PAGEOBJ_PATH:
            found += 1
        elif kind == pdfium_c.FPDF_PAGEOBJ_FORM:
            found += MIN_PATHS
        if found >= MIN_PATHS:
            break
    return found


def page_grids(page: pypdfium2.PdfPage, view: View) -> list[list[Cell]]:
    """Find the ruled grids of a page, each as its cells, from top to bottom."""
    across: list[Rule] = []
    down: list[Rule] = []
    for box in _boxes(page, view):
        _add_rules(box, across, down)
    across, down = _join(across), _join(down)
    if len(across) < 2 or len(down) < 2 or max(len(across), len(down)) > _MAX_RULES:
        return []
    tables = _group(_cells(across, down))
    return sorted(tables, key=lambda cells: min(cell.top for cell in cells))


def _add_rules(box: Cell, across: list[Rule], down: list[Rule]) -> None:
    width, height = box.right - box.left, box.bottom - box.top
    if height <= _THIN:
        if width >= _SHORT:
            across.append(Rule((box.top + box.bottom) / 2, box.left, box.right))
    elif width <= _THIN:
        if height >= _SHORT:
            down.append(Rule((box.left + box.right) / 2, box.top, box.bottom))
    else:
        across.append(Rule(box.top, box.left, box.right))
        across.append(Rule(box.bottom, box.left, box.right))
        down.append(Rule(box.left, box.top, box.bottom))
        down.append(Rule(box.right, box.top, box.bottom))


def _boxes(page: pypdfium2.PdfPage, view: View) -> Iterator[Cell]:
    budget = [_MAX_OBJECTS]
    raw = page.raw
    for i in range(pdfium_c.FPDFPage_CountObjects(raw)):
        yield from _object_boxes(pdfium_c.FPDFPage_GetObject(raw, i), _IDENTITY, view, budget, depth=0)


def _object_boxes(
    item: object, outer: Matrix, view: View, budget: list[int], *, depth: int
) -> Iterator[Cell]:
    budget[0] -= 1
    if budget[0] < 0:
        return
    kind = pdfium_c.FPDFPageObj_GetType(item)
    if kind == pdfium_c.FPDF_PAGEOBJ_PATH:
        yield from _path_boxes(item, outer, view)
    elif kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth < _MAX_FORM_DEPTH:
        inner = _times(_matrix(item), outer)
        for i in range(pdfium_c.FPDFFormObj_CountObjects(item)):
            child = pdfium_c.FPDFFormObj_GetObject(item, i)
            yield from _object_boxes(child, inner, view, budget, depth=depth + 1)


def _path_boxes(item: object, outer: Matrix, view: View) -> Iterator[Cell]:
    left, bottom, right, top = _BOUNDS
    if not pdfium_c.FPDFPageObj_GetBounds(item, left, bottom, right, top):
        return
    width, height = right.value - left.value, top.value - bottom.value
    if width < _SHORT and height < _SHORT:
        return
    if outer is _IDENTITY and (width <= _THIN or height <= _THIN):
        # Most rules are thin boxes or single lines; their outline need not be walked.
        yield view.box(left.value, bottom.value, right.value, top.value)
        return
    count = pdfium_c.FPDFPath_CountSegments(item)
    if count < 2 or count > _MAX_SEGMENTS:
        return
    matrix = _times(_matrix(item), outer)
    x, y = ctypes.c_float(), ctypes.c_float()
    points: list[tuple[float, float]] = []
    for i in range(count):
        segment = pdfium_c.FPDFPath_GetPathSegment(item, i)
        kind = pdfium_c.FPDFPathSegment_GetType(segment)
        if kind == pdfium_c.FPDF_SEGMENT_BEZIERTO:
            return  # a curve is no rule
        pdfium_c.FPDFPathSegment_GetPoint(segment, x, y)
        if kind == pdfium_c.FPDF_SEGMENT_MOVETO:
            yield from _polygon_boxes(points, view)
            points = []
        a, b, c, d, e, f = matrix
        points.append((a * x.value + c * y.value + e, b * x.value + d * y.value + f))
    yield from _polygon_boxes(points, view)


def _polygon_boxes(points: Sequence[tuple[float, float]], view: View) -> Iterator[Cell]:
    """Give a rectangle as one box, so that a thin filled one is one rule; other outlines give their straight sides."""
    if len(points) < 2:
        return
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    if len(points) in (4, 5) and all(
        abs(a[0] - b[0]) < 0.5 or abs(a[1] - b[1]) < 0.5 for a, b in pairwise(points)
    ):
        yield view.box(min(xs), min(ys), max(xs), max(ys))
        return
    for a, b in pairwise(points):
        if abs(a[0] - b[0]) < 0.5 or abs(a[1] - b[1]) < 0.5:
            yield view.box(*a, *b)


def _matrix(item: object) -> Matrix:
    raw = pdfium_c.FS_MATRIX()
    if not pdfium_c.FPDFPageObj_GetMatrix(item, raw):
        return _IDENTITY
    return (raw.a, raw.b, raw.c, raw.d, raw.e, raw.f)


def _times(first: Matrix, then: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    g, h, i, j, k, m = then
    return (a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m)


def _join(rules: list[Rule]) -> list[Rule]:
    """Bring rules that are almost in line onto one line, and join those that touch."""
    rules.sort(key=lambda rule: rule.at)
    joined: list[Rule] = []
    line: list[Rule] = []
    for rule in [*rules, None]:
        if rule is not None and (not line or rule.at - line[-1].at <= _SNAP):
            line.append(rule)
            continue
        at = sum(r.at for r in line) / len(line) if line else 0.0
        low = high = 0.0
        for number, part in enumerate(sorted(line, key=lambda r: r.low)):
            if number and part.low <= high + _SNAP:
                high = max(high, part.high)
                continue
            if number:
                joined.append(Rule(at, low, high))
            low, high = part.low, part.high
        if line:
            joined.append(Rule(at, low, high))
        line = [rule] if rule is not None else []
    return joined


def _cells(across: list[Rule], down: list[Rule]) -> list[Cell]:
    """Find the smallest boxes between crossing rules whose four sides are drawn."""
    ats = [rule.at for rule in across]
    on_down: list[list[float]] = []
    crossings: dict[float, list[tuple[float, Rule, Rule]]] = defaultdict(list)
    for rule in down:
        low = bisect_left(ats, rule.low - _SNAP)
        high = bisect_right(ats, rule.high + _SNAP)
        on_down.append([])
        for other in across[low:high]:
            if other.low - _SNAP <= rule.at <= other.high + _SNAP:
                crossings[other.at].append((rule.at, other, rule))
                on_down[-1].append(other.at)
    found: list[Cell] = []
    for top, row in crossings.items():
        row.sort(key=lambda crossing: crossing[0])
        for left, (x0, rule0, down0) in enumerate(row):
            cell = _cell_from(top, x0, rule0, down0, row[left + 1 :], across, ats)
            if cell is not None:
                found.append(cell)
    return found


def _cell_from(
    top: float,
    x0: float,
    rule: Rule,
    left: Rule,
    rights: list[tuple[float, Rule, Rule]],
    across: list[Rule],
    ats: list[float],
) -> Cell | None:
    first = bisect_right(ats, top + _SNAP)
    last = bisect_right(ats, left.high + _SNAP)
    for bottom in across[first:last]:
        if not bottom.low - _SNAP <= x0 <= bottom.high + _SNAP:
            continue
        for x1, other, right in rights:
            if other is not rule:
                break
            if right.low <= top + _SNAP and right.high >= bottom.at - _SNAP and bottom.high >= x1 - _SNAP:
                return Cell(x0, top, x1, bottom.at)
    return None


def _group(cells: list[Cell]) -> list[list[Cell]]:
    """Group cells that share a corner."""
    parent = list(range(len(cells)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    by_corner: dict[tuple[float, float], int] = {}
    for i, cell in enumerate(cells):
        for corner in (
            (cell.left, cell.top),
            (cell.right, cell.top),
            (cell.left, cell.bottom),
            (cell.right, cell.bottom),
        ):
            other = by_corner.setdefault(corner, i)
            parent[root(i)] = root(other)
    groups: dict[int, list[Cell]] = defaultdict(list)
    for i, cell in enumerate(cells):
        groups[root(i)].append(cell)
    return list(groups.values())
