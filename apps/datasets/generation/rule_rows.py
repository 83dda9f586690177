"""Rows of tables and of lists of codes, each with a question about one of its cells. Pure, deterministic; English."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_RULE = re.compile(r"^:?-{2,}:?$")
_CODE = re.compile(r"^(?=[^\s]*\d)[A-Z0-9]{1,6}(?:[.\-/][A-Z0-9]{1,6}){1,4}$")
_LEADERS = re.compile(r"\s*\.{4,}\s*")
_RATE = re.compile(r"^(?:Free|\d{1,3}(?:\.\d+)? ?%.{0,40}|\d+(?:\.\d+)?¢/kg.{0,40})$")
_NAME = re.compile(r"^[A-Za-z][A-Za-z /-]{2,39}$")
_NO_HEAD = re.compile(
    r"^(?:notes?|comments?|remarks?|links?|source|index|id|#|no|column|col|gap)\b", re.IGNORECASE
)
_MARKS = re.compile(r"\*\*|`|!?\[([^\]]*)\]\([^)]*\)")
LEAST_CELL, LONGEST_CELL = 3, 90


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it stands in its passage, what it is about, and a question that it answers."""

    text: str
    subject: str
    question: str


def rows_of(text: str, title: str) -> list[Row]:
    """Return the rows that can be asked about: those of tables with a head, and a code with what it stands for.

    Args:
        title: of the document, for questions about what only this table calls so.
    """
    head: list[str] = []
    table: list[tuple[str, list[str]]] = []
    found: list[Row] = []
    previous = ""
    for line in [*text.splitlines(), ""]:
        cells = _cells(line)
        if len(cells) < 2:
            found += _asked(head, table, title)
            head, table = [], []
        elif all(_RULE.match(cell) for cell in cells):
            head, table = _cells(previous), []
        else:
            table.append((" ".join(line.split()), cells))
        previous = line
    return found


def _cells(line: str) -> list[str]:
    if line.lstrip().startswith("|"):
        parts = line.strip()[1:].removesuffix("|").split("|")
    elif " | " in line:
        parts = line.split(" | ")
    else:
        parts = _LEADERS.split(line) if _CODE.match(line.strip().split(" ", 1)[0]) else []
    return [_MARKS.sub(r"\1", part).strip(" |") for part in parts]


def _asked(head: list[str], table: list[tuple[str, list[str]]], title: str) -> list[Row]:
    names = Counter(cells[0] for _, cells in table)
    found = []
    for line, cells in table:
        name = cells[0]
        if names[name] > 1 or not LEAST_CELL <= len(name) <= LONGEST_CELL:
            continue
        if _CODE.match(name):
            found += _of_code(line, name, cells)
        elif len(head) == len(cells) and re.search(r"[A-Za-z]{3}", name):
            found += _of_head(line, name, cells, head, title)
    return found


def _of_code(line: str, name: str, cells: list[str]) -> list[Row]:
    is_cut = " | " not in line and not line.endswith(".")
    what = cells[1].rstrip(". ")
    if is_cut:
        return []
    if not re.match(r"[A-Za-z(\d].{5,}", what) or len(what) > 200:
        return []
    rows = [Row(line, f"the code {name}", f"What does the code {name} cover?")]
    if len(cells) > 2 and _RATE.match(cells[2]):
        rows.append(Row(line, f"the code {name}", f"What is the rate for {name}, {what}?"))
    return rows


def _of_head(line: str, name: str, cells: list[str], head: list[str], title: str) -> list[Row]:
    """Ask for the first cell that its head names with a plain noun."""
    kind = head[0].lower() if _NAME.match(head[0]) else ""
    for column, cell in zip(head[1:], cells[1:], strict=True):
        if _NAME.match(column) and not _NO_HEAD.match(column) and len(cell) >= LEAST_CELL:
            of = f"the {kind} “{name}”" if kind else f"“{name}”"
            question = f"What does {title} give as “{column}” for {of}?"
            return [Row(line, of, question)]
    return []
