"""A workspace with a document, a search that needs no embedder, and a lane to run turns on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apps.collections.models import Chunk
from apps.collections.search import SearchHit, SearchResult
from tests.cast import Cast
from tests.conversations.support import Library, make_library
from tests.runs.conftest import _streams_closed, lane_threads  # noqa: F401 - fixtures


def hit_of(chunk: Chunk) -> SearchHit:
    """Return what a search that found this chunk would return."""
    return SearchHit(
        chunk_id=chunk.pk,
        text=chunk.text,
        index=chunk.index,
        kind=chunk.kind,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        page_start=chunk.page_start,
        page_end=chunk.page_end,
        headings=chunk.headings,
        metadata={},
        collection_id=chunk.collection_id,
        document_id=chunk.document_id,
        document_name=chunk.document.name,
        version=chunk.document.version,
        media_type=chunk.document.media_type,
        score=1.0,
        vector_rank=1,
        lexical_rank=1,
        exact_rank=None,
        distance=0.1,
        bm25=1.0,
    )


@pytest.fixture
def library(cast: Cast) -> Library:
    return make_library(cast)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Replace the search by one that finds every chunk of the collections it is asked for; returns its calls."""
    calls: list[dict[str, Any]] = []

    def search(**kwargs: Any) -> SearchResult:
        calls.append(kwargs)
        kwargs["actor"].require("search.run")
        scope: Sequence[Any] = kwargs["collections"]
        chunks = Chunk.objects.select_related("document").filter(collection__in=scope)
        hits = [hit_of(chunk) for chunk in chunks.order_by("pk")]
        return SearchResult(kwargs["query"], hits, [], ("lexical",), "", 0.0, 0.0)

    monkeypatch.setattr("apps.conversations.toolset.document_search.search_run", search)
    return calls
