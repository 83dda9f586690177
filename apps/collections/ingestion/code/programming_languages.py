"""The programming languages that are understood: how a file of one is recognised, and its tree-sitter grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """A language.

    Attributes:
        name: its key here, ``python``.
        label: its name for people.
        media_type: of its files.
        suffixes: file name endings, lower case.
        wheel: the module that carries the grammar.
        entry: the function of that module that gives it.
        separator: between the parts of a qualified name.
        family: languages of one family may refer to each other's symbols.
    """

    name: str
    label: str
    media_type: str
    suffixes: tuple[str, ...]
    wheel: str
    entry: str = "language"
    separator: str = "."
    family: str = ""


_ALL = (
    CodeLanguage("python", "Python", "text/x-python", (".py", ".pyi", ".pyw"), "tree_sitter_python"),
    CodeLanguage(
        "javascript",
        "JavaScript",
        "text/javascript",
        (".js", ".mjs", ".cjs", ".jsx"),
        "tree_sitter_javascript",
        family="javascript",
    ),
    CodeLanguage(
        "typescript",
        "TypeScript",
        "text/x-typescript",
        (".ts", ".mts", ".cts"),
        "tree_sitter_typescript",
        "language_typescript",
        family="javascript",
    ),
    CodeLanguage(
        "tsx",
        "TypeScript with JSX",
        "text/x-tsx",
        (".tsx",),
        "tree_sitter_typescript",
        "language_tsx",
        family="javascript",
    ),
    CodeLanguage("go", "Go", "text/x-go", (".go",), "tree_sitter_go"),
    CodeLanguage("rust", "Rust", "text/x-rust", (".rs",), "tree_sitter_rust", separator="::"),
    CodeLanguage("java", "Java", "text/x-java", (".java",), "tree_sitter_java"),
    CodeLanguage("c", "C", "text/x-c", (".c", ".h"), "tree_sitter_c", family="c"),
    CodeLanguage(
        "cpp",
        "C++",
        "text/x-c++",
        (".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp", ".inl"),
        "tree_sitter_cpp",
        separator="::",
        family="c",
    ),
)
LANGUAGES: dict[str, CodeLanguage] = {language.name: language for language in _ALL}
BY_MEDIA_TYPE: dict[str, CodeLanguage] = {language.media_type: language for language in _ALL}
BY_SUFFIX: dict[str, CodeLanguage] = {suffix: language for language in _ALL for suffix in language.suffixes}

_SHEBANG = re.compile(rb"\A(?:\xef\xbb\xbf)?#![^\n]*?\b(python[\d.]*|node|nodejs|deno|bun)\b")
_CPP_ONLY = re.compile(
    rb"^[ \t]*(?:class\s+\w+|namespace\b|template\s*<|using\s+\w|public:|private:|protected:|#include\s*<[a-z_]+>)|\bstd::",
    re.MULTILINE,
)
# Qt's translations carry TypeScript's suffix, and so do video streams (those are binary, and refused as that).
_XML_START = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<(?:\?xml|!DOCTYPE)", re.IGNORECASE)


def language_of(name: str, head: bytes) -> CodeLanguage | None:
    """Recognise the language of a source file, None if it is not one.

    Args:
        name: the file's name or path; its ending decides.
        head: the first bytes; a shebang decides for a file without ending, and a header's content between C and C++.
    """
    suffix = PurePosixPath(name.replace("\\", "/")).suffix.lower()
    if not suffix:
        return _by_shebang(head)
    language = BY_SUFFIX.get(suffix)
    if language is None or _XML_START.match(head):
        return None
    if suffix == ".h" and _CPP_ONLY.search(head):
        return LANGUAGES["cpp"]
    return language


def _by_shebang(head: bytes) -> CodeLanguage | None:
    match = _SHEBANG.match(head[:400])
    if match is None:
        return None
    return LANGUAGES["python" if match.group(1).startswith(b"python") else "javascript"]


def family_of(language: str) -> str:
    """Name the family of a language: the language itself where it has none."""
    return LANGUAGES[language].family or language


@lru_cache(maxsize=len(_ALL))
def grammar_of(name: str) -> Grammar:
    """Load a grammar; only here, so that nobody pays for a language that is not read."""
    from tree_sitter import Language as Grammar

    language = LANGUAGES[name]
    return Grammar(getattr(import_module(language.wheel), language.entry)())
