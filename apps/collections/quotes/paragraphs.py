"""Which lines of a page make a paragraph. Pure, from the lines' words and lengths alone.

A line's end is a paragraph's end at a blank line, before a list's entry, after a colon, and where the line is so short that
the next word would have stood on it. Over the end of a page a paragraph goes on where its last line ends in no mark and the
next one does not begin anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apps.collections.ingestion.word_parts import UNSPACED
from toolloop.sentences import is_complete, sentence_spans

# East Asia sets no blank behind its bullets.
_BULLET = re.compile(r"[ \t>]*(?:[-*+][ \t]+|[•‣◦▪●■□➢✓][ \t]+|[・●○◎◆◇■□▪★☆※▶►][ \t\u3000]*)\S")
_LETTERED = re.compile(r"[^\W\d_][.]\s")
_NUMBERED = re.compile(
    r"[ \t]*(?:\(?(?:[^\W\d_]|[ivxIVX]{1,5}|\d{1,2}(?:\.\d{1,3}){0,3})[.)]\s+\S"
    # As East Asia numbers its lists: "（一）", "（1）", "一、", "①", "第二条".
    r"|(?:\d{1,2}|[ァ-ン])[．）]\s*\S|[（(](?:[一二三四五六七八九十百]{1,3}|\d{1,2}|[^\W\d_])[）)]\s*\S|(?:[一二三四五六七八九十]{1,3}|\d{1,2})、\S|[①-⑳]\s*\S"
    r"|第[一二三四五六七八九十百\d]{1,4}[条條章]\s*\S)"
)
_LEADER = re.compile(r"(?:\.{4,}|(?:\. ){3,}|…{2,})\s*\w{0,6}\Z")  # an entry of a table of contents
_ROW = re.compile(r"\S(?:\t+| {3,}| \| )\S(?:[^\n]*\S)?(?:\t+| {3,}| \| )\S")  # of a table in plain text
# A line that ends so goes on, whatever begins the next one.
_GOES_ON = re.compile(
    r"(?:[,;–—/&(-]|\b(?:a|an|the|of|and|or|to|in|on|at|by|for|from|with|as|that|which|under|is|are|was|were|be|its|their|this|"
    r"der|die|das|und|oder|von|mit|für|im|zu|le|la|les|de|du|des|et|ou|el|los|y|o|en|e|di|il|No\.|Nos\.|U\.S\.))\Z",
    re.IGNORECASE,
)
_ENDS_ENTRY = re.compile(r"(?:[.;:!?,。；：！？，、؛،؟۔]|\b(?:and|or|und|oder|et|ou|y|o))\Z")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_NEAR = 3
_SHORT = 0.8
_LIST_LEAST = 3


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of a page without its end.

    Attributes:
        start: its offset in the document's text.
        follows_gap: something that is no part of the text stands before it: a running footer, the end of a page.
        begins: the page's look says that a paragraph, a heading or a list's entry begins here.
        goes_on: the page's look says that the line above goes on here.
    """

    start: int
    text: str
    follows_gap: bool = False
    begins: bool = False
    goes_on: bool = False


def is_row(line: str) -> bool:
    """Tell whether a line is a row of a table in plain text: three cells or more, with bars, tabs or wide gaps between."""
    return _ROW.search(line) is not None


def paragraph_lines(lines: Sequence[PageLine], *, is_drawn: bool = False) -> Iterator[list[PageLine]]:
    """Group lines that belong to one paragraph or one entry of a list; blank lines are in none.

    Args:
        is_drawn: the lines are of a page as it is drawn, where a gap may also stand inside of a sentence.
    """
    width = [len(line.text.strip()) for line in lines]
    filled = [i for i, line in enumerate(lines) if line.text.strip()]
    lists = _title_lists(lines, filled, width)
    paragraph: list[PageLine] = []
    for place, i in enumerate(filled):
        before = filled[place - 1] if place else None
        if (
            before is not None
            and paragraph
            and _is_break(lines, filled, place, width, lists, paragraph[0], is_drawn=is_drawn)
        ):
            yield paragraph
            paragraph = []
        paragraph.append(lines[i])
    if paragraph:
        yield paragraph


