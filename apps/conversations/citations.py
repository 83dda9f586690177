"""Citation markers in an answer: find them, number the sources they name, remove those that name nothing. Pure.

A model cites a passage as ``[c123]``, several as ``[c1, c2]`` or ``[c1][c2]``. Everything here is a function of the text
and of what was retrieved, and stable while the text grows: numbers never change, a passage keeps its quote, and a marker
that is only half written is not shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

# An id has at most 18 digits: it then fits the database's bigint.
_ID = r"[cC]\d{1,18}"
_MARKER = re.compile(rf"\[({_ID}(?:[,;\s]+{_ID})*)\s?\]")
_HALF = re.compile(r"\[[cC](?:\d[\d\s,;cC]*)?\Z")
_HALF_MOST = 400
# Not after "U.S." and the like: an abbreviation ends no sentence.
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\bNo\.)(?<!\bInc\.)(?<!\bvs\.)[\"'”’)\]]*\s+|\n+"
)
_WORD = re.compile(r"\w+(?:[.,]\d+)*", re.UNICODE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_QUOTE_MOST = 400
_QUOTE_LONGEST = 2000
_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "has",
        "have",
        "in",
        "into",
        "is",
        "it",
        "its",
        "not",
        "of",
        "on",
        "or",
        "that",
        "the",
        "their",
        "this",
        "to",
        "was",
        "were",
        "which",
        "will",
        "with",
        "you",
        "your",
    ]
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved chunk, as an answer may cite it.

    Attributes:
        chunk_id: the number in its marker.
        char_start: where ``text`` begins in the document's text.
        quote: words of ``text`` that the model itself has named as what it rests on, "" where it names none.
    """

    chunk_id: int
    document_id: int
    document_name: str
    collection_name: str
    text: str
    page: int | None = None
    char_start: int = 0
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A cited passage with its number and the words in it that the answer rests on."""

    number: int
    passage: Passage
    quote: str
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the answer: text, then the numbers cited after it (none at the end).

    ``unsupported``: why the sentence that ends here was not found to rest on a source, "" where it was.
    """

    text: str
    numbers: tuple[int, ...] = ()
    unsupported: str = ""


@dataclass(slots=True)
class Cited:
    """An answer taken apart.

    Attributes:
        removed: markers (ids, not brackets) that named no retrieved passage.
    """

    pieces: list[Piece] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    removed: int = 0

    @property
    def text(self) -> str:
        """Return the answer with its markers as ``[1]``."""
        return "".join(p.text + "".join(f"[{n}]" for n in p.numbers) for p in self.pieces)


def answer_cite(text: str, passages: Mapping[int, Passage]) -> Cited:
    """Take an answer apart at its markers and number the sources by first appearance.

    Args:
        text: the answer as the model wrote it, perhaps still growing.
        passages: what was retrieved in this run, by chunk id.
    """
    return _cite(text, lambda known, chunk_id, at: _numbered(text, passages, known, chunk_id, at))


def answer_number(text: str, numbers: Mapping[int, int]) -> Cited:
    """Take a finished answer apart with the numbers its sources were stored under (chunk id to number).

    The pieces are those of ``answer_cite``; ``sources`` stays empty, the stored rows are the sources.
    """
    return _cite(text, lambda _, chunk_id, __: numbers.get(chunk_id))


def _cite(text: str, find: Callable[[list[Source], int, int], int | None]) -> Cited:
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


def _numbered(
    text: str, passages: Mapping[int, Passage], known: list[Source], chunk_id: int, at: int
) -> int | None:
    passage = passages.get(chunk_id)
    if passage is None:
        return None
    for source in known:
        if source.passage.chunk_id == chunk_id:
            return source.number
    start, end = _quote(text, at, passage)
    known.append(
        Source(
            len(known) + 1,
            passage,
            passage.text[start:end],
            passage.char_start + start,
            passage.char_start + end,
        )
    )
    return len(known)


def _quote(text: str, at: int, passage: Passage) -> tuple[int, int]:
    """Return what a marker at ``at`` rests on: what the model names, or repeats word for word, else the best match."""
    named = passage.quote.strip()
    if named and (found_at := passage.text.find(named)) >= 0:
        return found_at, found_at + len(named)
    line = text[max(0, at - _QUOTE_LONGEST) : at].rsplit("\n", 1)[-1]
    parts = [part for part in _MARKER.split(line)[::2] if part.strip()]
    sentence = sentence_before(text, at)
    for claim in (parts[-1] if parts else "", sentence):
        found = verbatim_find(claim, passage.text)
        if found is not None:
            return found
    return quote_find(sentence, passage.text)


