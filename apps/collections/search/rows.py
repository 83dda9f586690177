"""What is shown of passages: read for those alone that are shown, or whose text decides their place."""

# ruff: noqa: S608 - only constants of this module stand in the text, every value is a parameter

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.db import connection

from apps.collections.quotes.selectors import PAGES, quotable
from apps.collections.search.types import Ranked, SearchHit

_OF_CHUNK = (
    *("text", "index", "kind", "char_start", "char_end", "page_start", "page_end", "headings", "metadata"),
    *("collection_id", "document_id"),
)
_OF_DOCUMENT = ("version", "media_type", "document_type")
_COLUMNS = ("chunk_id", *_OF_CHUNK, "document_name", *_OF_DOCUMENT)
_WHOLE = f"""
    SELECT c.id, {", ".join(f"c.{name}" for name in _OF_CHUNK)}, d.name,
           {", ".join(f"d.{name}" for name in _OF_DOCUMENT)}{{pages}}
    FROM collections_chunk c
    JOIN collections_document d ON d.id = c.document_id AND d.tenant_id = %(tenant)s
    WHERE c.tenant_id = %(tenant)s AND c.id = ANY (%(chunks)s)
"""
_PLAIN, _QUOTED = _WHOLE.replace("{pages}", ""), _WHOLE.replace("{pages}", f", {PAGES} AS pages")


class Passages:
    """The passages of one search, each read at most once.

    Args:
        tenant_id: whose.
        is_quoted: read what may be quoted of them too.

    Whether a passage may be found was decided by the statement that ranked it, a moment ago; one that has been deleted
    since is left out.
    """

    def __init__(self, tenant_id: int, *, is_quoted: bool = False) -> None:
        self._tenant_id, self._is_quoted = tenant_id, is_quoted
        self._read: dict[int, dict[str, Any]] = {}
        self._asked: set[int] = set()

    def hits(self, rows: Sequence[Ranked]) -> list[SearchHit]:
        """Return candidates as passages, in their order."""
        self._read_missing([row.chunk_id for row in rows])
        return [
            SearchHit(
                **self._read[row.chunk_id],
                score=row.score,
                vector_rank=row.vector_rank,
                lexical_rank=row.lexical_rank,
                exact_rank=row.exact_rank,
                distance=row.distance,
                bm25=row.bm25,
            )
            for row in rows
            if row.chunk_id in self._read
        ]

    def _read_missing(self, chunks: Sequence[int]) -> None:
        missing = [pk for pk in chunks if pk not in self._asked]
        if not missing:
            return
        self._asked.update(missing)
        with connection.cursor() as cursor:
            cursor.execute(
                _QUOTED if self._is_quoted else _PLAIN, {"tenant": self._tenant_id, "chunks": missing}
            )
            names = (*_COLUMNS, "pages") if self._is_quoted else _COLUMNS
            for values in cursor.fetchall():
                row = dict(zip(names, values, strict=True))
                # Django leaves jsonb as text on a cursor: its JSONField is what parses it otherwise.
                row["headings"], row["metadata"] = json.loads(row["headings"]), json.loads(row["metadata"])
                if self._is_quoted:
                    row["quotable"] = quotable(
                        self._tenant_id,
                        *(row[name] for name in ("char_start", "char_end", "text", "media_type")),
                        row["page_start"] is not None,
                        row.pop("pages"),
                    )
                self._read[row["chunk_id"]] = row
