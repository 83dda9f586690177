"""Key points of chunks and links between them by rule: from headings, order, and the terms that few chunks share.

Nothing here asks a model, and whoever stores what comes out labels it so. Cost is linear in the text but for shared
terms, whose postings are cut at ``MAX_SHARERS`` chunks: a term in more of them joins nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from apps.collections.ingestion.lexical import tokenise

MAX_SHARERS = 12
SHARED_PER_CHUNK = 3
SIBLINGS_PER_CHUNK = 2
POINTS_PER_CHUNK = 3
MAX_POINT_CHARS = 300
_LEAST_SHARED = 0.12  # cosine over the rare terms; below it two passages only touch
_SENTENCE = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+(?=[^\s\da-z])|\n\s*\n")
_WORD = re.compile(r"[^\W_][\w.'’-]*")
REVERSE: Mapping[str, str] = {
    "next": "previous",
    "previous": "next",
    "parent": "child",
    "child": "parent",
    "same_section": "same_section",
    "shares_terms": "shares_terms",
}
"""Relations by rule, each with the one that runs back."""


@dataclass(frozen=True, slots=True)
class LinkableChunk:
    """What the rules need of a chunk.

    Attributes:
        text: what it says.
        headings: from the outermost to the innermost.
        is_table: its lines are rows, not sentences.
        lead: a sentence that says best what it is (a docstring, a caption), "" for none.
    """

    text: str
    headings: tuple[str, ...] = ()
    is_table: bool = False
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A link from one passage to another, by their places in the sequence.

    Attributes:
        relation: ``next``, ``previous``, ``parent``, ``child``, ``same_section``, ``shares_terms``.
        common_topic: the heading or the term that both have.
        weight: 0 to 1, stronger first.
    """

    source: int
    target: int
    relation: str
    common_topic: str = ""
    weight: float = 1.0


@lru_cache(maxsize=4096)
def _terms_of_passage(text: str) -> tuple[str, ...]:
    """Tokenise a passage; points and links of one document both ask."""
    return tuple(tokenise(text))


@lru_cache(maxsize=16_384)
def _terms_of_word(word: str) -> tuple[str, ...]:
    return tuple(tokenise(word))


def passage_links(passages: Sequence[LinkableChunk]) -> list[Link]:
    """Link the chunks of one document, both directions of each link, in the order of their sources.

    Neighbours are linked by order, chunks under one heading with the nearest two beyond their neighbours, each chunk
    with the one that opens the section around its own, and chunks that share rare terms with the three closest.
    """
    weights = _rare_terms(passages)
    found: dict[tuple[int, int, str], Link] = {}

    def add(link: Link) -> None:
        back = Link(link.target, link.source, REVERSE[link.relation], link.common_topic, link.weight)
        for one in (link, back):
            found.setdefault((one.source, one.target, one.relation), one)

    for index in range(len(passages) - 1):
        here, there = passages[index], passages[index + 1]
        topic = _common_heading(here, there) or _best_shared(weights[index], weights[index + 1], here.text)
        add(Link(index, index + 1, "next", topic))
    for link in _section_links(passages):
        add(link)
    for link in _term_links(passages, weights):
        add(link)
    return sorted(found.values(), key=lambda link: (link.source, -link.weight, link.target))


def passage_points(passages: Sequence[LinkableChunk]) -> list[list[str]]:
    """Pick for each chunk the sentences that say most, in their order: those with the rarest words for their length."""
    documents: Counter[str] = Counter()
    for passage in passages:
        documents.update(set(_terms_of_passage(passage.text)))
    return [_points(passage, documents, len(passages)) for passage in passages]