def verbatim_find(claim: str, text: str) -> tuple[int, int] | None:
    """Return where a claim of at least three words stands in ``text``, whatever its white space and Markdown escapes."""
    plain = _ESCAPE.sub(r"\1", claim).strip(' \t\n*_>#-"“”')
    words = plain.split()
    if len(words) < 3:
        return None
    found = re.search(r"\s+".join(map(re.escape, words)), text)
    return None if found is None else found.span()


def sentence_before(text: str, at: int) -> str:
    """Return the sentence that ends at ``at``, without markers; the whole line when it has no end before."""
    before = _MARKER.sub("", text[max(0, at - _QUOTE_LONGEST) : at]).rstrip()
    ends = [match.end() for match in _SENTENCE_END.finditer(before) if match.end() < len(before)]
    return before[ends[-1] :] if ends else before


def quote_find(sentence: str, text: str) -> tuple[int, int]:
    """Return where in ``text`` the passage stands that supports the sentence best, as (start, end).

    The one or two sentences of the text that share most of its words, numbers counting more and very common words not at
    all; the beginning when none does.
    """
    spans = sentences_of(text)
    wanted = words_weighted(sentence)
    best, best_score = (spans[0] if spans else (0, 0)), 0.0
    words = [set(words_weighted(text[start:end])) for start, end in spans]
    for index, (start, end) in enumerate(spans):
        windows = [((start, end), words[index])]
        if index + 1 < len(spans):
            windows.append(((start, spans[index + 1][1]), words[index] | words[index + 1]))
        for window, found in windows:
            shared = sum(weight for word, weight in wanted.items() if word in found)
            score = shared / (1 + 0.15 * len(found) ** 0.5)
            if score > best_score:
                best, best_score = window, score
    return best[0], min(best[1], best[0] + _QUOTE_MOST)


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


def words_weighted(text: str) -> dict[str, float]:
    """Return the words of a text that say something, in lower case, with their weight: more for those with a digit."""
    words = (word.lower() for word in _WORD.findall(text))
    return {
        word: 1.0 if word.isalpha() or not any(map(str.isdigit, word)) else 3.0
        for word in words
        if word not in _COMMON and (len(word) > 1 or word.isdigit())
    }


def flagged(pieces: Iterable[Piece], ends: Mapping[int, str]) -> list[Piece]:
    """Cut an answer's pieces where unsupported sentences end, and mark what comes before.

    Args:
        ends: reasons by offset in the answer's text, markers as ``[1]`` included.
    """
    wanted, found, at = sorted(ends), [], 0
    for piece in pieces:
        text = piece.text
        begun = at
        while wanted and wanted[0] <= at + len(text):
            reason = ends[wanted[0]]
            cut = max(0, wanted.pop(0) - at)
            found.append(Piece(text[:cut], (), reason))
            text, at = text[cut:], at + cut
        at = begun + len(piece.text) + sum(len(f"[{n}]") for n in piece.numbers)
        here = ends[wanted.pop(0)] if wanted and wanted[0] <= at else ""
        found.append(Piece(text, piece.numbers, here))
    return found


def passages_of(
    payloads: Iterable[object], quotes: Mapping[str, str] | None = None
) -> dict[int, Passage]:
    """Return what tool calls have retrieved, by chunk id; payloads of other tools are passed over.

    Args:
        quotes: what the model itself has named, by id as in a marker; see ``runs.selectors.quotes_named``.
    """
    named = quotes or {}
    found: dict[int, Passage] = {}
    for payload in payloads:
        results = payload.get("results") if isinstance(payload, dict) else None
        for row in results if isinstance(results, list) else ():
            if isinstance(row, dict) and isinstance(row.get("chunk_id"), int):
                found[row["chunk_id"]] = Passage(
                    chunk_id=row["chunk_id"],
                    document_id=row["document_id"],
                    document_name=row["document"],
                    collection_name=row["collection"],
                    text=row["text"],
                    page=row["page"],
                    char_start=row["char_start"],
                    quote=named.get(f"c{row['chunk_id']}", ""),
                )
    return found
