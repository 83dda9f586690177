"""Text of templates that people see and no translator is shown."""

from __future__ import annotations

import re
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
