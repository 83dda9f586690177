"""How far some passages answer a question: they do, they come near, or they don't. Pure, by words, names and numbers.

Two things speak for an answer: how much of what the question says stands in one sentence (rare words count more), and how
near the nearest passage is in meaning, where a search has told that. A name or number of the question that stands in no
passage speaks for a passage about something else: then it is near at best.

The weights and bounds were chosen on ``benchmarks/not_found.py``; docs/decisions.md has its numbers.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from toolloop.best_sentences import RankedPassage, content_terms, identifiers, is_named, split, words_stemmed
from toolloop.language_detection import function_words, language_name

Evidence = Literal["answer", "near", "none"]

# Strength from which on there is an answer (before it is made 1), and the share of it from which on something is near.
_WITH_SIMILARITY, _NEAR_WITH_SIMILARITY = 1.25, 0.9
_NEAR_BY_WORDS = 0.77
# By words alone, by script: letters in pairs meet by chance, and where words bend more than at their ends, fewer meet.
_LATIN, _PAIRED, _OTHER = 0.8, 0.88, 0.62
_NAMED = re.compile(r"[^\W_]+", re.UNICODE)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MOST_HITS = 5
_CJK_HIT = 0.4  # Of a pair of letters, beside 1 for a word.
# Articles and prepositions that Arabic writes as one with its words.
_AL = re.compile(r"^[\u0648\u0641]?(?:[\u0628\u0643\u0644]?\u0627\u0644|\u0644\u0644)(?=\w{3})")
_ARABIC = str.maketrans("\u0623\u0625\u0622\u0629\u0649", "\u0627\u0627\u0627\u0647\u064a")
_STEM = 5  # Letters by which forms of one word are taken for the same: inflection is at their ends.


def evidence_of(
    question: str,
    passages: Sequence[RankedPassage],
    similarity: float | None = None,
    codes: Mapping[str, str] | None = None,
) -> Evidence:
    """Tell how far passages answer a question. A code that it names decides by itself.

    Args:
        similarity: cosine of the question and the nearest passage, where the embedder that told it is the local one
            and knows the question's language; None elsewhere.
        codes: what a search has told of the question's codes: ``exact``, ``near``, ``parent`` or ``none``; without any
            they are looked for in the passages.
    """
    if not passages:
        return "none"
    if codes:
        return "answer" if "exact" in codes.values() else "near" if {*codes.values()} - {"none"} else "none"
    if wanted := identifiers(question):
        held = [code for p in passages for code in identifiers(p.text)]
        return "answer" if any(is_named(code, found) for code in wanted for found in held) else "none"
    strength = strength_of(question, passages, similarity)
    if strength < (_NEAR_BY_WORDS if similarity is None else _NEAR_WITH_SIMILARITY):
        return "none"
    return "answer" if strength >= 1 and names_held(question, passages) else "near"


def strength_of(question: str, passages: Sequence[RankedPassage], similarity: float | None = None) -> float:
    """Return how much speaks for an answer in the passages; 1 is the bound from which on there is one."""
    terms = _terms(question, passages)
    bags = [
        (_forms(words_stemmed(sentence)), _forms(words_stemmed(f"{p.headings} {p.document}")))
        for p in passages
        for sentence in split(p.text)
    ]
    if not terms or not bags:
        return 0.0
    counts = Counter(term for words, _ in bags for term in terms & words)
    weights = {term: math.log(1 + (len(bags) + 1) / (counts[term] + 0.5)) for term in terms}
    total = sum(weights.values())
    covered = max(
        sum(weights[t] * (1 if t in words else 0.5 if t in above else 0) for t in terms) / total
        for words, above in bags
    )
    if similarity is not None:
        return (covered + 2.0 * similarity) / _WITH_SIMILARITY
    share = max(len(terms & _forms(words_stemmed(p.text))) / len(terms) for p in passages)
    hits = max(sum(_CJK_HIT if _CJK.search(t) else 1 for t in terms & words) for words, _ in bags)
    return (covered + 0.3 * share + 0.07 * min(hits, _MOST_HITS)) / _scale(terms)


def _scale(terms: set[str]) -> float:
    if any(_CJK.search(term) for term in terms):
        return _PAIRED
    latin = sum(term.isascii() or unicodedata.name(term[0], "").startswith("LATIN") for term in terms)
    return _LATIN if 2 * latin >= len(terms) else _OTHER


def names_held(question: str, passages: Iterable[RankedPassage]) -> bool:
    """Tell whether the names and numbers of a question stand in one of the passages together."""
    wanted = _names(question)
    return not wanted or any(
        wanted <= _forms(words_stemmed(f"{p.document} {p.headings} {p.text}")) for p in passages
    )


def _names(question: str) -> set[str]:
    """Return words inside of a question that have a digit or, where these are names, a capital letter."""
    if language_name(question) == "German":  # all nouns have one
        return _forms(word for word in content_terms(question) if any(map(str.isdigit, word)))
    found = [m for m in _NAMED.finditer(question) if not _CJK.search(m.group())]
    named = [m.group() for m in found[1:] if m.group()[0].isupper() or any(map(str.isdigit, m.group()))]
    if 2 * len(named) > len(found) and len(found) > 2:  # a heading, or shouting
        return set()
    return _forms(content_terms(" ".join(named)))


def _terms(question: str, passages: Sequence[RankedPassage]) -> set[str]:
    told = language_name(question) or language_name(" ".join(p.text for p in passages)[:2_000])
    common = function_words(told) if told != "English" else frozenset()
    terms = content_terms(question)
    return _forms([term for term in terms if term not in common] or terms)


def _forms(words: Iterable[str]) -> set[str]:
    """Return words by their beginnings; letters of scripts without spaces in pairs."""
    forms: set[str] = set()
    for word in words:
        if _CJK.search(word):
            forms |= {word[at : at + 2] for at in range(max(1, len(word) - 1))}
        else:
            forms.add(_AL.sub("", word.translate(_ARABIC))[:_STEM])
    return forms
