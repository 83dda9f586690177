"""The database function behind the exact leg of search.

``tsvector @@`` is not leakproof, so under row-level security the planner may not use the GIN index for it: 340 ms
instead of 0.5 ms were measured. The function runs as the tables' owner and states the tenant itself.
"""

# ruff: noqa: S608 - only constants of this module stand in the text
from __future__ import annotations

SIGNATURE = "collections_identifier_hits(text[], bigint[])"
TABLES = ("collections_chunkterms",)

# An identifier that stands in more chunks than this identifies nothing; BM25 weighs it all the same.
MAX_CHUNKS_PER_IDENTIFIER = 500

# Rarer identifiers weigh more; a chunk that only holds a longer code under the one asked for (8539.50 -> 8539.50.00)
# weighs half. Two branches and no OR, so that each is one index look-up.
SQL = f"""
CREATE OR REPLACE FUNCTION collections_identifier_hits(asked text[], scope bigint[])
RETURNS TABLE (chunk_id bigint, document_id bigint, score double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 100 AS $$
  WITH found AS (
    SELECT a.lexeme, h.chunk_id, h.document_id, h.weight,
           count(*) OVER (PARTITION BY a.lexeme) AS chunks
    FROM unnest(asked) AS a (lexeme)
    CROSS JOIN LATERAL (
      (SELECT t.chunk_id, t.document_id, 1.0::float8 AS weight
       FROM collections_chunkterms t
       WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::bigint
         AND t.collection_id = ANY (scope)
         AND t.lexemes @@ (quote_literal(a.lexeme))::tsquery
       LIMIT {MAX_CHUNKS_PER_IDENTIFIER} + 1)
      UNION ALL
      (SELECT t.chunk_id, t.document_id, 0.5::float8
       FROM collections_chunkterms t
       WHERE t.tenant_id = nullif(current_setting('app.tenant_id', true), '')::bigint
         AND t.collection_id = ANY (scope)
         AND t.lexemes @@ (quote_literal(a.lexeme || '.') || ':*')::tsquery
       LIMIT {MAX_CHUNKS_PER_IDENTIFIER} + 1)
    ) h
  )
  SELECT f.chunk_id, f.document_id, sum(f.weight / f.chunks)
  FROM found f WHERE f.chunks <= {MAX_CHUNKS_PER_IDENTIFIER}
  GROUP BY f.chunk_id, f.document_id
$$
"""
