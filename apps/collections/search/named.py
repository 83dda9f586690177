"""Which documents a question names, by what search knows of each: company, period, form, title.

Their passages would not come first by that alone: what stands with each of two hundred passages of a filing is common,
and weighs next to nothing beside what the question is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from apps.collections.ingestion.lexical import form_of, idf, tokenise_as

# Standard deviations of a leg: enough to part documents that say the same, not to bring a passage about something else.
MOST = 2.0


def named_first(query: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Order the candidates of a search anew, those of documents that the question names before others.

    A document gets the weight of the terms that its cover shares with the question (idf among the candidates'
    documents, at most ``MOST``), times the squared share of these in what the covers tell of the question at all: one
    that is named in full counts, one of the right year but another company hardly.

    Args:
        rows: with ``document_id``, ``cover``, ``form`` (of its terms), ``score`` and ``chunk_id``.

    Returns:
        The rows by their new scores, best first.
    """
    forms = {row["document_id"]: row["form"] or form_of("english") for row in rows}
    asked = {form: _terms(query, form) for form in set(forms.values())}
    shared = {
        row["document_id"]: asked[form] & _terms(row["cover"], form)
        for row in rows
        if row["cover"] and (form := forms[row["document_id"]])
    }
    documents = Counter(term for terms in shared.values() for term in terms)
    weights = {term: idf(len(forms), count) for term, count in documents.items()}
    told = {form: sum(weights.get(term, 0.0) for term in terms) for form, terms in asked.items()}
    scored: list[dict[str, Any]] = []
    for row in rows:
        pk = row["document_id"]
        weight = sum(weights[term] for term in shared.get(pk, ()))
        more = min(weight, MOST) * (weight / told[forms[pk]]) ** 2 if weight else 0.0
        scored.append(row | {"score": row["score"] + more})
    return sorted(scored, key=lambda row: (-row["score"], row["chunk_id"]))


@lru_cache(maxsize=8_192)
def _terms(text: str, form: str) -> frozenset[str]:
    return frozenset(term for term in tokenise_as(text, form) if not term.startswith("="))
