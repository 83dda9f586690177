"""Which sentence or row of a passage an answer's statement rests on. Pure, by shared words, numbers and codes.

A unit of the passage is quoted whole. Words that few units of the passage hold count more, numbers most: in a table they tell
one row from the next.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from apps.collections.ingestion.word_parts import UNSPACED
from apps.collections.quotes.parts import Quotable, Unit

LONGEST = 1_500
"""Characters up to which a quote is whole; of more, an excerpt is shown and says so."""
_EXCERPT = 700
_VERBATIM_UNITS = 3
_PART, _SENTENCE, _CONTEXT = 1.0, 0.45, 0.12
_NUMBER = 3.0
_TWO = 0.9  # two sentences must say clearly more than one
_LEAST_OF_TWO = 0.3  # and neither of them next to nothing
_STEM = 6
_WORD = re.compile(r"\w+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r",(?=\d{3}(?:\D|\Z))")
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_COMMON = frozenset(
    "a an and are as at be by for from has have in into is it its not of on or that the their this to was were which will with you your".split()
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said before a marker: since the marker before it, in its sentence, and around that."""

    part: str
    sentence: str
    around: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """Chosen words with their place; offsets are of the document's text."""

    text: str
    start: int
    end: int
    page: int | None
    header: str = ""


def quote_choose(quotable: Quotable, claim: Claim, named: str = "") -> Quote:
    """Choose what to quote for a claim.

    Args:
        named: words of the passage that the model itself has named, "" where it named none.

    Returns:
        The unit, or the units, that hold what was named or is repeated word for word; else the unit, or the two sentences,
        that share most with the claim; else the first.
    """
    key = (claim, named)
    if key not in quotable.cache:
        quotable.cache[key] = _choose(quotable, claim, named)
    found: Quote = quotable.cache[key]
    return found


def _choose(quotable: Quotable, claim: Claim, named: str) -> Quote:
    units = [u for u in quotable.units if u.kind != "heading"] or list(quotable.units)
    if not units:
        end = quotable.start + len(quotable.text)
        return Quote(quotable.said(quotable.start, end), quotable.start, end, None)
    if spans := _stretches(quotable, named, least=1):
        return _made(quotable, _within(quotable.units, spans[0]) or units[:1], claim)
    for said in (claim.part, claim.sentence):
        held = [_within(units, span) for span in _stretches(quotable, said)]
        if held := [run for run in held if 0 < len(run) <= _VERBATIM_UNITS]:
            most = _weights(quotable, units, claim)
            return _made(quotable, max(held, key=lambda run: _score(quotable, run, most)), claim)
    return _made(quotable, _best(quotable, units, claim), claim)


def _stretches(quotable: Quotable, claim: str, *, least: int = 3) -> list[tuple[int, int]]:
    """Find where a claim of at least so many words stands in the text, whatever its white space and Markdown escapes."""
    plain = _ESCAPE.sub(r"\1", claim).strip(' \t\n*_>#-|"“”')
    words = plain.split()
    if len(words) < least:
        return []
    pattern = r"\s+".join(map(re.escape, words))
    at = quotable.start
    return [(at + m.start(), at + m.end()) for m in re.finditer(pattern, quotable.text)]


def _within(units: Sequence[Unit], span: tuple[int, int]) -> list[Unit]:
    return [u for u in units if u.start < span[1] and span[0] < u.end]


def _best(quotable: Quotable, units: Sequence[Unit], claim: Claim) -> list[Unit]:
    most = _weights(quotable, units, claim)
    best, best_score = [units[0]], 0.0
    for unit in units:
        if (score := _score(quotable, [unit], most)) > best_score:
            best, best_score = [unit], score
    said = {*_terms(claim.part), *_terms(claim.sentence)}
    own = {term: weight for term, weight in most.items() if term in said}
    for one, two in pairwise(units):
        if not _follow(quotable, one, two):
            continue
        parts = sorted(_score(quotable, [unit], own) for unit in (one, two))
        if parts[0] <= _LEAST_OF_TWO * parts[1]:
            continue
        if (score := _TWO * _score(quotable, [one, two], most)) > best_score:
            best, best_score = [one, two], score
    return best


def _follow(quotable: Quotable, one: Unit, two: Unit) -> bool:
    """Tell whether two sentences of one paragraph follow each other."""
    between = quotable.text[one.end - quotable.start : two.start - quotable.start]
    return one.kind == two.kind == "sentence" and not between.strip() and between.count("\n") < 2


