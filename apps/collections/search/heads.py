"""Where a passage tells of a code: at the head of a line, a row or a section of its own, or only in passing.

A schedule's line “9903.74.08 Parts of heavy vehicles … 25%” says what the code is; a note that reads “as provided for in
headings 9903.74.08 and 9903.74.09” mentions it. Lines of a PDF end anywhere, so a code at the start of one is its head
only where the line before leads to nothing and the code isn't followed by words that carry a sentence on. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from apps.collections.ingestion.codes import Code, plain
from apps.collections.ingestion.lexical import STOP_WORDS
from toolloop.language_detection import TAGS, function_words, language_or_script

HEAD, LISTED = 2, 1
"""How a passage tells of a code: at the head of a section or of a line that says more; in a line or a cell of its own."""
_HEAD_CHARS = 200  # of a line: enough for a label, a code and the word behind it
_NAMES = """
    account application art article articles case cas catalog cfr chapter class clause code codes docket file heading
    headings hs hts htsus id invoice item items line lines list lists model nos number numbers order paragraph part parts
    product reference regulation section sections serial sku subheading subheadings subpart table tariff type version
"""
_NAMED = frozenset(_NAMES.split())
_CARRIED_ON = frozenset(
    """
    applies apply become becomes cited covers covered contain contains describe described except following inclusive
    include includes including may must not provide provided provides refer referred refers remain replace replaced see
    shall subject supersede superseded under which whose
    """.split()
)
_FUNCTION_WORDS = frozenset(STOP_WORDS.union(*(function_words(name) for name in TAGS)))
_ENGLISH = STOP_WORDS | function_words("English")
# Marks of a list, a heading or a table, an item's number, and what a line calls its code: “| ”, “## ”, “(a) ”, “Part No. ”.
_LEAD = re.compile(
    r"(?:[\s|>#*+\-•–—·§\"'“”‘’`]+|\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)]\s+)*"
    r"(?:(?:(?:public|private|static|async|export|final|pub)\s+)*"
    r"(?:def|class|func|function|fn|interface|struct|enum|trait|type|const|let|var|procedure|table|view)\s+)?",
    re.IGNORECASE,
)
_LABEL = re.compile(rf"(?:(?:{'|'.join(_NAMED)}|no)\b[\s.:#§|*\-–—]*)+", re.IGNORECASE)
# Behind a code that a sentence or a list of codes goes on from, or ends in.
_IN_SENTENCE = re.compile(r"\s*(?:[)\]]|[;,](?:\s|\Z)|\.(?:\s|\Z)|(?:and|or|to|through)\b)", re.IGNORECASE)
_NEXT_WORD = re.compile(r"\s+([^\W\d_]+)")
_LAST_WORD = re.compile(r"([^\W\d_]+|[,(§–—-])\W{0,2}\Z")
_BETWEEN_CELLS = re.compile(r"\s*[|\t]\s*|[;,](?!\s)")

Find = Callable[[str], Sequence[Code]]


def is_about_codes(query: str, texts: Sequence[str], *, most: int = 3) -> bool:
    """Tell whether a question asks for the codes themselves, with hardly another word: “What is the duty on 8481.80.30?”.

    Args:
        texts: of its codes and identifiers, as it writes them.
        most: words besides that still leave it a look-up, not counting those that carry no topic or name codes.
    """
    left = plain(query).casefold()
    for text in sorted(texts, key=len, reverse=True):
        left = left.replace(text.casefold(), " ")
    words = [word for word in re.findall(r"[^\W_]+", left) if not word.isdigit()]
    return sum(word not in _FUNCTION_WORDS and word not in _NAMED for word in words) <= most


def heads_of(text: str, headings: Sequence[str], wanted: Mapping[str, str], find: Find) -> dict[str, int]:
    """Tell how a passage tells of each code; see ``HEAD``.

    Args:
        headings: the sections the passage is in, the outermost first.
        wanted: lexemes of codes, each with how the passage writes it.
        find: reads the codes of a text; asked for the beginnings of lines alone.

    Returns:
        The lexemes of codes that stand at a head or alone; the others are mentioned in passing.
    """
    told: dict[str, int] = {}
    if headings:
        told |= {code.lexeme: HEAD for code in find(headings[-1]) if code.lexeme in wanted}
    starts = {written[:1].casefold() for written in wanted.values()}
    language = language_or_script(text)
    running = _ENGLISH if language in ("", "English") else function_words(language)
    before = ""
    for line in plain(text).split("\n"):
        for lexeme, level in [*_at_head(line, before, starts, find, running), *_in_cells(line, wanted)]:
            if lexeme in wanted:
                told[lexeme] = max(level, told.get(lexeme, 0))
        before = line.strip()
    return told


def _at_head(
    line: str, before: str, starts: set[str], find: Find, running: frozenset[str]
) -> Iterator[tuple[str, int]]:
    """Yield the codes that a line begins with, with or without a label, and whether it says more."""
    lead = _LEAD.match(line)
    head = line[lead.end() if lead else 0 :][:_HEAD_CHARS]
    label = _LABEL.match(head)
    for part in (head, head[label.end() :] if label else ""):
        if not part or part[0].casefold() not in starts:
            continue
        shown = " ".join(part.split())
        for code in find(shown):
            behind = shown[len(code.text) :]
            if shown.casefold().startswith(code.text.casefold()) and not _is_mention(behind, before, running):
                yield code.lexeme, HEAD if any(map(str.isalpha, behind)) else LISTED


def _in_cells(line: str, wanted: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the codes that stand in a cell of their own."""
    cells = {cell.strip("\"'`* ").casefold() for cell in _BETWEEN_CELLS.split(line)}
    if len(cells) > 1:
        yield from ((lexeme, LISTED) for lexeme, written in wanted.items() if written.casefold() in cells)


def _is_mention(behind: str, before: str, running: frozenset[str]) -> bool:
    """Tell whether a sentence goes through the start of this line: by what follows the code, or by the line before."""
    if _IN_SENTENCE.match(behind):
        return True
    word = _NEXT_WORD.match(behind)
    if word and (word.group(1) in _CARRIED_ON or word.group(1) in running):
        return True
    last = _LAST_WORD.search(before)
    if last is None or before.startswith(("|", "#")):
        return False
    told = last.group(1).casefold()
    if told.isalpha():  # “m” and “No.” are units of a row
        return len(told) > 1 and told != "no" and (told in running or told in _NAMED)
    return True
