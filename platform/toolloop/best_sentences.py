"""Pick the sentences of some passages that fit a question best: by shared words, rare ones first."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from toolloop.sentences import sentence_spans

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|_", re.UNICODE)
# Both patterns begin where a run of their characters begins: a hostile text of dots or dashes costs linear time.
# 8471.30.01, 19 CFR 351.224(b), CVE-2024-3094, ISO-9001, v1.2.3: letters or digits joined by . - / with a digit in it.
_IDENTIFIER = re.compile(r"(?<![\w.\-/])(?=[\w.\-/]*\d)\w+(?:[.\-/]\w+)+(?!\w)")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below between both
    but by can could did do does doing down during each every few for from further get give had has have having
    he her here hers him his how i if in into is it its itself just let may me might more most much must my no
    nor not now of off on once only or other our out over own please same say says shall she should show so some
    such tell than that the their them then there these they this those through to too under until up upon us
    very was we were what when where which while who whom why will with would you your according document
    documents describe explain find list many mean means
    """.split()
)
_LEAST_RELATIVE = 0.5  # Further quotes must be at least half as good as the best one.
_LONGEST_QUOTE = 420
_SHORTEST_QUOTE = 20
_IDENTIFIER_WEIGHT = 4.0
_HEADING_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """One search result."""

    id: str
    document: str
    page: int | None
    headings: str
    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a passage, verbatim but for white space (and "…" where a long one was cut)."""

    passage: RankedPassage
    text: str
    score: float


def content_terms(text: str) -> list[str]:
    """Return the words of a text that say what it is about, folded and without plural endings, in order, once each."""
    terms = dict.fromkeys(
        _stem(word) for word in _words(text) if word not in _STOP_WORDS and not _is_small(word)
    )
    return list(terms)


def words_stemmed(text: str) -> set[str]:
    """Return the words of a text, folded and without plural endings."""
    return set(map(_stem, _words(text)))


def identifiers(text: str) -> set[str]:
    """Return codes such as 8471.30.01 or CVE-2024-3094, folded."""
    return {match.group().casefold() for match in _IDENTIFIER.finditer(text)}


def best_quotes(query: str, passages: Sequence[RankedPassage], most: int) -> list[Quote]:
    """Pick at most ``most`` sentences.

    A word counts the more the fewer sentences hold it. Whether they answer the question is for ``evidence`` to tell.
    """
    wanted_codes = identifiers(query)
    plain = query
    for code in wanted_codes:
        plain = re.sub(re.escape(code), " ", plain, flags=re.IGNORECASE)
    terms = content_terms(plain)
    if not terms and not wanted_codes:
        return []
    sentences = [(passage, text) for passage in passages for text in dict.fromkeys(split(passage.text))]
    bags = [(set(map(_stem, _words(text))), identifiers(text)) for _, text in sentences]
    counts: Counter[str] = Counter()
    for words, _ in bags:
        counts.update(words.intersection(terms))
    weights = {term: math.log(1 + (len(bags) + 1) / (counts[term] + 0.5)) for term in terms}
    total = sum(weights.values())
    found: list[Quote] = []
    heads: dict[str, set[str]] = {}
    for (passage, text), (words, codes) in zip(sentences, bags, strict=True):
        if passage.id not in heads:
            heads[passage.id] = set(map(_stem, _words(f"{passage.headings} {passage.document}")))
        own = sum(weights[term] for term in terms if term in words)
        above = sum(weights[t] for t in terms if t not in words and t in heads[passage.id])
        hits = sum(1 for code in wanted_codes if any(is_named(code, found) for found in codes))
        if not own and not hits:
            continue
        score = (own + _HEADING_SHARE * above) / total if total else 0.0
        # A long sentence holds many words by chance; a very short one says little.
        score *= 1.0 / (1.0 + max(0, len(words) - 40) / 120)
        score *= 0.6 if len(text) < 2 * _SHORTEST_QUOTE else 1.0
        # A chunk may begin and end in mid-sentence; its neighbour has the whole one.
        score *= 0.8 if text[0].islower() or text[-1].isalnum() or text[-1] == "," else 1.0
        found.append(Quote(passage, _cut(text, terms, wanted_codes), score + _IDENTIFIER_WEIGHT * hits))
    return _distinct(found, most)


def is_named(code: str, found: str) -> bool:
    """Tell whether an identifier of a text is the code, a subdivision of it, or an alternative after a slash."""
    return any(part.startswith(code) for part in (found, *found.split("/")))


def split(text: str) -> list[str]:
    """Split a text into sentences, table rows and list items, white space folded, scraps left out."""
    units: list[str] = []
    paragraph: list[str] = []

    def end_paragraph() -> None:
        if paragraph:
            joined = " ".join(paragraph)
            units.extend(joined[start:end] for start, end in sentence_spans(joined))
            paragraph.clear()

    for line in text.splitlines():
        stripped = " ".join(line.split())
        if not stripped or stripped.startswith("#"):
            end_paragraph()  # A heading says what follows is about; it is no answer.
        elif stripped.startswith("|"):
            end_paragraph()
            if re.search(r"[^\W_]", stripped):
                units.append(stripped)
        elif re.match(r"(?:[-*•]|\(?[a-z0-9]{1,3}[.)])\s", stripped, re.IGNORECASE):
            end_paragraph()
            paragraph.append(stripped)
        else:
            paragraph.append(stripped)
    end_paragraph()
    return [unit for unit in units if len(unit) >= _SHORTEST_QUOTE or identifiers(unit)]


def _cut(text: str, terms: Sequence[str], codes: set[str]) -> str:
    """Shorten a sentence without an end in sight to the stretch with the most of what was asked for."""
    if len(text) <= _LONGEST_QUOTE:
        return text
    wanted = set(terms)
    words = list(re.finditer(r"\S+", text))
    hits = [
        bool(wanted.intersection(map(_stem, _words(word.group()))))
        + 3 * any(code in word.group().casefold() for code in codes)
        for word in words
    ]
    best, best_hits, first, inside = (0, 0), -1, 0, 0
    for last, word in enumerate(words):
        inside += hits[last]
        while word.end() - words[first].start() > _LONGEST_QUOTE and first < last:
            inside -= hits[first]
            first += 1
        if inside > best_hits:
            best, best_hits = (first, last), inside
    # Grow to the right as far as fits: what follows a hit is what is said about it.
    start, last = words[best[0]].start(), best[1]
    while last + 1 < len(words) and words[last + 1].end() - start <= _LONGEST_QUOTE:
        last += 1
    cut = text[start : min(words[last].end(), start + _LONGEST_QUOTE)]
    lead = "… " if start else ""
    return f"{lead}{cut} …" if start + len(cut) < len(text) else f"{lead}{cut}"


def _distinct(found: list[Quote], most: int) -> list[Quote]:
    ordered = sorted(enumerate(found), key=lambda pair: (-pair[1].score, pair[0]))
    chosen: list[Quote] = []
    seen: set[str] = set()
    for _, quote in ordered:
        # Chunks overlap: the same sentence, or the stump of it, comes from neighbours.
        key = f" {' '.join(_words(quote.text))} "
        if any(key in other or other in key for other in seen):
            continue
        if len(chosen) == most or (chosen and quote.score < chosen[0].score * _LEAST_RELATIVE):
            break
        seen.add(key)
        chosen.append(quote)
    return chosen


def _words(text: str) -> list[str]:
    words: list[str] = []
    for match in _WORD.finditer(text.casefold()):
        word = match.group()
        # Scripts without spaces: each character is a word of its own.
        words.extend(word if _CJK.search(word) else [word])
    return words


def _is_small(word: str) -> bool:
    return len(word) == 1 and not word.isdigit() and not _CJK.match(word)


def _stem(word: str) -> str:
    word = re.sub(r"['’]s?$", "", word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
