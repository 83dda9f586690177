"""Find rows of a dataset by words: the index, and the database function that may use it.

``tsvector @@`` is not leakproof, so under row-level security the planner may not use the GIN index for it. The function
runs as the table's owner, states the tenant itself, and takes every other filter too, so that the planner sees all of
them with the limit: a frequent word is then read in the rows' order, a rare one from the index.

Migration 0007 says which words a row has: those of question and answer and of the names of the sources' documents (whole
and in parts: "rates-2.pdf" is one word to Postgres), and the dataset as a word of its own, so that the words of other
datasets cost nothing. They are kept in the row: to read a thousand rows in their order costs a millisecond, to make their
words anew forty. Postgres takes at most 1 MB of words in one value.
Wire format of the query: https://www.postgresql.org/docs/current/datatype-textsearch.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from django.db import connection
from django.db.models.expressions import RawSQL

SIGNATURE = "datasets_rows_found(bigint, text, jsonb, text, text, bigint, boolean, integer)"
TABLES = ("datasets_datasetrow",)
MOST_WORDS = 12
"""Of a search; more narrow it no further."""
LONGEST = 200
"""Characters of a word that count: Postgres refuses very long ones."""

SQL = """
CREATE OR REPLACE FUNCTION datasets_rows_found(
  scope bigint, asked text, equal jsonb, source text, tag text, past bigint, is_back boolean, most integer)
RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp ROWS 100 AS $$
DECLARE
  tests text := '';
  name text;
  wanted text;
  words tsquery := quote_literal('dataset ' || scope)::tsquery;
BEGIN
  IF asked <> '' THEN
    words := words && to_tsquery('simple', asked);
  END IF;
  FOR name, wanted IN SELECT e.key, e.value FROM jsonb_each_text(equal) e LOOP
    tests := tests || format(' AND %I = %L', name, wanted);
  END LOOP;
  IF tag <> '' THEN
    tests := tests || format(' AND tags @> ARRAY[%L]::varchar[]', tag);
  END IF;
  IF source <> '' THEN
    words := words && plainto_tsquery('simple', source);
    tests := tests || format(' AND sources @> %L::jsonb', jsonb_build_array(jsonb_build_object('document', source)));
  END IF;
  IF past IS NOT NULL THEN
    tests := tests || format(' AND id %s %s', CASE WHEN is_back THEN '<' ELSE '>' END, past);
  END IF;
  RETURN QUERY EXECUTE format(
    'SELECT id FROM datasets_datasetrow WHERE tenant_id = %L AND dataset_id = %s%s AND words @@ %L::tsquery '
    'ORDER BY id %s LIMIT %s',
    nullif(current_setting('app.tenant_id', true), '')::bigint, scope, tests, words,
    CASE WHEN is_back THEN 'DESC' ELSE 'ASC' END, coalesce(most::text, 'ALL'));
END
$$
"""
_CALL = "SELECT datasets_rows_found(%s, %s, %s, %s, %s, %s, %s, %s)"


def asked_words(text: str) -> str:
    """Return a search as ``to_tsquery`` takes it: every word must be there, each also finds longer ones; "" without any."""
    words = text.replace("\x00", " ").replace("\\", " ").replace("'", " ").split()[:MOST_WORDS]
    return " & ".join(f"'{word[:LONGEST]}':*" for word in words)


def found_ids(
    dataset_id: int,
    *,
    text: str,
    equal: Mapping[str, str],
    source: str,
    tag: str,
    past: int | None,
    is_back: bool,
    most: int,
) -> list[int]:
    """Return the ids of the first rows that fit, in the rows' order, or backwards.

    Args:
        equal: column to its value.
        past: only rows after this one (before it, backwards).
    """
    values = [*_values(dataset_id, text, equal, source, tag), past, is_back, most]
    with connection.cursor() as cursor:
        cursor.execute(_CALL, values)
        return [pk for (pk,) in cursor.fetchall()]


def all_found(dataset_id: int, *, text: str, equal: Mapping[str, str], source: str, tag: str) -> RawSQL:
    """Return the ids of all rows that fit as a subquery."""
    values = [*_values(dataset_id, text, equal, source, tag), None, False, None]
    casts = _CALL.replace("%s, %s, %s)", "%s::bigint, %s, %s::integer)")
    return RawSQL(casts, values)  # noqa: S611 - the values are parameters


def _values(
    dataset_id: int, text: str, equal: Mapping[str, str], source: str, tag: str
) -> list[str | int | bool | None]:
    # No text in Postgres holds a NUL, so nothing is lost with it.
    known = {name: value.replace("\x00", "") for name, value in equal.items()}
    source, tag = source.replace("\x00", ""), tag.replace("\x00", "")
    return [dataset_id, asked_words(text), json.dumps(known), source, tag]
