"""A question to begin a conversation with, made of a passage as rows are made by rules. Pure, deterministic."""

from __future__ import annotations

from functools import lru_cache

from apps.collections.models import ChunkKind
from apps.datasets.generation.corpus import CorpusPassage
from apps.datasets.generation.rule_claims import claims_of

LONGEST = 110
"""Characters: what a person reads at a glance."""
MOST_DOUBT = 2
_UNNAMED = ", according to “”?"
"""How a question ends that would name its document: it is asked where the whole workspace is searched."""


@lru_cache(maxsize=512)
def first_question(text: str, headings: tuple[str, ...], char_start: int) -> str:
    """Return a question that a sentence of a passage answers: of those that least speaks against, the one that says most.

    Rows of tables are not asked about, and the document is not named: a newcomer knows neither. The result is kept,
    because a page asks at each visit.

    Args:
        text: of the passage.
        headings: above it, the outermost first.
        char_start: its offset in the document's text, in characters.
    """
    passage = CorpusPassage(0, 0, "", "", text, char_start, None, headings, ChunkKind.DOC, "")
    questions = [
        (claim.doubt, -claim.weight, claim.question.replace(_UNNAMED, "?"))
        for claim in claims_of(passage)
        if not claim.column and claim.doubt <= MOST_DOUBT
    ]
    return min((q for q in questions if len(q[2]) <= LONGEST and "“" not in q[2]), default=(0, 0, ""))[2]
