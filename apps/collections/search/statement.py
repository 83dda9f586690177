"""The SQL statement that ranks: documents and chunks that may be found, and the legs over them.

It reads ids, measures and one short line per document; what is shown is read afterwards, of the passages shown alone
(``apps.collections.search.rows``). How legs are weighed against each other: ``apps.collections.search.fusion``.

A leg is exact unless its collection has an index of its own (``apps.collections.index.large``). Such an index covers the
chunks up to a mark; where there are later ones, these are scanned, so it never delays an ingestion and never hides a new
document.

What may be found is decided before any ranking. While nothing in the scope is under way, retired, restricted, disabled
or filtered, a leg needs no look at documents at all (``is_open``): that half of the condition costs nothing.
"""

# ruff: noqa: S608 - every value is a parameter; only constants of this module and integers stand in the text
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.collections.index.identifier_sql import MAX_CHUNKS_PER_IDENTIFIER
from apps.collections.ingestion.identifiers import LEXEME_PREFIX
from apps.collections.ingestion.lexical import SPARSE_DIMS, term_id
from apps.collections.models import DocumentStatus
from apps.collections.search.filters import SearchFilter
from apps.collections.search.fusion import NO_LEG, exact_votes, fused_sql, lexical_votes, vector_votes
from apps.collections.search.types import DEPTH, WEAK_VOTE, QueryVector
from tenancy.actors import Actor

POSTINGS_BUDGET = 1_000_000  # postings added up per index and search, those of rare terms first


@dataclass(frozen=True, slots=True)
class Postings:
    """Postings of one collection, and what they gave for a question.

    Attributes:
        index_id: row of the index.
        last_chunk: the last chunk it covers.
        is_behind: the collection has later ones.
        edited: chunks whose terms it does not know.
        candidates: chunks it proposes; among them the best, but for chunks edited or behind it.
    """

    collection_id: int
    index_id: int
    last_chunk: int
    is_behind: bool = True
    edited: list[int] = field(default_factory=list)
    candidates: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Sql:
    """A statement under construction; every value is a parameter.

    Attributes:
        is_bounded: of one collection, and every leg reads some hundred rows through an index, whatever the values: one
            plan fits all of them.
    """

    ctes: list[str] = field(default_factory=list)
    legs: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    is_open_at_best: bool = True
    is_bounded: bool = True
    has_chunk_filter: bool = False

    def among(self, column: str) -> str:
        """Return the condition that a column names a collection of the scope.

        Of a list, a plan that holds for all values knows no length, and would rather read all that the workspace has.
        """
        return f"{column} = %(only)s" if "only" in self.parameters else f"{column} = ANY (%(scope)s)"

    def allows(self, document: str, chunk: str) -> str:
        """Return the condition on a leg's columns; without filters mostly the cheap half decides."""
        wanted = f"{document} IN (SELECT id FROM docs)"
        if self.has_chunk_filter:
            return f"{wanted} AND {chunk} IN (SELECT id FROM wanted_chunks)"
        wanted += f" AND {chunk} NOT IN (SELECT id FROM disabled)"
        return f"((SELECT is_open FROM scope) OR ({wanted}))" if self.is_open_at_best else wanted


def search_sql(
    *,
    actor: Actor,
    scope: Sequence[int],
    vectors: Sequence[QueryVector],
    terms: Sequence[int],
    postings: Sequence[Postings],
    lexemes: Sequence[str],
    conditions: Sequence[SearchFilter],
    as_of: datetime | None,
    limit: int,
) -> Sql:
    """Build the statement and its parameters.

    Args:
        scope: ids of the collections.
        terms: ids of the question's terms, empty to leave BM25 out.
        postings: of collections whose terms have an index, with their candidates.
        lexemes: identifiers and codes of the question, with a ``*`` behind the beginning of longer ones; empty to leave
            the exact leg out.
        as_of: search the versions that were live then; None for now.
        limit: how many fused rows.
    """
    sql = _scoped(actor, scope, conditions, as_of)
    sql.parameters["limit"] = limit
    for number, vector in enumerate(vectors):
        _vector_leg(sql, number, vector)
    if terms:
        _lexical_leg(sql, terms, postings)
    if lexemes:
        _exact_leg(sql, lexemes)
    if not sql.legs:
        sql.legs.append(NO_LEG)
    return sql


