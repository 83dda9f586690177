"""Which documents a question wants, by their names, their periods and their age: an order of candidates, none hidden.

Reports of one company, a quarter apart, answer alike: what parts them stands on their covers. Each of the three lifts a
document's passages by at most what parts documents that say the same; a period or an age lifts fully only those that the
question names as it names the best. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from statistics import pstdev

from django.utils.translation import gettext as _

from apps.collections.ingestion.periods import Period, agreement, period_of, periods_asked
from apps.collections.search.named import MOST, Names
from apps.collections.search.newest import newest_asked, newest_lifts
from apps.collections.search.types import LEAST_SPREAD, Ranked, SearchHit

# “The latest report, for Q3 2022” means that quarter; “the latest compared with Q3 2022” two documents.
_SAME = re.compile(
    r"[\s,:(]*(?:(?!(?:and|with|to|than|against|versus|vs|or)\b)[\w’']+[\s,:(]+){0,4}", re.IGNORECASE
)


class WantedDocuments:
    """What one question says of the documents it wants, and what came of it.

    Attributes:
        note: a sentence for the result where the question asks for the newest, else "".
    """

    def __init__(self, query: str) -> None:
        self._query = query
        self._periods = periods_asked(query)
        newest = newest_asked(query)
        meant = [one for one in self._periods if not one.is_set_aside]
        if newest and any(_SAME.fullmatch(query, newest.end, one.span[0]) for one in meant):
            newest = None
        self._newest = newest.text if newest else ""
        self.note = ""
        self._of_period: dict[int, float] = {}
        self._dates: dict[int, date | None] = {}
        self._names: Mapping[int, float] = {}
        self._likeness: dict[int, float] = {}

    def rows_ordered(self, rows: list[Ranked]) -> list[Ranked]:
        """Order candidates by their scores and what is added to these.

        Args:
            rows: those of each document best first, as the statement gives them.
        """
        if not rows:
            return rows
        # What is added is the same for all passages of a document, so its first one stays its best.
        firsts = {row.document_id: row for row in reversed(rows)}
        names = self._read(list(firsts.values()))
        lifts = {pk: names.lift(pk) for pk in firsts}
        more = self._lifts({pk: row.score + lifts[pk] for pk, row in firsts.items()})
        if self._newest:
            self.note = self._told(is_any=any(more.values()))
        scored = [
            row.scored(row.score + lift + more[row.document_id])
            if (lift := lifts[row.document_id]) or more[row.document_id]
            else row
            for row in rows
        ]
        return sorted(scored, key=lambda row: (-row.score, row.chunk_id))

    def hits_ordered(self, hits: list[SearchHit]) -> list[SearchHit]:
        """Order what a reranker has ordered, by its scores in their own standard deviations; unscored ones stay last."""
        scored = [(hit, hit.rerank_score) for hit in hits if hit.rerank_score is not None]
        if not scored or not (self._newest or self._of_period):
            return hits
        spread = max(pstdev(score for _hit, score in scored), LEAST_SPREAD)
        scores = [score / spread for _hit, score in scored]
        best: dict[int, float] = {}
        for (hit, _score), score in zip(scored, scores, strict=True):
            best[hit.document_id] = max(best.get(hit.document_id, score), score)
        more = self._lifts(best)
        places = sorted(
            range(len(scored)),
            key=lambda place: -(scores[place] + more.get(scored[place][0].document_id, 0.0)),
        )
        return [*(scored[place][0] for place in places), *(hit for hit in hits if hit.rerank_score is None)]

    def _read(self, rows: list[Ranked]) -> Names:
        """Learn names, periods and dates of the candidates' documents, each by its first row."""
        query = self._query
        if self._newest or self._periods:
            periods = {row.document_id: _period(row.cover, row.dated) for row in rows}
            self._dates = {row.document_id: row.dated or periods[row.document_id].end for row in rows}
            for asked in self._periods:
                agreed = {pk: share for pk, period in periods.items() if (share := agreement(period, asked))}
                if agreed or asked.is_set_aside:  # as names, “Q3” and “2022” would be of Q3 2023 too
                    start, end = asked.span
                    query = query[:start] + " " * (end - start) + query[end:]
                if asked.is_set_aside:
                    continue
                for pk, share in agreed.items():
                    self._of_period[pk] = max(self._of_period.get(pk, 0.0), MOST * share)
        names = Names(query, rows)
        self._names = names.weights
        self._likeness = {pk: names.likeness(pk) for pk in names.weights}
        return names

    def _lifts(self, best: Mapping[int, float]) -> dict[int, float]:
        """Return what period and age add to each document's passages; the more of both.

        Args:
            best: score of the best passage by document, in standard deviations.
        """
        more = {pk: self._of_period.get(pk, 0.0) for pk in best}
        if self._newest:
            dates = {pk: self._dates.get(pk) for pk in best}
            for pk, lift in newest_lifts(best, dates, self._names).items():
                more[pk] = max(more[pk], lift)
        return {pk: lift * self._likeness.get(pk, 1.0) for pk, lift in more.items()}

    def _told(self, *, is_any: bool) -> str:
        asked, found = self._newest, set(self._dates.values())
        if is_any:
            text = _(
                "The question says “%(asked)s”, so among equally good passages, those from newer documents come first."
            )
        elif any(found) and len(found) > 1:
            text = _(
                "The question says “%(asked)s”, but the documents found don't differ in date where passages are equally "
                "good, so their age did not affect the order."
            )
        elif any(found):
            text = _(
                "The question says “%(asked)s”, but the documents found have the same date, so their age did not affect "
                "the order."
            )
        else:
            text = _(
                "The question says “%(asked)s”, but the documents found have no date, so their age did not affect the "
                "order."
            )
        return text % {"asked": asked}


def _period(cover: str, dated: date | None) -> Period:
    """Return the period of a document by its cover, else by the date that people gave it."""
    period = period_of(cover)
    return period if period.end or dated is None else Period(dated, is_exact=True)
