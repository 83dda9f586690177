"""The pages for people, and the examples in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "clients/python/README.md"]
_FENCE = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARKER = re.compile(r"<!-- not run: (.*?) -->\s*\Z", re.DOTALL)
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """An example.

    Attributes:
        page: path from the project's root.
        language: as its fence says, "" for commands.
        number: among those of its language on its page, from 0.
        text: what is between the fences.
        not_run: the reason that the page's source gives, "" when it is run.
    """

    page: str
    language: str
    number: int
    text: str
    not_run: str

    def __str__(self) -> str:
        return f"{self.page}:{self.language or 'commands'}{self.number}"


@cache
def blocks() -> tuple[Block, ...]:
    """Return every fenced block of every page."""
    found: list[Block] = []
    for path in PAGES:
        text, page = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        counts: dict[str, int] = {}
        for match in _FENCE.finditer(text):
            marker = _MARKER.search(text[: match.start()])
            number = counts.get(match[1], 0)
            counts[match[1]] = number + 1
            found.append(Block(page, match[1], number, match[2], marker[1] if marker else ""))
    return tuple(found)


def block(page: str, language: str, number: int = 0) -> str:
    """Return the text of one example."""
    (found,) = (b for b in blocks() if (b.page, b.language, b.number) == (page, language, number))
    return found.text


@cache
def inline(page: str) -> tuple[str, ...]:
    """Return what a page sets as code within its sentences."""
    return tuple(_CODE.findall(_FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))))


def commands(text: str) -> list[str]:
    """Return the command lines of a block of commands, without their comments."""
    lines = (re.sub(r"\s+#\s.*$", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
