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
    r"^(?:notes?|comments?|remarks?|links?|source|index|id|#|no|column|col|gap|examples?|status|reason|details?|more|see)\b",
    re.IGNORECASE,
)
_NO_CELL = re.compile(
    r"(?:n/?a|none|no|yes|tbd|unknown|not applicable|see\b.*|ask\b.*|same\b.*|as above|ditto|[-–—✓✔✅❌xX?*./…\s]*)$",
    re.IGNORECASE,
)
"""What a cell says that says nothing alone."""
_MARKS = re.compile(
    r"\*\*|`|\\(?=[|*_<>\[\]])|<br ?/?>|\[\^\w+\]"
    r"|!?\[(?P<link>[^\]\[]*)\](?:\([^)]*\)|\[[^\]\[]*\])|(?<!\w)\*(?P<weak>[^*\s][^*]*)\*(?!\w)"
)
_FIGURE = re.compile(r"[$€£]?[+-]?\d[\d.,]*(?: ?(?:%|[a-zA-Z]{1,9}\.?)){0,2}")
_BETWEEN = re.compile(r"(?<!\\)\|")
LEAST_CELL, LONGEST_CELL, LONGEST_TOLD = 2, 90, 400


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it stands in its passage, and a question about one of its cells.

    Attributes:
        text: the whole row, to be quoted.
        subject: what the row is about.
        told: the cell that is asked for, which alone is the answer.
        column: what the head calls that cell, with what it calls the first; rows of the same column can be compared.
    """

    text: str
    subject: str
    question: str
    told: str
    column: str


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
        parts = _BETWEEN.split(line.strip()[1:].removesuffix("|"))
    elif " | " in line:
        parts = line.split(" | ")
    else:
        parts = _LEADERS.split(line) if _CODE.match(line.strip().split(" ", 1)[0]) else []
    return [_MARKS.sub(lambda m: m["link"] or m["weak"] or "", part).strip(" |") for part in parts]


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
    rows = [Row(line, f"the code {name}", f"What does the code {name} cover?", what, "")]
    if len(cells) > 2 and _RATE.match(cells[2]):
        question = f"What is the rate for {name}, {what}?"
        rows.append(Row(line, f"{name}, {what},", question, cells[2], "rate"))
    return rows


def _of_head(line: str, name: str, cells: list[str], head: list[str], title: str) -> list[Row]:
    """Ask for the first cell that says something and that its head names with a plain noun, and for the first figure."""
    if not _NAME.match(head[0]) or _NO_CELL.match(name) or name.endswith((".", ":")):
        return []
    kind = _kind(head[0])
    of = f"“{name}”" if kind == "name" else f"the {kind} “{name}”"
    found: list[Row] = []
    for column, cell in zip(head[1:], cells[1:], strict=True):
        is_named = _NAME.match(column) and not _NO_HEAD.match(column)
        if is_named and LEAST_CELL <= len(cell) <= LONGEST_TOLD and not _NO_CELL.match(cell) and cell != name:
            question = f"What is given as “{column}” for {of} in {title}?"
            if not found or is_figure(cell):
                found.append(Row(line, of, question, cell, f"{column} of {head[0]}"))
            if is_figure(cell):
                break
    return found


def is_figure(cell: str) -> bool:
    """Tell whether a cell has one figure with its unit, which can be compared with another."""
    return _FIGURE.fullmatch(cell) is not None


def unit_of(cell: str) -> str:
    """Return what is not the number of a figure."""
    return re.sub(r"[\d.,\s]+", "", cell)


def _kind(head: str) -> str:
    """Return a head as a noun within a sentence: “Field Name” is a field name, an “SKU” stays one."""
    return " ".join(word if word[1:] != word[1:].lower() else word.lower() for word in head.split())
