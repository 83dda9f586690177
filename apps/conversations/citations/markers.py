"""Citation markers in an answer: find them, number the sources they name, remove those that name nothing. Pure.

A model cites a passage as ``[c123]``, several as ``[c1, c2]`` or ``[c1][c2]``. Everything here is a function of the text
and of what was retrieved, and stable while the text grows: numbers never change, a passage keeps its quote, and a marker
that is only half written is not shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from apps.collections.quotes.parts import Quotable, quotable_from_text, quotable_plain
from apps.conversations.citations.claims import Claim, quote_choose
from toolloop.sentences import sentence_spans

# An id has at most 18 digits: it then fits the database's bigint.
_ID = r"[cC]\d{1,18}"
_MARKER = re.compile(rf"\[({_ID}(?:[,;\s]+{_ID})*)\s?\]")
_HALF = re.compile(r"\[[cC](?:\d[\d\s,;cC]*)?\Z")
_HALF_MOST = 400
_MARKERS_MOST = 100  # of one passage that are looked at each for itself
_CLAIM_MOST = 2_000
_CONTEXT = 300
_EMPHASIS = "*_~ \t"
# Not after "U.S." and the like: an abbreviation ends no sentence.
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bNo\.)(?<!\bInc\.)(?<!\bvs\.)[\"'”’)\]]*\s+|\n+")


@dataclass(frozen=True, slots=True)
class CitablePassage:
    """A retrieved chunk, as an answer may cite it.

    Attributes:
        chunk_id: the number in its marker.
        char_start: where ``text`` begins in the document's text.
        quote: words of ``text`` that the model itself has named as what it rests on, "" where it names none.
        quotable: its sentences and rows, None where nothing but ``text`` is known.
    """

    chunk_id: int
    document_id: int
    document_name: str
    collection_name: str
    text: str
    page: int | None = None
    char_start: int = 0
    quote: str = ""
    quotable: Quotable | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NumberedQuote:
    """A quote with its number: the sentence or row of a passage that the answer rests on.

    Attributes:
        quote: whole, its lines joined; with "…" where something longer than ``claims.LONGEST`` was cut.
        char_start: where it begins in the document's text.
        char_end: just past its end.
        page: where it begins, None for a document without pages.
        header: the column header of a row, "" for everything else.
        markers: which of the passage's markers in the answer name it, counted from 0.
    """

    number: int
    passage: CitablePassage
    quote: str
    char_start: int
    char_end: int
    page: int | None = None
    header: str = ""
    markers: list[int] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the answer: text, then the numbers cited after it (none at the end).

    ``ends``: whether a marked sentence ends here. ``mark``: why the sentence that begins here, after it, should be checked,
    a reason of ``marks``; "" where none begins.
    """

    text: str
    numbers: tuple[int, ...] = ()
    ends: bool = False
    mark: str = ""


Numbering = Callable[[list["NumberedQuote"], int, int], int | None]


@dataclass(slots=True)
class Cited:
    """An answer taken apart.

    Attributes:
        removed: markers (ids, not brackets) that named no retrieved passage.
    """

    pieces: list[Piece] = field(default_factory=list)
    sources: list[NumberedQuote] = field(default_factory=list)
    removed: int = 0

    @property
    def text(self) -> str:
        """Return the answer with its markers as ``[1]``."""
        return "".join(p.text + "".join(f"[{n}]" for n in p.numbers) for p in self.pieces)


def chunks_named(text: str) -> list[int]:
    """Return the ids of the passages that an answer's markers name, each once."""
    found = (name[1:] for marker in _MARKER.finditer(text) for name in re.findall(_ID, marker[1]))
    return list(dict.fromkeys(map(int, found)))