def statement_of(sql: Sql) -> str:
    """Return the text: candidates best first, with what their order may still depend on.

    Its rows have the columns of ``Ranked``, in their order.
    """
    # Each candidate's document by its key, whatever the planner thinks: not all of the workspace, to join them.
    return f"""
        WITH {", ".join(sql.ctes)},
        fused AS ({fused_sql(sql.legs)} LIMIT %(limit)s)
        SELECT f.score, f.chunk_id, f.document_id, f.vector_rank, f.lexical_rank, f.exact_rank, f.distance, f.bm25,
               CASE WHEN row_number() OVER (PARTITION BY f.document_id ORDER BY f.score DESC, f.chunk_id) = 1
                    THEN d.cover ELSE '' END AS cover,
               d.lexical_form AS form, d.dated
        FROM fused f
        JOIN LATERAL (SELECT cover, lexical_form, dated FROM collections_document
                      WHERE id = f.document_id AND tenant_id = %(tenant)s OFFSET 0) d ON true
        ORDER BY f.score DESC, f.chunk_id
    """


def condition_sql(condition: SearchFilter, number: int, parameters: dict[str, Any]) -> str:
    """Return a filter's condition with its parameters put into ``parameters``."""
    parameters[f"filter{number}"] = condition.value
    parameters[f"key{number}"] = condition.key
    return condition.sql.replace("$VALUE", f"%(filter{number})s").replace("$KEY", f"%(key{number})s")


def permitted(actor: Actor, parameters: dict[str, Any]) -> str:
    """Return the condition under which the actor may see document ``d``; see ``Document.objects.visible_to``."""
    if actor.kind == "system":
        return "true"
    parameters["role"], parameters["user"] = actor.role, actor.user_id
    return (
        "(NOT d.is_restricted OR EXISTS (SELECT FROM collections_documentaccess a WHERE a.tenant_id = %(tenant)s "
        "AND a.document_id = d.id AND (a.user_id = %(user)s OR (a.role <> '' AND a.role = %(role)s))))"
    )


def live(as_of: datetime | None, parameters: dict[str, Any]) -> str:
    """Return the condition under which document ``d`` is live, or was then."""
    if as_of is None:
        return "d.live_to IS NULL"
    parameters["as_of"] = as_of
    return "d.live_from <= %(as_of)s AND (d.live_to IS NULL OR d.live_to > %(as_of)s)"


def postings_sql(
    *,
    actor: Actor,
    scope: Sequence[int],
    terms: Sequence[int],
    postings: Sequence[Postings],
    conditions: Sequence[SearchFilter],
    as_of: datetime | None,
) -> Sql:
    """Build the statement that reads the postings of a question; its one leg is its text.

    Its rows: index, weight of a term in the question, packed places, packed weights, whether all documents of the scope
    may be found, whether the budget left postings out.
    """
    sql = _scoped(actor, scope, conditions, as_of)
    sql.parameters["indexes"] = [one.index_id for one in postings]
    _idf(sql, terms)
    is_open = "(SELECT is_open FROM scope)" if sql.is_open_at_best else "false"
    sql.legs.append(
        f"""
        SELECT s.index_id, s.weight, p.places, p.weights, {is_open}, s.whole > {POSTINGS_BUDGET}
        FROM (SELECT p.id, p.index_id, i.weight, sum(p.size) OVER (PARTITION BY p.index_id) AS whole,
                     sum(p.size) OVER (PARTITION BY p.index_id ORDER BY p.size, p.id) - p.size AS before
              FROM idf i JOIN collections_posting p ON p.tenant_id = %(tenant)s
                   AND p.index_id = ANY (%(indexes)s) AND p.term = i.term) s
        JOIN collections_posting p ON p.id = s.id AND p.tenant_id = %(tenant)s
        WHERE s.before < {POSTINGS_BUDGET}"""
    )
    return sql


def allowed_sql(
    *, actor: Actor, scope: Sequence[int], conditions: Sequence[SearchFilter], as_of: datetime | None
) -> Sql:
    """Build the statement that lists the documents that may be found, and the chunks of them that may not."""
    sql = _scoped(actor, scope, conditions, as_of)
    sql.legs.append("SELECT ARRAY (SELECT id FROM docs), ARRAY (SELECT id FROM disabled)")
    return sql


def _scoped(
    actor: Actor, scope: Sequence[int], conditions: Sequence[SearchFilter], as_of: datetime | None
) -> Sql:
    sql = Sql(
        parameters={"tenant": actor.tenant_id, "scope": list(scope), "ready": DocumentStatus.READY.value},
        is_open_at_best=not conditions and as_of is None,
        is_bounded=len(scope) == 1,
    )
    if sql.is_bounded:
        sql.parameters["only"] = scope[0]
    _documents(sql, actor, conditions, as_of)
    return sql


