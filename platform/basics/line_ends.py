"""The ends of lines, which a browser sends as two characters whatever was typed: a limit of characters counts one."""

from __future__ import annotations


def line_ends(text: str) -> str:
    r"""Return a text whose lines end with ``\n`` alone."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