def _weights(quotable: Quotable, units: Sequence[Unit], claim: Claim) -> dict[str, float]:
    """Return what each term of the claim counts."""
    held = Counter(term for unit in units for term in _terms_of(quotable, unit))
    weights: dict[str, float] = {}
    for text, share in ((claim.around, _CONTEXT), (claim.sentence, _SENTENCE), (claim.part, _PART)):
        for term in _terms(text):
            if count := held[term]:
                number = _NUMBER if any(map(str.isdigit, term)) else 1.0
                weights[term] = share * number * math.log(1 + (len(units) + 1) / count)
    return weights


def _score(quotable: Quotable, units: Sequence[Unit], weights: dict[str, float]) -> float:
    terms = frozenset().union(*(_terms_of(quotable, unit) for unit in units))
    shared = sum(weight for term, weight in weights.items() if term in terms)
    return shared / (1 + 0.15 * math.sqrt(len(terms)))


def _terms_of(quotable: Quotable, unit: Unit) -> frozenset[str]:
    found: frozenset[str] | None = quotable.cache.get(unit)
    if found is None:
        said = quotable.said(unit.start, unit.end, unit.kind)
        found = quotable.cache[unit] = frozenset(_terms(said))
    return found


def _terms(text: str) -> Iterator[str]:
    """Yield the words of a text, cut to their stems, and pairs of letters of scripts without spaces."""
    for match in _WORD.finditer(text.casefold()):
        word = match.group()
        if word[0].isdigit():
            yield _THOUSANDS.sub("", word)
            continue
        for run in _UNSPACED.findall(word):
            yield from (run[i : i + 2] for i in range(max(1, len(run) - 1)))
        for rest in filter(None, _UNSPACED.split(word)):
            if rest not in _COMMON and (len(rest) > 1 or rest.isdigit()):
                yield rest[:_STEM]


def _made(quotable: Quotable, units: Sequence[Unit], claim: Claim) -> Quote:
    start, end, kind = units[0].start, units[-1].end, units[0].kind
    if kind in ("row", "line"):
        text = "\n".join(quotable.said(u.start, u.end, u.kind) for u in units)
    else:
        text = quotable.said(start, end, kind)
    if len(text) > LONGEST:
        start, end = _excerpt(quotable, start, end, claim)
        text = quotable.said(start, end, kind)
    text_end = quotable.start + len(quotable.text)
    is_begun = start > units[0].start or (quotable.is_cut[0] and start == quotable.start)
    is_ended = end < units[-1].end or (quotable.is_cut[1] and end >= text_end)
    text = f"{'… ' if is_begun else ''}{text}{' …' if is_ended else ''}"
    return Quote(text, start, end, units[0].page, quotable.header if kind == "row" else "")


def _places(quotable: Quotable, start: int, end: int) -> tuple[list[tuple[int, int]], dict[str, list[int]]]:
    """Return where the words of a stretch stand in it, and which of them hold a term; read once for all claims."""
    key = (start, end)
    if key not in quotable.cache:
        text = quotable.text[start - quotable.start : end - quotable.start]
        words = [match.span() for match in re.finditer(r"\S+", text)]
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, (a, b) in enumerate(words):
            for term in set(_terms(text[a:b])):
                places[term].append(place)
        quotable.cache[key] = words, dict(places)
    found: tuple[list[tuple[int, int]], dict[str, list[int]]] = quotable.cache[key]
    return found


def _excerpt(quotable: Quotable, start: int, end: int, claim: Claim) -> tuple[int, int]:
    """Return the stretch of something very long, from word to word, that holds most of what is claimed."""
    words, places = _places(quotable, start, end)
    hits = [0] * len(words)
    for term, weight in {
        **dict.fromkeys(_terms(claim.sentence), 1),
        **dict.fromkeys(_terms(claim.part), 2),
    }.items():
        for place in places.get(term, ()):
            hits[place] += weight
    best, most, first, inside = 0, -1, 0, 0
    for last, (_, high) in enumerate(words):
        inside += hits[last]
        while first < last and high - words[first][0] > _EXCERPT:
            inside -= hits[first]
            first += 1
        if inside > most:
            best, most = first, inside
    low = words[best][0]
    # What follows the words is what is said about them: the stretch is filled up to its right.
    high = max(high for a, high in words[best:] if a == low or high - low <= _EXCERPT)
    return start + low, start + min(high, low + LONGEST)