def answer_cite(text: str, passages: Mapping[int, CitablePassage]) -> Cited:
    """Take an answer apart at its markers and number the sources by first appearance.

    A source is a quote: a passage cited for two of its rows is two sources.

    Args:
        text: the answer as the model wrote it, perhaps still growing.
        passages: what was retrieved in this run, by chunk id.
    """
    counted: Counter[int] = Counter()

    def find(known: list[NumberedQuote], chunk_id: int, at: int) -> int | None:
        passage = passages.get(chunk_id)
        if passage is None:
            return None
        counted[chunk_id] += 1
        return _numbered(text, passage, known, counted[chunk_id] - 1, at)

    return markers_number(text, find)


def answer_number(text: str, numbers: Mapping[int, Sequence[int]]) -> Cited:
    """Take a finished answer apart with the numbers its sources were stored under.

    The pieces are those of ``answer_cite``; ``sources`` stays empty, the stored rows are the sources.

    Args:
        numbers: by chunk id, for each of its markers in turn; see ``numbers_of``. The last one counts for all that follow.
    """
    return markers_number(text, numbering(numbers))


def numbering(numbers: Mapping[int, Sequence[int]]) -> Numbering:
    """Return what gives each marker of a passage its number, in turn."""
    counted: Counter[int] = Counter()

    def find(_: list[NumberedQuote], chunk_id: int, __: int) -> int | None:
        told = numbers.get(chunk_id)
        if not told:
            return None
        counted[chunk_id] += 1
        return told[min(counted[chunk_id], len(told)) - 1]

    return find


def numbers_of(rows: Iterable[tuple[int, int, Sequence[int]]]) -> dict[int, list[int]]:
    """Return for each passage the numbers of its markers in turn.

    Args:
        rows: stored sources: chunk id, number, which of the passage's markers name it (none for all of them).
    """
    found: dict[int, dict[int, int]] = {}
    for chunk_id, number, markers in rows:
        found.setdefault(chunk_id, {}).update(dict.fromkeys(markers or (0,), number))
    return {
        chunk_id: [told.get(n, told[min(told)]) for n in range(max(told) + 1)]
        for chunk_id, told in found.items()
    }


def markers_number(text: str, find: Numbering) -> Cited:
    """Take an answer apart at its markers.

    Args:
        find: gives an id's number, None where it names nothing; gets the sources so far, the chunk's id and the marker's place.
    """
    cited = Cited()
    at, end = 0, len(text)
    if (half := _HALF.search(text, max(0, end - _HALF_MOST))) is not None:
        end = len(text[: half.start()].rstrip(" \t"))
    for marker in _MARKER.finditer(text, 0, end):
        numbers: list[int] = []
        for name in re.findall(_ID, marker[1]):
            number = find(cited.sources, int(name[1:]), marker.start())
            if number is None:
                cited.removed += 1
            elif number not in numbers:
                numbers.append(number)
        said = text[at : marker.start()]
        before = cited.pieces[-1].numbers if cited.pieces and not said.strip(" \t") else ()
        if numbers and set(numbers) <= set(before):
            # Said already: by a provider that cites by itself, and by its model in words.
            cited.pieces.append(Piece(said))
            at = marker.end()
            continue
        # The space before a marker that is removed goes with it.
        cited.pieces.append(Piece(said if numbers else said.rstrip(" \t"), tuple(numbers)))
        at = marker.end()
    if at < end or not cited.pieces:
        cited.pieces.append(Piece(text[at:end]))
    return cited


def _numbered(text: str, passage: CitablePassage, known: list[NumberedQuote], marker: int, at: int) -> int:
    mine = [source for source in known if source.passage.chunk_id == passage.chunk_id]
    if mine and marker >= _MARKERS_MOST:
        return mine[0].number
    quotable = passage.quotable or quotable_plain(passage.text, passage.char_start, passage.page)
    found = quote_choose(quotable, claim_before(text, at), passage.quote)
    for source in mine:
        if (source.char_start, source.char_end) == (found.start, found.end):
            source.markers.append(marker)
            return source.number
    source = NumberedQuote(
        len(known) + 1, passage, found.text, found.start, found.end, found.page, found.header, [marker]
    )
    known.append(source)
    return source.number


