"""Replace stretches of a program without moving its lines."""

from __future__ import annotations

import ast


class Edits:
    """Replacements of stretches of the source, which keep the number of lines."""

    def __init__(self, source: str) -> None:
        self._raw = source.encode()
        self._starts = [0]
        for line in self._raw.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._edits: list[tuple[int, int, str]] = []

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset
        end_line, end_col = node.end_lineno or node.lineno, node.end_col_offset or 0
        return start, self._starts[end_line - 1] + end_col

    def _lines(self, start: int, end: int) -> int:
        return self._raw.count(b"\n", start, end)

    def expression(self, old: ast.expr, text: str) -> None:
        start, end = self._span(old)
        self._edits.append((start, end, f"({text}{chr(10) * self._lines(start, end)})"))

    def statement(self, old: ast.stmt, text: str) -> None:
        start, end = self._span(old)
        self._edits.append((start, end, text + "\n" * self._lines(start, end)))

    def base_drop(self, node: ast.ClassDef) -> None:
        start, end = self._span(node.bases[0])
        self._edits.append((start, end, ""))

    def decorator_drop(self, node: ast.expr) -> None:
        start, end = self._span(node)
        self._edits.append((self._raw.rindex(b"@", 0, start), end, ""))

    def apply(self) -> str:
        out, at = [], 0
        for start, end, text in sorted(self._edits):
            if start < at:
                continue  # Inside what was replaced as a whole.
            out += [self._raw[at:start], text.encode()]
            at = end
        out.append(self._raw[at:])
        return b"".join(out).decode()
