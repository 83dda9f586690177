"""What is missing is named in words that translators get to see."""

from __future__ import annotations

import ast
from pathlib import Path

from django.utils.translation import override

from basics import errors
from config.missing_nouns import NOUNS

_ROOT = Path(__file__).parents[2]


def _nouns(tree: ast.AST) -> set[str]:
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Missing"
        and node.args
    ]
    parts = [part for call in calls for part in ast.walk(call.args[0])]
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def test_every_noun_is_listed_for_translators() -> None:
    """A word that is missing from the list would stay English in every language."""
    files = [path for folder in ("apps", "platform") for path in (_ROOT / folder).rglob("*.py")]
    used = {noun for path in files for noun in _nouns(ast.parse(path.read_text(encoding="utf-8")))}
    assert {"collection", "chunk", "API key"} <= used
    assert used <= {str(noun) for noun in NOUNS}


def test_the_sentence_is_whole_in_english() -> None:
    """The source language is what the code says."""
    with override("en"):
        assert errors.Missing("file").message == "This file does not exist, or you don't have access to it."
