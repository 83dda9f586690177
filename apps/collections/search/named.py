"""Which documents a question names, by what search knows of each: company, period, form, title.

Their passages would not come first by that alone: what stands with each of two hundred passages of a filing is common,
and weighs next to nothing beside what the question is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from apps.collections.ingestion.lexical import form_of, idf, question_tokenise, tokenise_as
from apps.collections.search.types import Ranked

# Standard deviations of a leg: enough to part documents that say the same, not to bring a passage about something else.
MOST = 2.0
_FORM = form_of("english")  # of a document that has none


class Names:
    """How far a question names the documents of its candidates.

    Attributes:
        weights: by document, of the terms that its cover shares with the question (idf among the candidates' documents).
    """

    def __init__(self, query: str, rows: Sequence[Ranked]) -> None:
        """Weigh the names.

        Args:
            rows: one of each document, with its cover.
        """
        self._forms = {row.document_id: row.form or _FORM for row in rows}
        asked = {form: _words(question_tokenise(query, form)) for form in set(self._forms.values())}
        shared = {
            row.document_id: asked[form] & _terms(row.cover, form)
            for row in rows
            if row.cover and (form := self._forms[row.document_id])
        }
        documents = Counter(term for terms in shared.values() for term in terms)
        weights = {term: idf(len(self._forms), count) for term, count in documents.items()}
        self._told = {form: sum(weights.get(term, 0.0) for term in terms) for form, terms in asked.items()}
        self.weights = {pk: sum(weights[term] for term in shared.get(pk, ())) for pk in self._forms}
        self._best = max(self.weights.values(), default=0.0)

    def lift(self, document: int) -> float:
        """Return how much to add to the score of a document's passages, at most ``MOST``.

        It is the weight of what names it, times the squared share of this in what the covers tell of the question at
        all: one that is named in full counts, one of the right year but another company hardly.
        """
        weight = self.weights[document]
        return min(weight, MOST) * (weight / self._told[self._forms[document]]) ** 2 if weight else 0.0

    def likeness(self, document: int) -> float:
        """Return how much a document is named like the best-named one, 0 to 1; 1 for all where none is named."""
        # One more on both sides: words that all documents share weigh little, and part none.
        return ((self.weights[document] + 1) / (self._best + 1)) ** 2


@lru_cache(maxsize=8_192)
def _terms(text: str, form: str) -> frozenset[str]:
    return _words(tokenise_as(text, form))


def _words(terms: Iterable[str]) -> frozenset[str]:
    return frozenset(term for term in terms if not term.startswith("="))