def _points(passage: LinkableChunk, documents: Mapping[str, int], total: int) -> list[str]:
    lead = [_clip(passage.lead)] if passage.lead.strip() else []
    if passage.is_table:
        first = next((line.strip() for line in passage.text.splitlines() if line.strip()), "")
        return lead or ([_clip(first)] if first else [])
    sentences = [" ".join(part.split()) for part in _SENTENCE.split(passage.text)]
    sentences = [sentence for sentence in sentences if len(sentence) >= 25]
    scored: list[tuple[float, int]] = []
    for place, sentence in enumerate(sentences):
        terms = set(tokenise(sentence))
        if terms:
            weight = sum(math.log(1 + total / documents.get(term, 1)) for term in terms)
            scored.append((weight / math.sqrt(len(terms) + 4), place))
    best = sorted(scored, reverse=True)[: POINTS_PER_CHUNK - len(lead)]
    return lead + [_clip(sentences[place]) for place in sorted(place for _, place in best)]


def _clip(sentence: str) -> str:
    sentence = " ".join(sentence.split())
    if len(sentence) <= MAX_POINT_CHARS:
        return sentence
    return sentence[: MAX_POINT_CHARS - 1].rsplit(" ", 1)[0] + "…"


def _common_heading(one: LinkableChunk, other: LinkableChunk) -> str:
    common = ""
    for mine, its in zip(one.headings, other.headings, strict=False):
        if mine != its:
            break
        common = mine
    return common


def _section_links(passages: Sequence[LinkableChunk]) -> Iterator[Link]:
    opener: dict[tuple[str, ...], int] = {}
    last: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, passage in enumerate(passages):
        path = passage.headings
        if not path:
            continue
        opener.setdefault(path, index)
        for depth in range(len(path) - 1, 0, -1):
            above = opener.get(path[:depth])
            if above is not None:
                yield Link(index, above, "parent", path[depth - 1])
                break
        siblings = last[path]
        for sibling in siblings[-SIBLINGS_PER_CHUNK - 1 :]:
            if index - sibling > 1:
                yield Link(index, sibling, "same_section", path[-1], 0.6)
        siblings.append(index)


def _rare_terms(passages: Sequence[LinkableChunk]) -> list[dict[str, float]]:
    """Weigh for each passage the terms that at least one more has and few have: unit vectors."""
    counts = [Counter(_terms_of_passage(passage.text)) for passage in passages]
    sharers: Counter[str] = Counter()
    for count in counts:
        sharers.update(count.keys())
    total = len(passages)
    vectors: list[dict[str, float]] = []
    for count in counts:
        vector = {
            term: (1 + math.log(times)) * math.log(1 + total / sharers[term])
            for term, times in count.items()
            if 2 <= sharers[term] <= MAX_SHARERS and not term.isdigit()
        }
        norm = math.sqrt(sum(value * value for value in vector.values())) or 1.0
        vectors.append({term: value / norm for term, value in vector.items()})
    return vectors


def _term_links(passages: Sequence[LinkableChunk], vectors: Sequence[Mapping[str, float]]) -> Iterator[Link]:
    postings: dict[str, list[int]] = defaultdict(list)
    for index, vector in enumerate(vectors):
        for term in vector:
            postings[term].append(index)
    for index, vector in enumerate(vectors):
        likeness: Counter[int] = Counter()
        for term, value in vector.items():
            for other in postings[term]:
                if abs(other - index) > 1:
                    likeness[other] += value * vectors[other][term]  # type: ignore[assignment]
        closest = sorted(likeness.items(), key=lambda item: (-item[1], item[0]))
        for other, cosine in closest[:SHARED_PER_CHUNK]:
            if cosine >= _LEAST_SHARED:
                topic = _best_shared(vector, vectors[other], passages[index].text)
                yield Link(index, other, "shares_terms", topic, round(min(1.0, float(cosine)), 4))


def _best_shared(one: Mapping[str, float], other: Mapping[str, float], text: str) -> str:
    """Name the strongest term that both have, as it is written in ``text`` (terms are stems)."""
    shared = {term: value * other[term] for term, value in one.items() if term in other}
    if not shared:
        return ""
    best = max(shared, key=lambda term: (shared[term], term))
    if best.startswith("="):
        return best[1:]
    for match in _WORD.finditer(text):
        if best in _terms_of_word(match.group()):
            return match.group().strip(".'’-")[:200]
    return best
