"""Questions for the latest: a preference for newer documents among passages that answer alike. Pure.

“What is the latest rate?” has an answer in each year's report, and the passages say the same but for the number. So of
the best candidates those of newer documents are lifted, never by more than parts documents that say the same, and none is
hidden. What is asked for is read from the words of each language that documents can be in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from statistics import pstdev
from typing import Any

from apps.collections.ingestion.lexical import STOP_WORDS
from apps.collections.search.named import MOST
from apps.collections.search.types import LEAST_SPREAD, SearchHit

# Words that ask for the newest, in languages that put blanks between words; each stands for itself, inflected.
_WORDS = r"""
    latest | newest | (?:most|more)\s+(?:recent|current) | (?:most\s+)?up[-\s]to[-\s]date
    | neu(?:e)?ste[nrsm]? | jüngste[nrsm]? | aktuell(?:e[nrsm]?|ste[nrsm]?)? | derzeitige[nrsm]?
    | derni(?:er|ers|ère|ères) | plus\s+récente?s? | actuel(?:le)?s? | en\s+vigueur
    | más\s+recientes? | últim[oa]s? | vigentes? | (?:el|la|los|las)\s+(?:\w+\s+){0,2}actual(?:es)?
    | mais\s+recentes? | atua(?:l|is) | più\s+recent[ei] | ultim[oaie] | attual[ei]
    | nieuwste | laatste | (?:meest\s+)?recentste | meest\s+recente | huidige | actuele
    | senaste | nyaste | nuvarande | aktuella | seneste | nyeste | nuværende | nåværende | gjeldende
    | uusi(?:n|mm\w+) | viimeisi(?:n|mm\w+) | nyky(?:inen|is\w+) | voimassa\s+olev\w+
    | najnowsz\w+ | aktualn\w+ | obecn(?:y|a|e|ego|ej|ym) | bieżąc\w+
    | nejnovější\w* | aktuální\w* | současn[ýáéí]\w* | platn[ýáéí]\w*
    | legújabb\w* | legfrissebb\w* | jelenlegi | aktuális | hatályos
    | (?:cel|cea|cei|cele)\s+mai\s+(?:recent|nou)\w* | actual[ăe] | actualul
    | последн\w+ | новейш\w+ | свеж(?:ий|ая|ее|ие|ей|их) | актуальн\w+ | текущ\w+ | нынешн\w+ | действующ\w+
    | en\s+son | en\s+yeni | en\s+güncel | güncel | yürürlükteki
    | τελευταί\w+ | (?:πιο\s+)?πρόσφατ\w+ | νεότερ\w+ | τρέχ\w+ | ισχύ\w+
    | (?:ال)?أحدث | الحالي(?:ة)? | الساري(?:ة)? | ה?עדכני(?:ת|ים|ות)? | האחרו(?:ן|נה|נים|נות) | הנוכחי(?:ת|ים|ות)?
    | جدیدترین | آخرین | فعلی | کنونی | नवीनतम | ताज़ा | ताजा | वर्तमान | मौजूदा | सबसे\s+(?:नया|नई|नए)
    | terbaru | terkini | mới\s+nhất | hiện\s+hành
