"""Formulas over texts, numbers and rankings. Each is the standard one of its field."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")


def normalise(text: str) -> str:
    """Return a text as SQuAD compares it: lower case, no punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def f1(found: Collection[str], wanted: Collection[str]) -> float:
    """Return the F1 of two multisets of tokens; 1 when both are empty (Rajpurkar et al. 2016)."""
    if not found or not wanted:
        return float(not found and not wanted)
    shared = sum((Counter(found) & Counter(wanted)).values())
    return 2 * shared / (len(found) + len(wanted))


def token_f1(answer: str, reference: str) -> float:
    """Return SQuAD's F1 over the words of two texts."""
    return f1(normalise(answer).split(), normalise(reference).split())


def rouge_l(answer: str, reference: str) -> float:
    """Return ROUGE-L: the F1 of the longest common subsequence of words (Lin 2004, with beta 1)."""
    found, wanted = _WORD.findall(answer.lower()), _WORD.findall(reference.lower())
    if not found or not wanted:
        return float(not found and not wanted)
    return 2 * _common_subsequence(found, wanted) / (len(found) + len(wanted))


def _common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Return its length: one row of the table as the bits of one integer (Hyyrö 2004), so that pages take milliseconds."""
    places: dict[str, int] = {}
    for index, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << index
    every = (1 << len(a)) - 1
    row = every
    for word in b:
        hit = row & places.get(word, 0)
        row = ((row + hit) | (row - hit)) & every
    return len(a) - row.bit_count()


def numbers(text: str) -> list[float]:
    """Return the numbers of a text in order; commas between thousands are read over."""
    return [float(m.group().replace(",", "").replace("−", "-")) for m in _NUMBER.finditer(text)]


# Rankings: ``ranked`` are ids, best first, none twice; ``gains`` are the relevant ids with gains above 0. Equal to
# trec_eval's recip_rank, recall_k, P_k, map_cut_k and ndcg_cut_k.


def recall_at(ranked: Sequence[int], gains: Mapping[int, float], k: int) -> float:
    """Return the share of the relevant that stand among the first k."""
    return sum(1 for key in ranked[:k] if key in gains) / len(gains)


def precision_at(ranked: Sequence[int], gains: Mapping[int, float], k: int) -> float:
    """Return the share of k places that hold a relevant one; places left empty count as misses."""
    return sum(1 for key in ranked[:k] if key in gains) / k


def reciprocal_rank(ranked: Sequence[int], gains: Mapping[int, float]) -> float:
    """Return 1 by the place of the first relevant one, 0 when there is none."""
    return next((1 / place for place, key in enumerate(ranked, 1) if key in gains), 0.0)


def average_precision(ranked: Sequence[int], gains: Mapping[int, float], k: int) -> float:
    """Return the mean of the precision at each relevant one among the first k, over all relevant."""
    hits, total = 0, 0.0
    for place, key in enumerate(ranked[:k], 1):
        if key in gains:
            hits += 1
            total += hits / place
    return total / len(gains)


def ndcg_at(ranked: Sequence[int], gains: Mapping[int, float], k: int) -> float:
    """Return the discounted gain of the first k over the best possible (Järvelin and Kekäläinen 2002; linear gains)."""
    found = sum(gains.get(key, 0) / math.log2(place + 1) for place, key in enumerate(ranked[:k], 1))
    best = sorted(gains.values(), reverse=True)[:k]
    return found / sum(gain / math.log2(place + 1) for place, gain in enumerate(best, 1))


def pass_hat_k(solved: int, tries: int, k: int) -> float:
    """Return pass^k: the chance that k tries of the same task all succeed (Yao et al. 2024, tau-bench).

    Raises:
        ValueError: there are fewer than k tries.
    """
    if not 1 <= k <= tries or not 0 <= solved <= tries:
        raise ValueError(f"pass^{k} needs at least {k} tries, got {tries}")
    return math.comb(solved, k) / math.comb(tries, k)
