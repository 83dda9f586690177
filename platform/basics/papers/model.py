"""What a document consists of, and how tokens of Markdown become it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from unicodedata import bidirectional

from markdown_it.token import Token

_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ue000-\ue00f\ufffe\uffff]")
_DEEPEST = 8
_LINE = 40


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text in one style, or a reference to a footnote.

    Attributes:
        note: number of the footnote that it refers to; 0 for text.
    """

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    link: str = ""
    note: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: PNG or JPEG, of so many pixels; ``alt`` says what it shows."""

    content: bytes = field(repr=False)
    media_type: str
    width: int
    height: int
    alt: str


Align = Literal["", "center", "right"]
"""Where the lines of a cell stand: at the start, in the middle, or at the end, which is the left in a right-to-left text."""
_ALIGNS: Mapping[str, Align] = {"text-align:center": "center", "text-align:right": "right"}


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a document.

    Attributes:
        kind: of an ``item``, ``mark`` says which; a ``table`` has ``rows``; ``code`` has its text as its only run.
        level: of a heading from 1; otherwise how deep it stands in lists and quotes.
        mark: ``bullet``, ``number``, ``todo`` or ``done``; "" where an item goes on.
        number: of a numbered item.
        rows: cells of runs; the first row is the head.
        aligns: of a table: where the text of each column stands; where it begins if nothing is given.
        picture: of a ``picture``, which has its caption as runs.
    """

    kind: Literal["heading", "paragraph", "item", "code", "table", "quote", "small", "rule", "picture"]
    runs: Sequence[Run] = ()
    level: int = 0
    mark: str = ""
    number: int = 0
    rows: Sequence[Sequence[Sequence[Run]]] = ()
    aligns: Sequence[Align] = ()
    picture: Picture | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A footnote: where something stands, and the words there."""

    title: str
    quote: str = ""


@dataclass(slots=True)
class Paper:
    """A document.

    Attributes:
        notes: the footnotes; their numbers are their places from 1.
    """

    title: str
    blocks: list[Block] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All that it says, footnotes as well."""
        said = [self.title, *(note.title + note.quote for note in self.notes)]
        said += (
            runs_text([*b.runs, *(run for row in b.rows for cell in row for run in cell)])
            for b in self.blocks
        )
        return "".join(said)

    @property
    def size(self) -> int:
        """How many characters it has; each block, cell and line of code counts as a line of its own, however short it is."""
        lines = sum(1 + runs_text(b.runs).count("\n") + sum(map(len, b.rows)) for b in self.blocks)
        return len(self.text) + _LINE * lines


def writable(text: str) -> str:
    """Return a text without characters that no document can have."""
    return _UNWRITABLE.sub("", text)


def is_right_to_left(text: str) -> bool:
    """Tell whether a paragraph runs from right to left: by its first letter, as browsers do."""
    for character in text:
        kind = bidirectional(character)
        if kind in ("L", "R", "AL"):
            return kind != "L"
    return False


def runs_text(runs: Sequence[Run]) -> str:
    """Return what runs say, without references to footnotes."""
    return "".join(run.text for run in runs)


def runs_portioned(runs: Sequence[Run], most: int) -> list[list[Run]]:
    """Cut runs into portions of at most so many characters, between words where there are any."""
    portions: list[list[Run]] = [[]]
    room = most
    for run in runs:
        text = run.text
        while len(text) > room:
            cut = text.rfind(" ", 0, room) + 1 or (room if room == most else 0)
            if cut:
                portions[-1].append(replace(run, text=text[:cut]))
            portions.append([])
            text, room = text[cut:], most
        portions[-1].append(replace(run, text=text))
        room -= len(text)
    return portions


