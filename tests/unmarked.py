"""Text that people see and no translator is shown: in templates, and in what rows keep."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from typing import NamedTuple

TOKEN = re.compile(
    r"\{%\s*(?P<whole>comment|verbatim|blocktranslate)\b.*?%\}.*?\{%\s*end(?P=whole)\s*%\}"
    r"|\{%\s*block\s+(?:maincls|entry_class)\s*%\}.*?\{%\s*endblock\s*%\}"  # names of style classes
    r"|\{%\s*(?P<tag>\w+)(?P<arguments>.*?)%\}"
    r"|\{\{(?P<value>.*?)\}\}"
    r"|\{#.*?#\}",
    re.S,
)
QUOTED = r"\"[^\"]*\"|'[^']*'"
FALLBACK = re.compile(rf"\|(?:default|default_if_none|yesno):({QUOTED})")
ARGUMENT = re.compile(rf"\s(\w+)=({QUOTED})")
SAID_BY_NAME = {"title", "text", "word", "head", "label", "noun"}
"""Arguments of included templates that are put on the page whatever they hold; others, when they hold a phrase."""

SAID = {
    *(
        "title",
        "aria-label",
        "aria-description",
        "aria-roledescription",
        "aria-valuetext",
        "placeholder",
        "alt",
    ),
    *("hx-confirm", "hx-prompt", "data-confirm", "data-done", "data-label"),
}
CODE = {"code", "kbd", "pre", "samp", "script", "style", "textarea", "var"}

WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
SHAPES = re.compile(r"&#?\w+;|\S+/\S+@\S+|\S+/\S+\.\w+|\*\.\w+|SHA-256")
"""What isn't read as words: entities, shapes of names (a model, a file, a pattern of files), a checksum."""

ALLOWED = {
    *("Groundwork", "BM25", "F1", "JSON", "MCP", "REST", "API", "SAML", "SCIM", "OIDC", "ID", "URL"),
    *("ms", "s", "h", "k", "B", "KB", "MB", "GB", "USD"),
    *("A", "b", "c", "n", "p", "v", "x", "y"),  # an arm, a passage's number, a statistic
}
"""Names and units that are the same in every language."""


class Unmarked(NamedTuple):
    """A text that no translator is shown.

    Attributes:
        line: Where it begins.
        text: What it says, on one line.
    """

    line: int
    text: str


def unmarked(source: str) -> list[Unmarked]:
    """Return what a template says outside of ``translate``, ``blocktranslate`` and ``_()``, and its ``pluralize``.

    Args:
        source: The template's source.
    """
    found: list[Unmarked] = []

    def note(at: int, text: str) -> None:
        found.append(Unmarked(source.count("\n", 0, at) + 1, text))

    def plain(token: re.Match[str]) -> str:
        """Return what a token puts on the page by its own words, as long as the token and on as many lines."""
        said = ""
        if value := token["value"]:
            said = " ".join(literal[1:-1] for literal in FALLBACK.findall(value))
            if "|pluralize" in value:
                note(token.start(), token[0])
        elif token["tag"] in {"firstof", "cycle"}:
            said = " ".join(literal[1:-1] for literal in re.findall(QUOTED, token["arguments"]))
        elif token["tag"] in {"include", "with", "element"}:
            for name, literal in ARGUMENT.findall(token["arguments"]):
                if has_words(literal) and (name in SAID_BY_NAME or is_phrase(name, literal[1:-1])):
                    note(token.start(), f"{name}={literal}")
            for literal in FALLBACK.findall(token["arguments"]):
                if has_words(literal):
                    note(token.start(), literal)
        return said.ljust(len(token[0]) - token[0].count("\n")) + "\n" * token[0].count("\n")

    page = _Page()
    page.feed(TOKEN.sub(plain, source))
    page.close()
    return sorted(found + page.found)


def has_words(text: str) -> bool:
    """Return whether a text holds words of a language.

    Args:
        text: The text, entities and all.
    """
    return any(word not in ALLOWED for word in WORD.findall(SHAPES.sub(" ", text)))


def is_phrase(name: str, value: str) -> bool:
    """Return whether an argument looks like words for people, not like a name of the code.

    Args:
        name: Of the argument.
        value: Its literal, without quotes.
    """
    return name not in {"class", "cls"} and bool(re.match(r"[A-Z][a-z]|\S+ \S", value))