def _documents(sql: Sql, actor: Actor, conditions: Sequence[SearchFilter], as_of: datetime | None) -> None:
    on: dict[str, str] = {"document": "", "chunk": ""}
    for number, condition in enumerate(conditions):
        on[condition.on] += f" AND ({condition_sql(condition, number, sql.parameters)})"
    sql.ctes.append(
        "docs AS MATERIALIZED (SELECT d.id FROM collections_document d WHERE d.tenant_id = %(tenant)s "
        f"AND {sql.among('d.collection_id')} AND d.status = %(ready)s AND {live(as_of, sql.parameters)} "
        f"AND {permitted(actor, sql.parameters)}{on['document']})"
    )
    sql.has_chunk_filter = bool(on["chunk"])
    if sql.has_chunk_filter:
        sql.ctes.append(
            "wanted_chunks AS MATERIALIZED (SELECT c.id FROM collections_chunk c WHERE c.tenant_id = %(tenant)s "
            f"AND {sql.among('c.collection_id')} AND c.document_id IN (SELECT id FROM docs) "
            f"AND NOT c.is_disabled{on['chunk']})"
        )
        return
    sql.ctes.append(
        "disabled AS MATERIALIZED (SELECT c.id FROM collections_chunk c WHERE c.tenant_id = %(tenant)s "
        f"AND {sql.among('c.collection_id')} AND c.is_disabled)"
    )
    if sql.is_open_at_best:
        sql.ctes.append(
            "scope AS MATERIALIZED (SELECT NOT EXISTS (SELECT FROM disabled) AND NOT EXISTS (SELECT FROM "
            f"collections_document d WHERE d.tenant_id = %(tenant)s AND {sql.among('d.collection_id')} "
            "AND (d.status <> 'ready' OR d.live_to IS NOT NULL OR d.is_restricted) AND d.chunk_count > 0) AS is_open)"
        )


def _vector_leg(sql: Sql, number: int, vector: QueryVector) -> None:
    """Find the nearest chunks of one space: by a scan, and through the index of each collection that has one."""
    name = f"vector{number}"
    sql.parameters |= {name: vector.vector, f"space{number}": vector.space_id, f"in{number}": vector.scanned}
    allowed = sql.allows("e.document_id", "e.chunk_id")
    parts: list[str] = []
    if vector.scanned:
        sql.is_bounded = False
        parts.append(
            f"""(SELECT e.chunk_id, e.document_id, e.vector <=> %({name})s::halfvec AS measure
                 FROM collections_embedding e
                 WHERE e.tenant_id = %(tenant)s AND e.collection_id = ANY (%(in{number})s)
                   AND e.space_id = %(space{number})s AND {allowed}
                 ORDER BY e.vector <=> %({name})s::halfvec LIMIT {DEPTH})"""
        )
    typed = f"halfvec({int(vector.dimensions)})"
    for graph in vector.indexed:
        parts.append(
            f"""(SELECT e.chunk_id, e.document_id, e.vector <=> %({name})s::{typed} AS measure
                 FROM {graph.table} e
                 WHERE e.tenant_id = %(tenant)s AND {allowed}
                 ORDER BY e.vector <=> %({name})s::{typed} LIMIT {DEPTH})"""
        )
        if not graph.is_behind:
            continue
        parts.append(
            f"""(SELECT e.chunk_id, e.document_id, e.vector <=> %({name})s::halfvec AS measure
                 FROM collections_embedding e
                 WHERE e.tenant_id = %(tenant)s AND e.collection_id = {int(graph.collection_id)}
                   AND e.space_id = %(space{number})s AND e.chunk_id > {int(graph.last_chunk)} AND {allowed}
                 ORDER BY e.vector <=> %({name})s::halfvec LIMIT {DEPTH})"""
        )
    if parts:
        sql.legs.append(vector_votes(" UNION ALL ".join(parts), _vote(sql, number, vector)))


def _vote(sql: Sql, number: int, vector: QueryVector) -> str:
    """Return how much a model's nearest chunks count: little where it knows the language of question or chunk not."""
    if vector.knows is None:
        return "1.0"
    if not vector.is_understood:
        return str(WEAK_VOTE)
    sql.parameters[f"knows{number}"] = ["", *vector.knows]
    return (
        "CASE WHEN (SELECT d.language FROM collections_document d WHERE d.id = nearest.document_id "
        f"AND d.tenant_id = %(tenant)s) = ANY (%(knows{number})s) THEN 1.0 ELSE {WEAK_VOTE} END"
    )


