"""Where two passages state the same thing with other figures. Pure, by shared words: candidates, no proof."""

from __future__ import annotations

import re

from toolloop.best_sentences import content_terms, split

_FIGURE = re.compile(r"\d[\d.,]*(?:\s?%| percent| euros?| dollars?| years?| months?| days?)?")
_DATED = re.compile(r"\b(?:19|20)\d\d\b")
LEAST_SHARED, LEAST_ALIKE = 4, 0.5
LONGEST = 400
MOST_SENTENCES = 40


def disagreement(first: str, second: str) -> tuple[str, str] | None:
    """Return a sentence of each text that say the same of something but for a figure; None when there are none.

    Years are no such figures: reports of two years differ in them without contradicting each other.
    """
    others = [(s, _terms(s), _figures(s)) for s in split(second)[:MOST_SENTENCES]]
    best: tuple[float, str, str] | None = None
    for sentence in split(first)[:MOST_SENTENCES]:
        mine, figures = _terms(sentence), _figures(sentence)
        if not figures or len(sentence) > LONGEST or len(mine) < LEAST_SHARED:
            continue
        for other, theirs, named in others:
            if not named or named == figures or len(other) > LONGEST:
                continue
            shared = len(mine & theirs)
            alike = shared / len(mine | theirs)
            if shared >= LEAST_SHARED and alike >= LEAST_ALIKE and (best is None or alike > best[0]):
                best = (alike, sentence, other)
    return None if best is None else best[1:]


def _terms(sentence: str) -> set[str]:
    return {term for term in content_terms(sentence) if not term[0].isdigit()}


def _figures(sentence: str) -> frozenset[str]:
    return frozenset(match.strip(" .,") for match in _FIGURE.findall(_DATED.sub(" ", sentence)))
