"""What stands in a passage as one piece: sentences, lists with their lead, rows of tables. Pure.

Files keep the line breaks of their pages, so a line that ends is no sentence that ends. A break is taken to be one that
somebody made where the next word would have fitted into the line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolloop.best_sentences import split

ENUMERATOR = re.compile(
    r"^(?:(?:\([a-z0-9]{1,4}\)|(?:\d{1,3}(?:\.\d{1,2}){0,3}|[a-z])[.)]|[-*+•●▪◦–—])\s+)+", re.IGNORECASE
)
_LABEL = re.compile(r"^[A-Z]{4,}(?: [A-Z]{2,})*:? (?=[A-Z])")
"""A heading that runs into its sentence: METHODS, CONCLUSIONS, SUMMARY:."""
_BULLET = re.compile(r"\s*[●▪◦•]\s+")
_CODES = re.compile(r"^[‘’“”\"]*\d[\d.; ]+[‘’“”\";.]*(?: and)?$")
_REFERS = re.compile(
    r"\b(?:subdivisions?|sections?|subsections?|paragraphs?|clauses?|items?|notes?|chapters?|titles?|articles?|of|in|under|to|by)$",
    re.IGNORECASE,
)
"""The end of a line that goes on with the number of what it refers to, and not with an item of a list."""
_FITS = 0.85
LONGEST_LIST, MOST_ITEMS = 900, 12


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a passage.

    Attributes:
        text: as it stands there, but for white space, marks of lists and labels before it.
        is_list: a lead that ends in a colon, and the items after it.
        is_edge: it begins the passage, so that the neighbour before may have more of it.
    """

    text: str
    is_list: bool = False
    is_edge: bool = False


def units_of(text: str, headings: Sequence[str] = ()) -> list[Unit]:
    """Return the sentences of a text, and its lists with the sentence that leads to them; no headings, no tables."""
    blocks, is_headed = _blocks(text, headings)
    found: list[Unit] = []
    for place, block in enumerate(blocks):
        for sentence in split(block) or [block]:
            plain = _LABEL.sub("", ENUMERATOR.sub("", sentence))
            found.append(Unit(plain, is_edge=place == 0 and not is_headed and block.startswith(sentence)))
        if block.endswith(":"):
            items = _items(blocks[place + 1 :])
            if len(items) > 1 or (items and _CODES.match(items[0])):
                lead = found[-1].text
                found[-1] = Unit(" ".join([lead, *items]), True, found[-1].is_edge)
    return found


def _items(blocks: Sequence[str]) -> list[str]:
    """Return the items that follow a lead; none where the last one seems to be cut off."""
    items: list[str] = []
    for block in blocks:
        if not (ENUMERATOR.match(block) or _CODES.match(block)) or block.endswith(":"):
            break
        items.append(block)
    is_whole = bool(items) and (items[-1].endswith((".", "’’", ";")) or len(items) < len(blocks))
    return items if is_whole and len(items) <= MOST_ITEMS and len(" ".join(items)) < LONGEST_LIST else []


def _blocks(text: str, headings: Sequence[str]) -> tuple[list[str], bool]:
    """Return paragraphs, list items and lines that stand alone, each on one line; and whether a heading comes first."""
    lines = [" ".join(line.split()) for line in _BULLET.sub("\n● ", text).splitlines()]
    widths = sorted(len(line) for line in lines if line)
    width = widths[3 * len(widths) // 4] if widths else 0
    titles = {" ".join(title.split()).casefold() for title in headings}
    blocks: list[list[str]] = []
    is_open = is_headed = False
    for number, line in enumerate(lines):
        if not line or line.startswith(("|", "#", "```")) or line.casefold() in titles:
            is_open = False
            is_headed = is_headed or not blocks
            continue
        is_item = ENUMERATOR.match(line) and not (blocks and is_open and _REFERS.search(blocks[-1][-1]))
        if not is_open or is_item:
            blocks.append([])
        blocks[-1].append(line)
        after = lines[number + 1] if number + 1 < len(lines) else ""
        is_open = not (line.endswith(":") or _is_ended(line, after, width))
    return [" ".join(block) for block in blocks], is_headed


def _is_ended(line: str, after: str, width: int) -> bool:
    """Tell whether somebody ended a line on purpose: what follows begins anew, though its first word had room."""
    if not after or after[0].islower() or line[-1] in ",-–":
        return False
    is_title = all(word[0].isupper() or len(word) < 4 for word in line.split())
    share = 1.0 if is_title else _FITS
    return len(line) + 1 + len(after.split(" ", 1)[0]) <= share * width
