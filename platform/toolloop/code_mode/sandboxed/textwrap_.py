"""``textwrap`` for programs."""

import re
from typing import Any


def _pieces(text: str) -> Any:
    """Split into words and blanks; a word may break after its hyphens."""
    out: list[str] = []
    for piece in re.findall(r"\s+|\S+", text):
        if piece.isspace():
            out.append(piece)
            continue
        start = 0
        for i in range(1, len(piece) - 1):
            between = piece[i - 1].isalpha() and piece[i + 1].isalpha()
            if piece[i] == "-" and between and i - start >= 2 and piece[i - 2 : i].isalpha():
                out.append(piece[start : i + 1])
                start = i + 1
        out.append(piece[start:])
    return out


def wrap(
    text: str,
    width: int = 70,
    *,
    initial_indent: str = "",
    subsequent_indent: str = "",
    break_long_words: bool = True,
    break_on_hyphens: bool = True,
    drop_whitespace: bool = True,
    replace_whitespace: bool = True,
    expand_tabs: bool = True,
    max_lines: Any = None,
    placeholder: str = " [...]",
) -> Any:
    if width <= 0:
        raise ValueError(f"invalid width {width!r} (must be > 0)")
    if expand_tabs:
        text = text.expandtabs()
    if replace_whitespace:
        text = re.sub(r"[\n\t\r\v\f]", " ", text)
    pieces = _pieces(text) if break_on_hyphens else re.findall(r"\s+|\S+", text)
    lines: list[str] = []
    i = 0
    while i < len(pieces):
        indent = subsequent_indent if lines else initial_indent
        room = width - len(indent)
        if drop_whitespace and pieces[i].isspace() and lines:
            i += 1
            if i >= len(pieces):
                break
        line: list[str] = []
        length = 0
        while i < len(pieces) and length + len(pieces[i]) <= room:
            line.append(pieces[i])
            length += len(pieces[i])
            i += 1
        if i < len(pieces) and len(pieces[i]) > room:
            if break_long_words:
                space = max(room - length, 1 if room < 1 else 0)
                hyphen = pieces[i].rfind("-", 0, space) if break_on_hyphens else -1
                if hyphen > 0 and pieces[i][:hyphen].strip("-"):
                    space = hyphen + 1
                line.append(pieces[i][:space])
                pieces[i] = pieces[i][space:]
            elif not line:
                line.append(pieces[i])
                i += 1
        if drop_whitespace and line and line[-1].strip() == "":
            line.pop()
        if not line:
            continue
        rest = i < len(pieces) and "".join(pieces[i:]).strip() != ""
        if max_lines is not None and len(lines) + 1 >= max_lines and rest:
            while line and (
                line[-1].isspace() or len("".join(line)) + len(placeholder) > width - len(indent)
            ):
                line.pop()
            lines.append(indent + "".join(line) + (placeholder if line else placeholder.lstrip()))
            return lines
        lines.append(indent + "".join(line))
    return lines


def fill(text: str, width: int = 70, **options: Any) -> str:
    return "\n".join(wrap(text, width, **options))


def shorten(text: str, width: int, *, placeholder: str = " [...]") -> str:
    words = " ".join(text.strip().split())
    return "\n".join(wrap(words, width, max_lines=1, placeholder=placeholder))


def dedent(text: str) -> str:
    lines = [line if line.strip() else "" for line in text.split("\n")]
    margin = None
    for line in lines:
        if not line:
            continue
        blank = line[: len(line) - len(line.lstrip(" \t"))]
        if margin is None:
            margin = blank
        while not blank.startswith(margin):
            margin = margin[:-1]
    size = len(margin or "")
    return "\n".join([line[size:] for line in lines])


def indent(text: str, prefix: str, predicate: Any = None) -> str:
    out = []
    for line in text.splitlines(True):
        wanted = predicate(line) if predicate is not None else line.strip() != ""
        out.append(prefix + line if wanted else line)
    return "".join(out)
