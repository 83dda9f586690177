"""How the result of a call is shown to people: as a table or a list of facts where it is one, else as text. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

MAX_SHOWN = 20_000
_MAX_ROWS, _MAX_COLUMNS, _MAX_CELL = 100, 12, 200


@dataclass(frozen=True, slots=True)
class ResultView:
    """A result for a page.

    Attributes:
        kind: "table" (columns, rows), "pairs" (rows of name and value) or "text".
        text: the whole, indented where it is JSON, cut at ``MAX_SHOWN`` characters.
        is_cut: there is more than what is shown.
    """

    kind: Literal["table", "pairs", "text"]
    text: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    is_cut: bool = False


def result_view(content: str) -> ResultView:
    """Return how to show what a tool answered."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return ResultView("text", content[:MAX_SHOWN], is_cut=len(content) > MAX_SHOWN)
    if isinstance(value, str):
        return ResultView("text", value[:MAX_SHOWN], is_cut=len(value) > MAX_SHOWN)
    whole = json.dumps(value, ensure_ascii=False, indent=2)
    text, is_cut = whole[:MAX_SHOWN], len(whole) > MAX_SHOWN
    if isinstance(value, dict) and value and all(_is_plain(v) for v in value.values()):
        pairs = [(str(k), _cell(v)) for k, v in list(value.items())[:_MAX_ROWS]]
        return ResultView("pairs", text, rows=pairs, is_cut=is_cut)
    rows = _table_rows(value)
    if not rows:
        return ResultView("text", text, is_cut=is_cut)
    columns = list(dict.fromkeys(key for row in rows for key in row))[:_MAX_COLUMNS]
    shown = [[_cell(row.get(c, "")) for c in columns] for row in rows[:_MAX_ROWS]]
    return ResultView("table", text, columns, shown, is_cut or len(rows) > _MAX_ROWS)


def _table_rows(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not value:
        return []
    is_table = all(isinstance(r, dict) and r and all(_is_plain(v) for v in r.values()) for r in value)
    return value if is_table else []


def _is_plain(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CELL else f"{text[: _MAX_CELL - 1]}…"