def _idf(sql: Sql, terms: Sequence[int]) -> None:
    """Weigh the question's terms; the formula is that of ``apps.collections.ingestion.lexical.idf``."""
    sql.parameters["terms"] = list(terms)
    sql.ctes.append(
        "total AS MATERIALIZED (SELECT coalesce(sum(chunk_total), 0)::float8 AS n FROM collections_collection "
        f"WHERE tenant_id = %(tenant)s AND {sql.among('id')})"
    )
    sql.ctes.append(
        f"""idf AS MATERIALIZED (
            SELECT term, df, ln(1 + (n - df + 0.5) / (df + 0.5)) AS weight
            FROM (SELECT f.term, least(sum(f.chunks), max(t.n))::float8 AS df, max(t.n) AS n
                  FROM collections_termfrequency f, total t
                  WHERE f.tenant_id = %(tenant)s AND {sql.among("f.collection_id")}
                    AND f.term = ANY (%(terms)s)
                  GROUP BY f.term) s WHERE df > 0)"""
    )


def _lexical_leg(sql: Sql, terms: Sequence[int], postings: Sequence[Postings]) -> None:
    """Score chunks by BM25."""
    by_postings = {one.collection_id for one in postings}
    sql.parameters["scanned"] = [pk for pk in sql.parameters["scope"] if pk not in by_postings]
    _idf(sql, terms)
    sql.ctes.append(
        f"""question AS MATERIALIZED (
            SELECT ('{{' || string_agg((term + 1) || ':' || weight, ',') || '}}/{SPARSE_DIMS}')::sparsevec AS weights
            FROM idf)"""
    )
    allowed = sql.allows("t.document_id", "t.chunk_id")
    score = "t.weights <#> (SELECT weights FROM question)"
    parts: list[str] = []
    if sql.parameters["scanned"]:
        sql.is_bounded = False
        parts.append(
            f"""(SELECT t.chunk_id, t.document_id, {score} AS negative FROM collections_chunkterms t
                 WHERE t.tenant_id = %(tenant)s AND t.collection_id = ANY (%(scanned)s) AND {allowed}
                 ORDER BY {score} LIMIT {DEPTH})"""
        )
    for number, one in enumerate(postings):
        parts += _postings_parts(sql, number, one, score)
    sql.legs.append(lexical_votes(" UNION ALL ".join(parts)))


def _postings_parts(sql: Sql, number: int, one: Postings, score: str) -> list[str]:
    """Score what the postings propose, and the chunks that they do not know."""
    sql.parameters |= {
        f"posted{number}": sorted({*one.candidates, *one.edited}),
        f"own{number}": one.collection_id,
    }
    own = f"t.tenant_id = %(tenant)s AND t.collection_id = %(own{number})s"
    allowed = sql.allows("t.document_id", "t.chunk_id")
    parts = [
        f"""(SELECT t.chunk_id, t.document_id, {score} AS negative FROM collections_chunkterms t
             WHERE {own} AND t.chunk_id = ANY (%(posted{number})s::bigint[]) AND {allowed}
             ORDER BY {score} LIMIT {DEPTH})"""
    ]
    if one.is_behind:
        parts.append(
            f"""(SELECT t.chunk_id, t.document_id, {score} AS negative FROM collections_chunkterms t
             WHERE {own} AND t.chunk_id > {int(one.last_chunk)} AND {allowed}
             ORDER BY {score} LIMIT {DEPTH})"""
        )
    return parts


def _exact_leg(sql: Sql, lexemes: Sequence[str]) -> None:
    """Look identifiers up, but for those that stand in so many chunks that they identify nothing (FY2022)."""
    sql.parameters["lexemes"] = list(lexemes)
    # BM25 counts each identifier as a term of its own, so its frequency is known before the index is asked.
    sql.parameters["lexeme_terms"] = [
        term_id("=" + x.removeprefix(LEXEME_PREFIX).removesuffix(".*")) for x in lexemes
    ]
    sql.ctes.append(
        f"""identifiers AS MATERIALIZED (
            SELECT array_agg(a.lexeme) AS rare
            FROM unnest(%(lexemes)s::text[], %(lexeme_terms)s::int[]) AS a (lexeme, term)
            WHERE coalesce((SELECT sum(f.chunks) FROM collections_termfrequency f
                            WHERE f.tenant_id = %(tenant)s AND {sql.among("f.collection_id")}
                              AND f.term = a.term), 0) <= {MAX_CHUNKS_PER_IDENTIFIER})"""
    )
    sql.legs.append(
        exact_votes(
            f"""SELECT h.chunk_id, h.document_id, h.score
                FROM collections_identifier_hits((SELECT rare FROM identifiers), %(scope)s::bigint[]) h
                WHERE {sql.allows("h.document_id", "h.chunk_id")}"""
        )
    )
