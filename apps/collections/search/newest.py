"""Questions for the latest: a preference for newer documents among passages that answer alike. Pure.

“What is the latest rate?” has an answer in each year's report, and the passages say the same but for the number. So those
of newer documents are lifted, never by more than parts documents that say the same, and none is hidden. What is asked
for is read from the words of each language that documents can be in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

from apps.collections.ingestion.lexical import STOP_WORDS
from apps.collections.search.named import MOST

# Words that ask for the newest, in languages that put blanks between words; each stands for itself, inflected.
_WORDS = r"""
    latest | newest | (?:most|more)\s+(?:recent|current) | (?:most\s+)?up[-\s]to[-\s]date
    | letzte[nrsm]?\s+(?:\w*bericht\w*|\w*quartal\w*|\w*abschluss\w*|fassung|version|ausgabe|stand)
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
# English: a current that flows, or a kind of account or item of a balance sheet.
_FLOWING = frozenset(
    "alternating charging constant direct eddy electric electrical fault high inrush input leakage limited load low "
    "maximum minimum nominal ocean operating output peak rated residual short-circuit supply thermal tidal".split()
)
_OF_A_CURRENT = frozenset(
    "account accounts asset assets liability liabilities maturities portion ratio tax taxes balance carrying carrying-capacity clamp collector collectors consumption density draw flow flowing "
    "flows intensity limit limiter limiting loop measurement meter mirror rating sensor source sources strength "
    "transformer transformers".split()
)
_BUT_NOT = re.compile(
    r"(?:\b(?:not|than|before|without|except|unlike|preceding|since)\s+(?:(?:the|our|its|their|this)\s+)?"
    r"|\bat\s+the\s+(?:very\s+)?|\bpor\s+)\Z",  # “at the latest”, “por último”: no document
    re.IGNORECASE,
)
# “Les dernières années”, “los últimos cinco meses”: a span of time.
_SPAN = re.compile(
    r"\s+(?:\w+\s+){0,2}?(?:ann[ée]+e?s|ans|mois|jours|semaines|décennies|años|meses|días|semanas|décadas|anni|mesi|giorni"
    r"|anos|dias|jaren|maanden|weken|dagen|årene|åren|лет|года|годы|месяцев|дней|недель)\b",
    re.IGNORECASE,
)


class NewestWords(NamedTuple):
    """Words by which a question asks for the newest, as it writes them, and where they end in it."""

    text: str
    end: int


def newest_asked(query: str) -> NewestWords | None:
    """Return the words by which a question asks for the newest; None where it does not.

    What an English question sets aside (“older than the latest”) does not count; nor does a current that flows, or a
    span of time.
    """
    for match in _NEWEST.finditer(query):
        if not _BUT_NOT.search(query[: match.start()]) and not _SPAN.match(query, match.end()):
            return NewestWords(match.group(), match.end())
    if "current" not in query.lower():
        return None
    for match in _CURRENT.finditer(query):
        before, after = (match["before"] or "").lower(), match["after"].lower()
        is_adjective = after not in STOP_WORDS and after not in _OF_A_CURRENT and before not in _FLOWING
        if is_adjective and not _BUT_NOT.search(query[: match.start("current")]):
            return NewestWords(match["current"], match.end("current"))
    return None


def newest_lifts(
    scores: Mapping[int, float], dates: Mapping[int, date | None], names: Mapping[int, float]
) -> dict[int, float]:
    """Return how much to add to the passages of each document: the most for the newest, half for the one before, and so on.

    A document competes with those that answer and are named at least about as well: a newer one of another company, or
    about something else, takes nothing from it. Documents without a date, or without another date to compete with, get
    nothing.

    Args:
        scores: by document, of its best passage, in standard deviations.
        dates: of the documents, None where a document has none.
        names: weights of what names them, see ``apps.collections.search.named.Names``.
    """
    found: dict[int, float] = {}
    for pk, day in dates.items():
        if day is None:
            continue
        rivals = {
            other_day
            for other, other_day in dates.items()
            if other_day and scores[other] >= scores[pk] - MOST and names[other] >= names[pk] / 2
        }
        newer = sum(other_day > day for other_day in rivals)
        if len(rivals) > 1:
            found[pk] = MOST / (1 + newer)
    return found