def _is_break(
    lines: Sequence[PageLine],
    filled: Sequence[int],
    place: int,
    width: Sequence[int],
    lists: frozenset[int],
    first: PageLine,
    *,
    is_drawn: bool,
) -> bool:
    i, before = filled[place], filled[place - 1]
    said, text = lines[before].text.strip(), lines[i].text.strip()
    is_gap = any(line.follows_gap for line in lines[before + 1 : i + 1])
    if _BULLET.match(lines[i].text):
        return True
    # A script without capitals does not say what begins: the length of the line before does.
    begins = not text[0].islower() if text[0].isalpha() else text[0].isdigit() or text[0] in '"“‘«([„「『（《'
    if _LEADER.search(said) or is_row(said) or is_row(text):
        return True
    is_over = is_complete(said) or said.endswith((":", "："))
    # A figure may part the lines of a sentence: what begins small or follows an open word goes on.
    is_open = text[0].islower() or said.endswith(",") or _GOES_ON.search(said) is not None
    if any(line.begins for line in lines[before + 1 : i + 1]) and (is_complete(said) or not is_open):
        return True
    if i - before > 1 or is_gap:
        # A page ends: in mid-sentence the next one goes on.
        if not is_gap:
            return not is_drawn or is_over or not (text[0].islower() or said.endswith(","))
        return is_over or (begins and not _GOES_ON.search(said) and not _is_full(width, filled, place))
    if (
        _NUMBERED.match(text)
        and not _is_cut(said, text)
        and (_ENDS_ENTRY.search(said) or _NUMBERED.match(first.text) or not _is_full(width, filled, place))
    ):
        return True
    if said.endswith((":", "：")) and begins and not _is_full(width, filled, place):
        return True
    if i in lists and before in lists:
        return True
    if lines[i].goes_on:
        return False
    if not begins or (_GOES_ON.search(said) and not is_complete(said)):
        return False
    word = 1 if _UNSPACED.match(text) else len(text.split(None, 1)[0])
    return not _is_full(width, filled, place, word)


def _is_cut(said: str, text: str) -> bool:
    """Tell whether a letter that looks like a list's belongs to what the line above ends in: "Pub." and "L. 117-58"."""
    if not said.endswith(".") or not _LETTERED.match(text):
        return False
    return all(end != len(said) for _, end in sentence_spans(f"{said} {text}"))


def _is_full(width: Sequence[int], filled: Sequence[int], place: int, word: int = 0) -> bool:
    """Tell whether the line before is as long as those around it: it was broken because it was full."""
    before = place - 1
    near = [
        width[filled[n]]
        for n in range(max(0, before - _NEAR), min(len(filled), before + _NEAR + 1))
        if n != before
    ]
    # The longest may be a title above two columns.
    longest = sorted(near)[-2] if len(near) > 1 else max(near, default=0)
    return width[filled[before]] + (1 + word if word else 0) >= _SHORT * longest


def _title_lists(lines: Sequence[PageLine], filled: Sequence[int], width: Sequence[int]) -> frozenset[int]:
    """Find lines that each stand for themselves: names under each other, all short, each beginning anew, none ending."""
    widest = max((width[i] for i in filled), default=0)
    found: set[int] = set()
    run: list[int] = []
    for i in [*filled, None]:
        text = "" if i is None else lines[i].text.strip()
        if (
            i is not None
            and width[i] < _SHORT * widest
            and (text[0].isupper() or text[0].isdigit())
            and not _GOES_ON.search(text)
            and not is_complete(text)
        ):
            run.append(i)
            continue
        if len(run) >= _LIST_LEAST:
            found.update(run)
        run = []
    return frozenset(found)
