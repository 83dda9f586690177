"""Markdown's marks, which no quote shows. Pure."""

from __future__ import annotations

import re

COMMENT = re.compile(r"<!--.{0,2000}?-->", re.DOTALL)
"""What its author told other authors; no page shows it."""
_MARKUP = (
    (COMMENT, ""),
    (
        re.compile(r"!?\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s\"[^\"]*\")?\)"),
        r"\1",
    ),
    (re.compile(r"(?<![\\\w*])(\*{1,3})(?=[^\s*])(.{1,500}?)(?<=[^\s*\\])\1(?![\w*])"), r"\2"),
    (re.compile(r"(?<![\\\w_])(_{1,3})(?=[^\s_])(.{1,500}?)(?<=[^\s_\\])\1(?![\w_])"), r"\2"),
    (re.compile(r"(?<!`)(`{1,2})(?=[^`])(.{1,500}?)(?<=[^`])\1(?!`)"), r"\2"),
    (re.compile(r"<br\s*/?>"), " "),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)


def unmarked(text: str) -> str:
    """Return a text on one line without the marks of links, stress, code and escapes."""
    for pattern, shown in _MARKUP:
        text = pattern.sub(shown, text)
    return text
