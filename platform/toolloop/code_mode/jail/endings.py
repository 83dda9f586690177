"""From the exception that ended a program to its ending, with a sentence of advice."""

from __future__ import annotations

from toolloop.code_mode.endings import hint
from toolloop.code_mode.host import ToolHost
from toolloop.code_mode.result import Ending, Problem


def problem_of(kind: str, text: str, line: int, syntax: bool, host: ToolHost) -> Problem:
    """Classify what ended a program.

    Args:
        kind: type of the exception.
        text: its text.
        line: of the program, 0 when unknown.
        syntax: the program itself could not be compiled.
        host: what it called.
    """
    if syntax:
        return Problem(Ending.SYNTAX_ERROR, f"SyntaxError: {text}"[:2000], line)
    ending = host.raised.get((kind, text)) or host.raised.get((kind, _unquoted(text)))
    if kind == "NameError" and (name := text.partition("'")[2].partition("'")[0]):
        text = host.unknown(name) if text == f"name {name!r} is not defined" else text
    shown = f"{kind}: {text}"[:4000] if text else kind
    if ending is not None:
        return Problem(ending, shown, line)
    if kind == "MemoryError":
        return Problem(Ending.LIMIT_MEMORY, shown, line)
    ending = Ending.TYPE_ERROR if kind == "TypeError" else Ending.RUNTIME_ERROR
    return Problem(ending, shown, line, hint(kind, text, host))


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
