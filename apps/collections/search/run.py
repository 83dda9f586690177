"""Hybrid search: vectors, BM25 and exact identifiers, ranked and fused by score in one statement; a second reads what is
shown.

A passage gets from each leg how far it stands above the last of the leg's candidates, in their standard deviations: a
leg that sees one passage far ahead is heard more than one to which fifty look alike. What may be found (ready, live,
permitted, not disabled, matching the filters) is decided before ranking, in every leg; see
``apps.collections.search.statement``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Never, cast

import numpy as np
import structlog
from numpy.typing import NDArray

from apps.collections.index.billing import EmbeddingBill, billing_account_of
from apps.collections.index.codes import code_kinds, documents_behind
from apps.collections.index.embedding import embedder_for, languages_known
from apps.collections.ingestion.codes import EVERYWHERE, plain
from apps.collections.ingestion.identifiers import identifier_list
from apps.collections.ingestion.lexical import query_term_ids
from apps.collections.models import Collection, EmbeddingSpace
from apps.collections.search.codes import CodeQuestion, codes_placed
from apps.collections.search.document_order import WantedDocuments
from apps.collections.search.expand import hits_expand
from apps.collections.search.filters import SearchFilter, parse_filters
from apps.collections.search.gate import gate
from apps.collections.search.indexed import (
    Indexes,
    attributes_check,
    candidates_find,
    indexes_for,
    is_large,
    scope_known,
)
from apps.collections.search.ranking import ranked_rows, rows_execute
from apps.collections.search.rerank.base import RERANK_DEPTH, Reranker
from apps.collections.search.rerank.choice import reranker_of
from apps.collections.search.rows import Passages
from apps.collections.search.statement import search_sql, statement_of
from apps.collections.search.trace import trace_of
from apps.collections.search.types import (
    DEPTH,
    LEGS,
    MAX_EXPAND,
    MAX_K,
    MAX_QUERY_CHARS,
    QueryVector,
    Ranked,
    SearchResult,
)
from apps.collections.storage.packing import halfvec_text
from audit.reads import documents_note
from basics.errors import DomainError, Invalid, Missing
from basics.metrics import SEARCH_SECONDS
from basics.texts import gettext as _
from budgets.ledger import BillingAccount
from tenancy.actors import Actor
from tenancy.database.waiting import connections_let_go
from tenancy.lagging import primary_reads
from tenancy.models import Tenant
from toolloop.language_detection import language_or_script

log = structlog.get_logger(__name__)


def search_run(
    *,
    tenant: Tenant,
    actor: Actor,
    collections: Sequence[Collection] | None,
    query: str,
    k: int = 10,
    filters: Mapping[str, Any] | None = None,
    legs: Sequence[str] = LEGS,
    as_of: datetime | None = None,
    expand: int = 0,
    reranker: Reranker | None = None,
    trace: bool = False,
    billing_account: BillingAccount | None = None,
    is_scope_new: bool = False,
    is_lookup: bool = False,
    is_patient: bool = False,
    is_quoted: bool = False,
) -> SearchResult:
    """Find the passages that answer a question.

    Args:
        collections: where to look; None for all of the tenant's.
        query: a question, a phrase or a code; at most 4000 characters.
        k: how many passages, 1 to 100.
        filters: see ``parse_filters``.
        legs: which of ``vector``, ``lexical``, ``exact`` to use (for comparisons).
        as_of: search the versions of documents that were live at that moment.
        expand: neighbours to give with each passage, 0 to 5 on either side.
        reranker: reads the best candidates once more and orders them anew; None for the one that the collections have
            chosen, if all legs run.
        trace: tell how it came to the result, which costs a second statement.
        billing_account: on whose account models are asked, where that is more than the actor: the run that searches, say.
        is_scope_new: the collections were read for this very search, so that nothing of them is read anew.
        is_lookup: the question asks for the codes in it, whatever else it says: passages that tell of them come before
            those that mention them, as they do for a question with hardly another word.
        is_patient: in a crowd, wait for a place however many wait: for work in the background, where a refusal would
            be a worse answer than a late one.
        is_quoted: read with the passages what may be quoted of them, where no more are read than are shown.

    Raises:
        Denied: the actor may not search.
        Missing: one of the collections is not the tenant's.
        Invalid: ``query_invalid``, ``k_invalid``, ``filter_unknown`` or ``filter_invalid``.
        SearchBusy: too many searches wait in this process.
    """
    actor.require("search.run")
    asked, query = query, " ".join(query.replace("\x00", " ").split())
    billing_account = billing_account or billing_account_of(actor)
    _check(query, k, expand)
    conditions = parse_filters(filters)
    scope = _scope(tenant, actor, collections)
    if not scope:
        return SearchResult(query, [], [], tuple(legs), "", 0.0, 0.0, as_of)
    attributes_check(scope, conditions)
    # A code has a digit: other questions need not know the workspace's patterns.
    kinds = code_kinds(tenant.pk) if any(map(str.isdigit, query)) else EVERYWHERE
    named = CodeQuestion(kinds, query, is_lookup=is_lookup)
    has_codes = bool(named) and "exact" in legs
    is_ordered = has_codes or (named.is_lookup and "exact" in legs)
    unranked = ""  # why the passages were not reranked, where they should have been
    if reranker is None and set(legs) == set(LEGS):
        try:
            with primary_reads():  # it may read the workspace's key
                reranker = reranker_of(tenant, actor, scope, billing_account)
        except DomainError as error:
            unranked = error.message
    asking = time.perf_counter()
    wanted = max(k, RERANK_DEPTH) if reranker is not None else k
    pks = [c.pk for c in scope]
    asked_of = _embeddings(tenant, billing_account, scope, query) if "vector" in legs else []
    arrived = time.perf_counter()
    fuses = len(legs) > 1
    wants = WantedDocuments(query if fuses else "")
    crowd = gate()
    with crowd.place(is_patient=is_patient):
        began = time.perf_counter()
        if any(is_large(c) for c in scope):  # then the database is asked meanwhile
            for one in asked_of:
                one.begin(crowd.aside)
        known = scope_known(actor, scope, has_terms="lexical" in legs and not is_scope_new)
        indexes = indexes_for(actor, scope, known, conditions, as_of)
        terms = query_term_ids(query, known.forms) if "lexical" in legs else []
        postings = candidates_find(actor, pks, terms, indexes.postings, conditions, as_of)
        looked_up = time.perf_counter()
        vectors, note = _vectors(asked_of, indexes, language_or_script(query))
        embedded = time.perf_counter()
        statement = partial(
            search_sql,
            actor=actor,
            scope=pks,
            terms=terms,
            postings=postings,
            lexemes=named.lexemes if "exact" in legs else [],
            conditions=conditions,
            as_of=as_of,
            limit=len(LEGS) * DEPTH if trace or is_ordered or fuses else wanted,
        )
        rows = ranked_rows(statement, vectors)
        if fuses:
            rows = wants.rows_ordered(rows)
        passages = Passages(tenant.pk, is_quoted=is_quoted and reranker is None and not is_ordered)
        if is_ordered:
            # One statement for those whose text decides their place and those that are shown if it decides nothing.
            passages.hits([row for at, row in enumerate(rows) if at < wanted or row.exact_rank is not None])
            rows = codes_placed(
                named, rows, partial(_by_lexemes, actor, pks, conditions, as_of), passages.hits
            )
        hits, extra = passages.hits(rows[:wanted]), {}
        fetched = time.perf_counter()
    if reranker is not None and hits:
        try:
            with primary_reads():  # what it costs is written down
                ordered = reranker.rerank(query, hits)
            hits = wants.hits_ordered(ordered)
        except DomainError as error:
            log.warning("search_without_reranker", reranker=reranker.name, code=error.code)
            unranked = error.message
        extra["rerank"] = (time.perf_counter() - fetched) * 1000
    if is_ordered:
        hits = named.ordered(hits)
    if unranked:
        why = _("Not reranked: %(reason)s") % {"reason": unranked}
        note = f"{note} {why}".strip()
    note = f"{note} {wants.note}".strip()
    ranked, hits = hits, hits[:k]
    documents_note(hit.document_id for hit in hits)
    if expand and hits:
        expanding = time.perf_counter()
        hits = hits_expand(hits, expand)
        extra["expand"] = (time.perf_counter() - expanding) * 1000
    parts = {
        "embed": embedded - looked_up + arrived - asking,
        "database": fetched - embedded + looked_up - began,
    }
    told = {"wait": began - arrived, **parts, **{name: ms / 1000 for name, ms in extra.items()}}
    for leg, seconds in told.items():
        SEARCH_SECONDS.observe(leg, seconds=seconds)
    result = SearchResult(
        query=query,
        hits=hits,
        identifiers=identifier_list(plain(query)),
        codes=named.found() if has_codes else (),
        behind=documents_behind(actor, pks, kinds.form) if has_codes else 0,
        legs=tuple(leg for leg in legs if leg != "vector" or vectors),
        note=note,
        embed_ms=parts["embed"] * 1000,
        database_ms=parts["database"] * 1000,
        as_of=as_of,
        extra_ms=extra,
        reranker=None if reranker is None or unranked else reranker.name,
    )
    if not trace:
        return result
    traced = trace_of(actor, scope, asked, result, rows, ranked, conditions, vectors, indexes)
    return replace(result, trace=traced)


def _check(query: str, k: int, expand: int) -> None:
    if not query or len(query) > MAX_QUERY_CHARS:
        raise Invalid(
            "query_invalid",
            _("Enter a question of at most %(max_query_chars)s characters.")
            % {"max_query_chars": MAX_QUERY_CHARS},
            data={"fields": {"query": [_("Empty or too long.")]}},
        )
    if not 1 <= k <= MAX_K:
        raise Invalid(
            "k_invalid",
            _("k is %(k)s; choose from 1 to %(max_k)s.") % {"k": k, "max_k": MAX_K},
            data={"fields": {"k": [_("Out of range.")]}},
        )
    if not 0 <= expand <= MAX_EXPAND:
        raise Invalid(
            "expand_invalid",
            _("expand is %(expand)s; choose from 0 to %(max_expand)s.")
            % {"expand": expand, "max_expand": MAX_EXPAND},
            data={"fields": {"expand": [_("Out of range.")]}},
        )


def _by_lexemes(
    actor: Actor,
    scope: Sequence[int],
    conditions: Sequence[SearchFilter],
    as_of: datetime | None,
    lexemes: Sequence[str],
) -> list[Ranked]:
    """Find candidates that hold one of these, whatever else they say."""
    sql = search_sql(
        actor=actor,
        scope=scope,
        vectors=[],
        terms=[],
        postings=[],
        lexemes=lexemes,
        conditions=conditions,
        as_of=as_of,
        limit=DEPTH,
    )
    return rows_execute(statement_of(sql), sql.parameters, {})


def _scope(tenant: Tenant, actor: Actor, collections: Sequence[Collection] | None) -> list[Collection]:
    if actor.tenant_id != tenant.pk:
        raise Missing("collection")
    if collections is None:
        rows = Collection.objects.visible_to(actor).select_related("space")
        return cast("list[Collection]", list(rows))
    theirs = actor.collections
    if any(c.tenant_id != tenant.pk or (theirs is not None and c.pk not in theirs) for c in collections):
        raise Missing("collection")
    return list(collections)


@dataclass(slots=True)
class _Embedding:
    """A question on its way into one space, and the collections that have it.

    Attributes:
        ask: returns its vector.
    """

    space: EmbeddingSpace
    ask: Callable[[], NDArray[np.float32]]
    collections: list[int] = field(default_factory=list)

    def begin(self, aside: Executor) -> None:
        """Have the vector made by another thread from now on."""
        self.ask = partial(_awaited, aside.submit(copy_context().run, self.ask))


def _embeddings(
    tenant: Tenant, billing_account: BillingAccount, scope: Sequence[Collection], query: str
) -> list[_Embedding]:
    """Return the question's embedding once per space; what isn't of this machine is there already."""
    by_space: dict[EmbeddingSpace, list[int]] = {}
    for collection in scope:
        by_space.setdefault(collection.space, []).append(collection.pk)
    return [
        _Embedding(space, _asked(tenant, billing_account, space, query), pks)
        for space, pks in by_space.items()
    ]


def _asked(
    tenant: Tenant, billing_account: BillingAccount, space: EmbeddingSpace, query: str
) -> Callable[[], NDArray[np.float32]]:
    try:
        with primary_reads():  # it may read the workspace's key, and reserves money
            embedder = embedder_for(space, tenant=tenant)
            bill = EmbeddingBill(embedder, tenant=tenant, billing_account=billing_account, texts=[query])
        if bill.is_free:
            return partial(_embedded, embedder.embed_query, query)
        connections_let_go()  # the embedder is somebody's server
        with primary_reads(), bill:
            vector = embedder.embed_query(query)
    except DomainError as error:
        return partial(_raise, error)
    return lambda: vector


# One call of a tool may search several times with its question: documents of a type first, attached files by themselves.
@lru_cache(maxsize=64)
def _embedded(embed: Callable[[str], NDArray[np.float32]], query: str) -> NDArray[np.float32]:
    return embed(query)


def _awaited(asked: Future[NDArray[np.float32]]) -> NDArray[np.float32]:
    connections_let_go()
    return asked.result()


def _raise(error: DomainError) -> Never:
    raise error


def _vectors(begun: Sequence[_Embedding], indexes: Indexes, language: str) -> tuple[list[QueryVector], str]:
    """Wait for the question's vectors; a space whose embedder fails is left out and named.

    Args:
        language: of the question, "" where it is not plain.
    """
    vectors: list[QueryVector] = []
    failed: list[str] = []
    for one in begun:
        space, pks = one.space, one.collections
        try:
            values = one.ask()
        except DomainError as error:
            log.warning("search_without_vectors", space=str(space), code=error.code)
            failed.append(f"{space}: {error.message}")
            # Its frames hold the error, and so would stay with all of the caller's run.
            error.__traceback__ = None
            continue
        graphs = [indexes.graphs[pk, space.pk] for pk in pks if (pk, space.pk) in indexes.graphs]
        scanned = [pk for pk in pks if (pk, space.pk) not in indexes.graphs]
        knows = languages_known(space)
        vectors.append(
            QueryVector(
                space.pk,
                space.dimensions,
                halfvec_text(values),
                scanned,
                graphs,
                knows,
                knows is None or language in ("", *knows),
            )
        )
    if not failed:
        return vectors, ""
    note = _("Searched by words only, because the embedding model did not respond.")
    return vectors, " ".join([note, *failed])
