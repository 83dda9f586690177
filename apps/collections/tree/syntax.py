"""Find where a text breaks the grammar of its language. Runs in the limited child."""

from __future__ import annotations

import ast
import json
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_PROBLEMS = 50
Problem = dict[str, Any]


def problems(text: str, language: str) -> list[Problem]:
    """Return ``line``, ``column`` (from 1) and ``message`` of each problem found; the first ones only.

    Args:
        language: ``python``, ``json``, ``toml``, ``yaml``, or one that there is a tree-sitter grammar for.
    """
    check = _CHECKS.get(language)
    return check(text) if check else list(_by_grammar(text, language))


def _python(text: str) -> list[Problem]:
    sys.setrecursionlimit(3000)
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text)
    except SyntaxError as error:
        return [_problem(error.lineno or 1, error.offset or 1, error.msg)]
    except (RecursionError, MemoryError):
        return [_problem(1, 1, "nested too deeply")]
    except ValueError as error:
        return [_problem(1, 1, str(error))]  # a NUL character
    return []


def _json(text: str) -> list[Problem]:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return [_problem(error.lineno, error.colno, error.msg)]
    except RecursionError:
        return [_problem(1, 1, "nested too deeply")]
    return []


def _toml(text: str) -> list[Problem]:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return [_problem(*_place(str(error)), str(error))]
    except RecursionError:
        return [_problem(1, 1, "nested too deeply")]
    return []


def _place(message: str) -> tuple[int, int]:
    """Read "(at line 3, column 5)", which is all that older versions of tomllib tell."""
    words = message.rstrip(")").replace(",", "").split()
    if "line" in words and "column" in words:
        return int(words[words.index("line") + 1]), int(words[words.index("column") + 1])
    return 1, 1


def _yaml(text: str) -> list[Problem]:
    import yaml

    try:
        for _ in yaml.parse(text, Loader=yaml.SafeLoader):
            pass  # events only: nothing is built, so aliases cannot grow
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return [_problem(*place, str(error.problem or error))]
    except yaml.YAMLError as error:
        return [_problem(1, 1, str(error))]
    except RecursionError:
        return [_problem(1, 1, "nested too deeply")]
    return []


def _by_grammar(text: str, language: str) -> Iterator[Problem]:
    from tree_sitter import Parser

    from apps.collections.ingestion.code.programming_languages import grammar_of

    tree = Parser(grammar_of(language)).parse(text.encode("utf-8", errors="replace"))
    waiting: list[Node] = [tree.root_node] if tree.root_node.has_error else []
    found = 0
    while waiting and found < MAX_PROBLEMS:
        node = waiting.pop()
        if node.is_missing or node.is_error:
            row, column = node.start_point
            what = f"“{node.type}” is missing" if node.is_missing else "this does not belong here"
            yield _problem(row + 1, column + 1, what)
            found += 1
            continue
        waiting.extend(child for child in reversed(node.children) if child.has_error or child.is_missing)


def _problem(line: int, column: int, message: str) -> Problem:
    return {"line": line, "column": column, "message": message[:300]}


_CHECKS: dict[str, Callable[[str], list[Problem]]] = {
    "python": _python,
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
}