def claim_before(text: str, at: int) -> Claim:
    """Return what a marker at ``at`` says to rest on its source, as far as it can be told from the words before it."""
    before = text[max(0, at - _CLAIM_MOST) : at].rstrip()
    line_start = before.rfind("\n") + 1
    line = before[line_start:]
    bare = _MARKER.sub("", line).rstrip()
    spans = sentence_spans(bare)
    sentence = bare[spans[-1][0] :] if spans else bare
    parts = [part for part in _MARKER.split(line)[::2] if part.strip(" \t.,;:|*")]
    around = f"{before[:line_start][-_CONTEXT:]}\n{bare[: len(bare) - len(sentence)][-_CONTEXT:]}"
    return Claim(parts[-1] if parts else "", sentence, _MARKER.sub("", around))


def sentences_of(text: str) -> list[tuple[int, int]]:
    """Return where the sentences of a text stand, as (start, end)."""
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        _append(spans, text, start, match.start())
        start = match.end()
    _append(spans, text, start, len(text))
    return spans


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    inside = text[start:end]
    lead = len(inside) - len(inside.lstrip())
    if inside.strip():
        spans.append((start + lead, start + len(inside.rstrip())))


def flagged(pieces: Iterable[Piece], marks: Iterable[tuple[int, int, str]]) -> list[Piece]:
    """Cut an answer's pieces where marked sentences begin and end.

    Args:
        marks: start, end and reason of each, in the order of the text; offsets in the answer's text, markers as ``[1]``
            included. Where they meet what makes text bold or slanted, the cut is inside of it, so that it still does.
    """
    parts = list(pieces)
    text = "".join(p.text + "".join(f"[{n}]" for n in p.numbers) for p in parts)
    cuts: list[tuple[int, bool, str]] = []
    for start, end, reason in marks:
        inside = text[start:end]
        first = start + len(inside) - len(inside.lstrip(_EMPHASIS))
        last = max(first, end - (len(inside) - len(inside.rstrip(_EMPHASIS))))
        cuts += [(first, False, reason), (last, True, "")]
    found: list[Piece] = []
    at = 0
    for piece in parts:
        rest = piece.text
        while cuts and cuts[0][0] <= at + len(rest):
            place, ends, reason = cuts.pop(0)
            cut = max(0, place - at)
            found.append(Piece(rest[:cut], (), ends, reason))
            rest, at = rest[cut:], at + cut
        found.append(Piece(rest, piece.numbers))
        at += len(rest) + sum(len(f"[{n}]") for n in piece.numbers)
        while cuts and cuts[0][0] <= at:  # behind or among its markers
            _, ends, reason = cuts.pop(0)
            found.append(Piece("", (), ends, reason))
    return found


def passages_of(
    payloads: Iterable[object], quotes: Mapping[str, str] | None = None
) -> dict[int, CitablePassage]:
    """Return what tool calls have retrieved, by chunk id; payloads of other tools are passed over.

    Args:
        quotes: what the model itself has named, by id as in a marker; see ``runs.selectors.quotes_named``.
    """
    named = quotes or {}
    found: dict[int, CitablePassage] = {}
    for payload in payloads:
        results = payload.get("results") if isinstance(payload, dict) else None
        for row in results if isinstance(results, list) else ():
            if isinstance(row, dict) and isinstance(row.get("chunk_id"), int):
                found[row["chunk_id"]] = CitablePassage(
                    chunk_id=row["chunk_id"],
                    document_id=row["document_id"],
                    document_name=row["document"],
                    collection_name=row["collection"],
                    text=row["text"],
                    page=row["page"],
                    char_start=row["char_start"],
                    quote=named.get(f"c{row['chunk_id']}", ""),
                    quotable=quotable_from_text(row.get("quotable"), row["char_start"], row["text"]),
                )
    return found
