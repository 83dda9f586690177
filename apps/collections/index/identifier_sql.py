"""The database function behind the exact leg of search.

``tsvector @@`` is not leakproof, so under row-level security the planner may not use the GIN index for it: 340 ms
instead of 0.5 ms were measured. The function runs as the tables' owner and states the tenant itself.
"""

# ruff: noqa: S608 - only constants of this module stand in the text
from __future__ import annotations

from apps.collections.ingestion.codes import CODE_PREFIX

SIGNATURE = "collections_identifier_hits(text[], bigint[])"
TABLES = ("collections_chunkterms",)

# An identifier that stands in more chunks than this identifies nothing; BM25 weighs it all the same. A code always names
# one thing: of those in more chunks, this many are found.
MAX_CHUNKS_PER_IDENTIFIER = 500

# What is asked for and ends in ``*`` is the beginning of longer ones (8539.50. -> 8539.50.00). A chunk that holds what was asked for comes before any that holds something longer; rarer
# identifiers weigh more.
SQL = f"""
CREATE OR REPLACE FUNCTION collections_identifier_hits(asked text[], scope bigint[])
RETURNS TABLE (chunk_id bigint, document_id bigint, score double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 100 AS $$
  WITH found AS (
    SELECT a.lexeme, h.chunk_id, h.document_id, count(*) OVER (PARTITION BY a.lexeme) AS chunks
    FROM unnest(asked) AS a (lexeme)
    CROSS JOIN LATERAL (
      SELECT t.chunk_id, t.document_id
      FROM collections_chunkterms t
      WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::bigint
        AND t.collection_id = ANY (scope)
        AND t.lexemes @@ (CASE WHEN right(a.lexeme, 1) = '*' THEN quote_literal(left(a.lexeme, -1)) || ':*'
                               ELSE quote_literal(a.lexeme) END)::tsquery
      LIMIT {MAX_CHUNKS_PER_IDENTIFIER} + 1) h
  )
  SELECT f.chunk_id, f.document_id,
         sum(CASE WHEN right(f.lexeme, 1) = '*' THEN 0.01 + 0.5 / f.chunks ELSE 1.0 + 1.0 / f.chunks END)::float8
  FROM found f
  WHERE f.chunks <= {MAX_CHUNKS_PER_IDENTIFIER} OR f.lexeme LIKE '{CODE_PREFIX}%'
  GROUP BY f.chunk_id, f.document_id
$$
"""