class Reader:
    """Makes blocks of tokens.

    Args:
        notes: number of the footnote for each token's number, see ``Run.note``; a ``cite`` that isn't in it is left out.
        signs: words for each reason of a marked sentence, by the content of its ``flag``; "" ends one.
        link: whether a link may lead to an address.
        pictures: returns the blocks of a picture by its address and its words, where it has a paragraph of its own; none for one
            that isn't known, whose words are given.
    """

    def __init__(
        self,
        notes: Mapping[int, int],
        signs: Mapping[str, str],
        link: Callable[[str], bool],
        pictures: Callable[[str, str], Sequence[Block]] = lambda address, words: (),
    ) -> None:
        self._notes, self._signs, self._link, self._pictures = notes, signs, link, pictures
        self._blocks: list[Block] = []
        self._lists: list[list[int]] = []  # of each open list: the number of its next item, 0 for bullets
        self._quotes, self._sign, self._mark = 0, "", ""
        self._number = 0
        self._rows: list[list[Sequence[Run]]] | None = None
        self._aligns: list[Align] = []

    def blocks(self, tokens: Sequence[Token]) -> list[Block]:
        """Return the blocks of a text."""
        for index, token in enumerate(tokens):
            match token.type:
                case "heading_open" | "paragraph_open" | "th_open" | "td_open":
                    self._text(token, tokens[index + 1])
                case "bullet_list_open":
                    self._lists.append([0])
                case "ordered_list_open":
                    self._lists.append([int(token.attrGet("start") or 1) or 1])
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                case "list_item_open":
                    self._mark, self._number = (
                        ("number", self._lists[-1][0]) if self._lists[-1][0] else ("bullet", 0)
                    )
                    self._lists[-1][0] += self._number > 0
                case "blockquote_open" | "blockquote_close":
                    self._quotes += token.nesting
                case "table_open":
                    self._rows, self._aligns = [], []
                case "tr_open" if self._rows is not None:
                    self._rows.append([])
                case "table_close":
                    self._blocks.append(Block("table", rows=self._rows or (), aligns=self._aligns))
                    self._rows = None
                case "fence" | "code_block":
                    self._blocks.append(
                        Block("code", [Run(writable(token.content).rstrip("\n"))], self._depth)
                    )
                case "hr":
                    self._blocks.append(Block("rule"))
        return self._blocks

    @property
    def _depth(self) -> int:
        return min(len(self._lists) + self._quotes, _DEEPEST)

    def _text(self, opens: Token, inline: Token) -> None:
        children = inline.children or []
        if opens.type == "paragraph_open" and [child.type for child in children] == ["image"]:
            said = "".join(child.content for child in children[0].children or [])
            if blocks := self._pictures(str(children[0].attrGet("src") or ""), said):
                self._blocks += blocks
                return
        runs = self._runs(children)
        if opens.type == "heading_open":
            self._blocks.append(Block("heading", runs, int(opens.tag[1])))
        elif self._rows is not None:
            self._rows[-1].append(runs)
            if opens.type == "th_open":
                self._aligns.append(_ALIGNS.get(str(opens.attrGet("style") or ""), ""))
        elif self._lists:
            task = next((c.content for c in inline.children or [] if c.type == "task"), "")
            mark = {"0": "todo", "1": "done"}.get(task, self._mark)
            self._blocks.append(Block("item", runs, self._depth, mark, self._number))
            self._mark = ""
        else:
            self._blocks.append(Block("quote" if self._quotes else "paragraph", runs, self._depth))

    def _runs(self, tokens: Sequence[Token]) -> list[Run]:
        style, runs = Run(""), list[Run]()

        def say(text: str, **more: object) -> None:
            if text:
                runs.append(replace(style, text=writable(text), **more))  # type: ignore[arg-type]

        for token in tokens:
            match token.type:
                case "strong_open" | "strong_close":
                    style = replace(style, bold=token.nesting > 0)
                case "em_open" | "em_close":
                    style = replace(style, italic=token.nesting > 0)
                case "s_open" | "s_close":
                    style = replace(style, strike=token.nesting > 0)
                case "link_open":
                    address = str(token.attrGet("href") or "")
                    style = replace(style, link=address if self._link(address) else "")
                case "link_close":
                    style = replace(style, link="")
                case "code_inline" | "formula":
                    say(token.content, code=True)
                case "softbreak":
                    say(" ")
                case "hardbreak":
                    say("\n")
                case "cite" if int(token.content) in self._notes:
                    runs.append(Run("", note=self._notes[int(token.content)]))
                case "flag":
                    runs += self._flagged(token.content)
                case "text":
                    say(token.content)
                case "image":
                    say("".join(child.content for child in token.children or []))
        if self._sign:  # a marked sentence ends with its paragraph at the latest
            runs += self._flagged("")
        return runs

    def _flagged(self, reason: str) -> list[Run]:
        said, self._sign = self._sign, self._signs.get(reason, "")
        return [Run(f" [{said}]", italic=True)] if said else []