"""
# Languages without blanks, and Korean, whose words carry endings.
_LETTERS = "最新|最も新しい|いちばん新しい|一番新しい|直近の|現行|(?<![年月日])現在の|现行|当前|當前|目前|ล่าสุด|ใหม่ที่สุด|ในปัจจุบัน|최신|가장 최근|현행|현재의"
# What is in quotation marks or part of a name (a tag “latest”, app:latest) is spoken of, not asked for.
_SPOKEN_OF = r"(?<![\w\"'“‘`«:/._-])"
_NEWEST = re.compile(
    rf"{_SPOKEN_OF}(?:{''.join(_WORDS.split())})(?![\w\"'”’`»:/_-])|{_LETTERS}", re.IGNORECASE
)
_CURRENT = re.compile(
    rf"(?:(?P<before>[\w-]+)\s+)?{_SPOKEN_OF}(?P<current>current)(?![\w\"'”’`:/_-])\s+(?P<after>[\w-]+)",
    re.IGNORECASE,
)
# English: a current that flows, or a kind of account.
_FLOWING = frozenset(
    "alternating charging constant direct eddy electric electrical fault high inrush input leakage limited load low "
    "maximum minimum nominal ocean operating output peak rated residual short-circuit supply thermal tidal".split()
)
_OF_A_CURRENT = frozenset(
    "account accounts balance carrying carrying-capacity clamp collector collectors consumption density draw flow flowing "
    "flows intensity limit limiter limiting loop measurement meter mirror rating sensor source sources strength "
    "transformer transformers".split()
)
_BUT_NOT = re.compile(
    r"\b(?:not|than|before|without|except|unlike|preceding)\s+(?:(?:the|our|its|their|this)\s+)?\Z",
    re.IGNORECASE,
)


def newest_asked(query: str) -> str:
    """Return the words by which a question asks for the newest, as it writes them; "" where it does not.

    What an English question sets aside (“older than the latest”) does not count; nor does a current that flows.
    """
    for match in _NEWEST.finditer(query):
        if not _BUT_NOT.search(query[: match.start()]):
            return match.group()
    for match in _CURRENT.finditer(query):
        before, after = (match["before"] or "").lower(), match["after"].lower()
        is_adjective = after not in STOP_WORDS and after not in _OF_A_CURRENT and before not in _FLOWING
        if is_adjective and not _BUT_NOT.search(query[: match.start("current")]):
            return match["current"]
    return ""


def lifts(scores: Sequence[float], dates: Sequence[date | None]) -> list[float]:
    """Return how much to add to each score: the most for the newest document, half of it for the one before, and so on.

    Only those compete that are no more than ``MOST`` below the best: nothing else could come first by it.

    Args:
        scores: in standard deviations, as ``apps.collections.search.fusion`` gives them.
        dates: of the documents, None where a document has none.
    """
    least = max(scores, default=0.0) - MOST
    there = sorted(
        {day for score, day in zip(scores, dates, strict=True) if day and score >= least}, reverse=True
    )
    shares = {day: MOST / place for place, day in enumerate(there, 1)} if len(there) > 1 else {}
    return [
        shares.get(day, 0.0) if day and score >= least else 0.0
        for score, day in zip(scores, dates, strict=True)
    ]


class Newest:
    """What one question says of the age of documents, and what came of it.

    Attributes:
        asked: its words for that, "" where it has none; then nothing is ordered and nothing noted.
        note: a sentence for the result.
    """

    def __init__(self, query: str) -> None:
        self.asked = newest_asked(query)
        self.note = ""
        self._dates: dict[int, date | None] = {}

    def rows_ordered(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Order candidates anew; their scores keep what was added.

        Args:
            rows: with ``chunk_id``, ``document_id``, ``score`` and ``dated``.
        """
        if not self.asked or not rows:
            return rows
        self._dates = {row["document_id"]: row["dated"] for row in rows}
        more = lifts([row["score"] for row in rows], [row["dated"] for row in rows])
        self.note = self._told(is_any=any(more))
        scored = [row | {"score": row["score"] + lift} for row, lift in zip(rows, more, strict=True)]
        return sorted(scored, key=lambda row: (-row["score"], row["chunk_id"]))

    def hits_ordered(self, hits: list[SearchHit]) -> list[SearchHit]:
        """Order what a reranker has ordered, by its scores in their own standard deviations; unscored ones stay last."""
        scored = [(hit, hit.rerank_score) for hit in hits if hit.rerank_score is not None]
        if not self.asked or not scored:
            return hits
        spread = max(pstdev(score for _, score in scored), LEAST_SPREAD)
        scores = [score / spread for _, score in scored]
        more = lifts(scores, [self._dates.get(hit.document_id) for hit, _ in scored])
        places = sorted(range(len(scored)), key=lambda place: -(scores[place] + more[place]))
        return [*(scored[place][0] for place in places), *(hit for hit in hits if hit.rerank_score is None)]

    def _told(self, *, is_any: bool) -> str:
        if is_any:
            return (
                f"The question says “{self.asked}”, so among equally good passages, those from newer "
                f"documents come first."
            )
        found: Mapping[int, date | None] = self._dates
        why = "have the same date" if any(found.values()) else "have no date"
        if any(found.values()) and len(set(found.values())) > 1:
            why = "don't differ in date where passages are equally good"
        return (
            f"The question says “{self.asked}”, but the documents found {why}, so their age did not "
            f"affect the order."
        )
