"""From the interpreter's exceptions to the endings of a program, with a line and a sentence of advice.

The texts that are compared here are those of pydantic-monty 1.4.0; tests pin every one of them.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

from toolloop.code_mode.backend import Program
from toolloop.code_mode.host import ToolHost
from toolloop.code_mode.names import importable
from toolloop.code_mode.result import Ending, Problem

NOT_SUPPORTED = "The monty syntax parser does not yet support "
SUSPENSIONS = "suspension limit"
TIME = ("time limit exceeded", "sleep limit exceeded")
CANNOT_WAIT = "cannot suspend in this synchronous context"


def problem_of(error: Any, module: Any, program: Program, host: ToolHost) -> Problem:
    """Classify what the interpreter raised.

    Args:
        error: a ``MontyError``.
        module: ``pydantic_monty``.
        program: what ran.
        host: what it called.
    """
    if isinstance(error, module.MontyCrashedError):
        if error.timed_out:
            return Problem(Ending.LIMIT_TIME, "TimeoutError: the interpreter did not answer in time")
        return Problem(Ending.WORKER_CRASHED, f"The interpreter was lost: {str(error)[:300]}")
    shown = error.display("type-msg") if hasattr(error, "traceback") else str(error)
    kind, _, text = shown.partition(": ")
    line = _line(error, program)
    if isinstance(error, module.MontySyntaxError):
        return Problem(Ending.SYNTAX_ERROR, shown[:2000], line)
    ending = host.raised.get((kind, text)) or host.raised.get((kind, _unquoted(text)))
    if ending is not None:
        return Problem(ending, shown[:4000], line)
    return _classified(kind, text, line, program, host)


def _classified(kind: str, text: str, line: int, program: Program, host: ToolHost) -> Problem:
    shown = f"{kind}: {text}"[:4000] if text else kind
    if kind == "NotImplementedError" and text.startswith(NOT_SUPPORTED):
        what = text.removeprefix(NOT_SUPPORTED)
        return Problem(Ending.UNSUPPORTED_SYNTAX, f"{what} cannot be used here.", line)
    if kind == "NotImplementedError" and CANNOT_WAIT in text:
        return Problem(
            Ending.RUNTIME_ERROR,
            shown,
            line,
            "Call the tool in a plain loop or comprehension, then use the results.",
        )
    if kind == "RuntimeError" and text.startswith(SUSPENSIONS):
        return Problem(Ending.LIMIT_CALLS, "The program called out too many times.", line)
    if kind == "TimeoutError" and any(mark in text for mark in TIME):
        return Problem(Ending.LIMIT_TIME, shown, line)
    if kind == "MemoryError":
        return Problem(Ending.LIMIT_MEMORY, shown, line)
    if kind in ("ImportError", "ModuleNotFoundError"):
        advice = f"Importable: {', '.join(importable())}."
        return Problem(Ending.UNSUPPORTED_IMPORT, shown, line, advice)
    if kind == "TypeError":
        return Problem(Ending.TYPE_ERROR, shown, line, hint(kind, text, host))
    return Problem(Ending.RUNTIME_ERROR, shown, line, hint(kind, text, host))


def hint(kind: str, text: str, host: ToolHost) -> str:
    """Return a sentence of advice for an exception, "" for none.

    Args:
        kind: its type.
        text: its text.
        host: what the program called.
    """
    if kind == "KeyError" or (kind == "AttributeError" and "'dict' object" in text):
        wanted = _unquoted(text) if kind == "KeyError" else text.rpartition("attribute ")[2].strip("'")
        shapes = host.keys_seen()
        if shapes:
            known = [key for keys in shapes.values() for key in keys]
            close = difflib.get_close_matches(wanted, known, n=1)
            hint = f"Did you mean {close[0]!r}? " if close else ""
            shown = "; ".join(f"{name}: {', '.join(keys)}" for name, keys in list(shapes.items())[:8])
            access = "" if kind == "KeyError" else "Results are dicts: use result['key']. "
            return f"{access}{hint}Keys in the results so far: {shown}."
    if kind == "NameError":
        return f"Your tools are: {', '.join([*host.names, 'parallel'][:40])}."
    if kind == "AttributeError" and (found := re.search(r"has no attribute '(\w+)'", text)):
        return f"{found[1]} does not exist on it here; write out what it would do, or use lambda x: x.{found[1]}()."
    if kind == "PermissionError" or "not supported in this environment" in text:
        return "There are no files, no network, no environment and no processes here; use the tools."
    if kind == "RecursionError":
        return "Use a loop instead of recursion."
    return ""


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def _line(error: Any, program: Program) -> int:
    """Return the innermost line of the program itself."""
    if not hasattr(error, "traceback"):
        return 0
    own = f"<python-input-{1 if program.lowered.prelude else 0}>"
    lines = [frame.line for frame in error.traceback() if frame.filename == own]
    return lines[-1] if lines else 0
