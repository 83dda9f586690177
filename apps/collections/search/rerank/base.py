"""Reading the best candidates once more: what a reranker is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from apps.collections.search.types import SearchHit

RERANK_DEPTH = 30  # candidates that a reranker reads


class Reranker(Protocol):
    """Orders passages anew by reading them together with the question."""

    @property
    def name(self) -> str:
        """Return what the trace and notes call it."""

    def rerank(self, query: str, hits: Sequence[SearchHit]) -> list[SearchHit]:
        """Return the same hits, best first, with their ``rerank_score``; None for one that it did not score.

        Raises:
            DomainError: it cannot answer; the search then keeps the fused order and says so.
        """