class _Page(HTMLParser):
    """Collects the words of a page whose Django tokens have been taken out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[Unmarked] = []
        self.code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.code += tag in CODE

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_button = tag == "input" and dict(attrs).get("type") in {"submit", "button", "reset"}
        for name, value in attrs:
            if not value or not has_words(value):
                continue
            if (
                name in SAID
                or (name == "value" and is_button)
                or (name == "label" and tag in {"optgroup", "track"})
            ):
                before = (self.get_starttag_text() or "").partition(value)[0]
                self.note(before, f'{name}="{" ".join(value.split())}"')

    def handle_endtag(self, tag: str) -> None:
        self.code -= tag in CODE and self.code > 0

    def handle_data(self, data: str) -> None:
        if not self.code and has_words(data):
            self.note(data[: len(data) - len(data.lstrip())], data)

    def note(self, before: str, text: str) -> None:
        self.found.append(Unmarked(self.getpos()[0] + before.count("\n"), " ".join(text.split())))


KEPT_CALLS = {
    "Problem": 2,
    "RowError": 1,
    "SourceError": 0,
    "NotTaken": 0,
    "unscored": 1,
    "UnreadError": 0,
    "Judgement": 3,
    "EntryFailure": 1,
    "ParseEnded": 0,
    "text_reading": 1,
    "job_end": 3,
    "_abandon": 2,
    "dropped": 0,
    "Failed": 0,
    "Halted": 0,
    "_halted": 1,
    "job_halt": 1,
    "trial_fail": 1,
    "trial_wait": 1,
    "experiment_halt": 1,
}
"""Calls whose text a row keeps, with the place of that argument; refusals have it at 1."""
REFUSALS = {"DomainError", "Invalid", "Denied", "TryAgain", "Conflict"}
MARKS = {"_", "gettext", "ngettext", "pgettext"}


def refusals(trees: Iterable[ast.AST]) -> set[str]:
    """Return the names of the classes that derive from ``DomainError`` and take a code and a message.

    Args:
        trees: All modules.
    """
    parents = {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not any(_says_itself(part) for part in node.body)
    }
    found = set(REFUSALS)
    while more := {name for name, bases in parents.items() if bases & found} - found:
        found |= more
    return found


def untold(tree: ast.AST, raised: set[str]) -> list[Unmarked]:
    """Return the texts of a module that rows keep, or that a refusal says, and that can't be told in another language.

    Args:
        tree: The module.
        raised: The classes that ``refusals`` found.
    """
    nodes = list(ast.walk(tree))
    texts = list(_texts(nodes, raised))
    found = [
        Unmarked(node.lineno, f"{name}: import it from basics.texts")
        for node in nodes
        if texts and isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation"
        for name in (alias.name for alias in node.names)
        if name in MARKS
    ]
    return found + [Unmarked(text.lineno, ast.unparse(text)) for text in texts if _is_bare(text)]


def unkept(tree: ast.AST) -> list[Unmarked]:
    """Return the sentences of a module that no translator is shown, wherever they stand: constants, returns, arguments.

    Left out are docstrings, help texts, log lines and what only programmers see.

    Args:
        tree: The module.
    """
    return [Unmarked(text.lineno, said) for text, said in _sentences(tree)]


BEGINNING = re.compile(r"[\"“(]?[A-Z\d“\0]")
UNSEEN_CALLS = {
    "ValueError",
    "TypeError",
    "RuntimeError",
    "AssertionError",
    "LookupError",
    "ToolError",
    "compile",
}
UNSEEN_ARGUMENTS = {"help_text", "description", "help"}


def _sentences(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.Call):
        name = _called(node.func)
        last = name.rpartition(".")[2]
        if last in MARKS | {"gettext_noop", "gettext_lazy", "ngettext_lazy", "pgettext_lazy"} | UNSEEN_CALLS:
            return
        if name.startswith(("log.", "logger.")):
            return
    if isinstance(node, ast.keyword) and node.arg in UNSEEN_ARGUMENTS:
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Constant | ast.JoinedStr):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        said = "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in parts)
        words = said.split()
        if len(words) > 2 and words[-1][-1] in ".!?" and BEGINNING.match(words[0]):
            yield node, " ".join(words).replace("\0", "…")
        return
    for child in ast.iter_child_nodes(node):
        yield from _sentences(child)


def _texts(nodes: list[ast.AST], raised: set[str]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.Call):
            name = _called(node.func).rpartition(".")[2]
            place = KEPT_CALLS.get(name, 1 if name in raised else None)
            if place is not None and len(node.args) > place:
                yield node.args[place]


def _called(function: ast.expr) -> str:
    """Return the dotted name that is called, as far as it is one; ``ast.unparse`` takes several times as long."""
    if isinstance(function, ast.Attribute):
        return f"{_called(function.value)}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def _is_bare(text: ast.expr) -> bool:
    if isinstance(text, ast.IfExp):
        return _is_bare(text.body) or _is_bare(text.orelse)
    if isinstance(text, ast.BoolOp):
        return any(map(_is_bare, text.values))
    if isinstance(text, ast.JoinedStr):
        return True
    return isinstance(text, ast.Constant) and isinstance(text.value, str) and " " in text.value


def _says_itself(part: ast.stmt) -> bool:
    """Tell whether a class takes another first argument than a code: then its own module says what it says."""
    if not isinstance(part, ast.FunctionDef) or part.name != "__init__":
        return False
    return [one.arg for one in part.args.args[1:3]] != ["code", "message"]


def shadowed(source: str) -> list[int]:
    """Return the lines of functions in which ``_`` marks texts and is the name of something else as well.

    Python takes it for the other there, also before it is assigned, so that the text fails when it is to be said.
    """
    return [
        scope.lineno
        for scope in ast.walk(ast.parse(source))
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef)
        for own in [[*_own(scope)]]
        if any(isinstance(n, ast.Name) and n.id == "_" and isinstance(n.ctx, ast.Store) for n in own)
        and any(isinstance(n, ast.Call) and getattr(n.func, "id", "") == "_" for n in own)
    ]


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield what a function's body is made of, without the scopes inside of it that have names of their own."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp)
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, (*inner, ast.DictComp, ast.GeneratorExp)):
            yield child
            yield from _own(child)


ENGLISH_NUMBER = re.compile(r",.*|\.[123]f|\.\d%|\.?\d*g")
"""Formats that group thousands or have a point, as English does and other languages don't."""


def unlocal(tree: ast.AST) -> list[Unmarked]:
    """Return the numbers of a module that are written in English for everyone, not by ``number_told``.

    Args:
        tree: The module.
    """
    return [
        Unmarked(node.lineno, ast.unparse(node.value))
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue)
        and isinstance(node.format_spec, ast.JoinedStr)
        and ENGLISH_NUMBER.fullmatch(ast.unparse(node.format_spec)[2:-1])
    ]
