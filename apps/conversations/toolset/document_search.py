"""The search that the tools of a conversation share: where it looks, what comes first, and what it says it has found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from apps.collections.index.embedding import languages_known
from apps.collections.models import Collection, Document
from apps.collections.search import CodeFound, SearchHit, SearchResult, search_run
from apps.conversations.attachments.selectors import ATTACHED, FilesInScope
from apps.conversations.toolset.results import (
    Scope,
    attached_now,
    collections_named,
    is_attached,
    passages_counted,
    result_row,
    results_output,
    rights_now,
)
from basics.errors import DomainError
from runs.reservations import run_billing_account
from tenancy.actors import Actor
from toolloop.language_detection import language_or_script
from toolloop.tools import ToolError, ToolOutput

ATTACHED_PASSAGES = 6
"""Passages of attached files in a search, beside those of the collections."""
MOST_PASSAGES = 30
_NAMED = 3
_TYPES_NAMED = 20
_MATCHES = ("exact", "near", "parent", "")
_WEAKEST_LAST = ("exact", "near", "parent", "none")
_TYPE = "document_type"
_DOCUMENT = "document_id"


def documents_search(
    scope: Scope,
    query: str,
    names: Sequence[str],
    filters: Mapping[str, Any] | None = None,
    expand: int = 0,
    *,
    types: Sequence[str] = (),
    limit: int = 0,
    is_lookup: bool = False,
    is_of_code: bool = False,
) -> ToolOutput:
    """Search where the running tool may look, and return passages as a tool's result; for the tools' database threads.

    Args:
        names: of collections; none for all.
        filters: as a search takes them.
        expand: passages before and after each.
        types: passages of documents of these types come first; a type orders what is found and hides nothing.
        limit: passages, 1 to 30; 0 for as many as the run's searches return.
        is_lookup: the question is a code and nothing else: passages without it, or one near it, are no answer.
        is_of_code: the question asks for the code in it, whatever else it says: the code's own lines come first.

    Raises:
        ToolError: what a model can do better.
    """
    if not 0 <= limit <= MOST_PASSAGES:
        raise ToolError(f"limit goes from 1 to {MOST_PASSAGES}; leave it out for the usual number.")
    try:
        actor, allowed = rights_now(scope)
        given = replace(scope.given, rows=attached_now(scope, actor) if is_attached(names) else ())
        chosen = collections_named(allowed, names)
        if scope.documents is not None and not scope.documents and not given.documents:
            note = "The documents that the user has named are not there any more. Tell the user so."
            return results_output(scope, [], note, "No document to search", query, found="none")
        if not chosen and not given.documents:
            note = "There is no collection to search. Tell the user to add documents first."
            return results_output(scope, [], note, "No collection to search", query, found="none")
        conditions = _kept_to(scope.documents, {**(filters or {}), **scope.searching.filters})
        many = limit or scope.searching.top_k

        def search(more: Mapping[str, Any], *, trace: bool = False) -> SearchResult:
            return search_run(
                tenant=scope.tenant,
                actor=actor,
                collections=chosen,
                query=query,
                k=many,
                filters={**conditions, **more},
                expand=max(expand, scope.searching.neighbours),
                billing_account=run_billing_account(scope.run),
                legs=scope.searching.legs,
                trace=trace,
                is_scope_new=True,
                is_lookup=is_lookup or is_of_code,
                is_patient=True,
                is_quoted=True,
            )

        found = search({})
        hits, notes = found.hits, [found.note]
        # An assistant that searches some types alone has decided about types.
        wanted = () if _TYPE in conditions else types
        if wanted and hits:
            there = _types_there(actor, chosen)
            if known := [name for name in wanted if name in there]:
                hits = _first(search({_TYPE: {"in": known}}).hits, hits, many)
            else:
                notes.append(_no_such_type(wanted, there))
        hits = [*_attached_hits(scope, actor, given, query, filters), *hits]
        if is_lookup and found.codes:
            hits = [hit for hit in hits if hit.match]
        if not hits and conditions:
            notes.append(_emptied(conditions, search({}, trace=True)))
    except DomainError as error:
        raise ToolError(error.message) from error
    names_by_id = {c.pk: c.name for c in chosen}
    results = [_row(hit, names_by_id.get(hit.collection_id, ATTACHED)) for hit in hits]
    notes = [*(_code_told(code) for code in found.codes), *filter(None, notes)]
    if found.codes and hits and not any(hit.match for hit in hits):
        notes.append("The passages below are about something else: don't take them for this code.")
    if found.behind:
        notes.append(
            f"{_counted(found.behind)} not ready for look-ups by code yet: some spellings may be missed there."
        )
    if not results and not found.codes:
        notes.append("Nothing was found. Try other words, or say so.")
    extra = {hit.chunk_id: _beside(hit) for hit in hits}
    return results_output(
        scope,
        results,
        " ".join(notes),
        _summary(chosen, query, hits, found.codes),
        query,
        extra=extra,
        found=_overall(found.codes, is_any=bool(hits)),
        codes=[{"code": code.code, "found": code.found} for code in found.codes],
        similarity=_similarity(chosen, query, hits),
    )


def _kept_to(documents: frozenset[int] | None, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return conditions that no passage of other documents meets, whatever else they ask of a document."""
    if documents is None:
        return dict(conditions)
    asked = conditions.get(_DOCUMENT, {})
    operations = dict(asked) if isinstance(asked, Mapping) else {"eq": asked}
    named = operations.get("in")
    within = sorted(pk for pk in documents if not isinstance(named, list) or pk in named)
    # No document has the number 0, and a list must name something.
    return {**conditions, _DOCUMENT: {**operations, "in": within or [0]}}


def _similarity(chosen: Sequence[Collection], query: str, hits: Sequence[SearchHit]) -> float | None:
    """Return how near the nearest passage is in meaning, where that tells whether it is about the question at all.

    Each embedder has a scale of its own, so only the local one's is told, and only of languages that it has learnt.
    """
    language = language_or_script(query) or (language_or_script(hits[0].text) if hits else "")
    for space in {c.space for c in chosen}:
        known = languages_known(space)
        if space.provider != "local" or (language and known is not None and language not in known):
            return None
    near = [hit.distance for hit in hits if hit.distance is not None]
    return max(0.0, 1 - min(near)) if near else None


def _first(typed: Sequence[SearchHit], others: Sequence[SearchHit], many: int) -> list[SearchHit]:
    """Merge passages of the types that come first with all passages: by how they answer a code and tell of it, then by type.

    Where no code decides, every fourth place is kept for other types, so that a type never hides the better passage.
    """
    ids = {hit.chunk_id for hit in typed}
    others = [hit for hit in others if hit.chunk_id not in ids]
    both = [hit for match in _MATCHES[:-1] for part in (typed, others) for hit in part if hit.match == match]
    both.sort(key=lambda hit: (_MATCHES.index(hit.match), -hit.head))
    typed, others = [h for h in typed if not h.match], [h for h in others if not h.match]
    room = max(0, many - len(both))
    share = max(room - room // 4, room - len(others))
    return [*both, *typed[:share], *others][:many]


def _types_there(actor: Actor, chosen: Sequence[Collection]) -> list[str]:
    rows = Document.objects.visible_to(actor).current().filter(collection__in=[c.pk for c in chosen])
    return list(rows.exclude(document_type="").order_by(_TYPE).values_list(_TYPE, flat=True).distinct())


def _no_such_type(wanted: Sequence[str], there: Sequence[str]) -> str:
    named = ", ".join(f"“{name}”" for name in wanted)
    known = f" Known types: {', '.join(there[:_TYPES_NAMED])}." if there else ""
    return f"No document here has the type {named}, so all documents were searched alike.{known}"


def _emptied(conditions: Mapping[str, Any], found: SearchResult) -> str:
    """Name the filter that left nothing, and how much it left out."""
    hidden = found.trace.hidden.filtered if found.trace and found.trace.hidden else 0
    told = json.dumps(conditions, ensure_ascii=False)
    left_out = f", and left out {hidden} document{'' if hidden == 1 else 's'}" if hidden else ""
    return f"Only passages that meet this filter were searched{left_out}: {told}."


def _code_told(code: CodeFound) -> str:
    others = ", ".join(code.others)
    return {
        "exact": f"“{code.code}” is in these documents.",
        "near": f"“{code.code}” is not in these documents by itself; longer codes under it are: {others}.",
        "parent": f"Not in these documents: “{code.code}”. A shorter code it falls under is: {others}.",
        "none": f"Not in these documents: “{code.code}”, in any spelling.",
    }[code.found]


def _overall(codes: Sequence[CodeFound], *, is_any: bool) -> str:
    """Return one word for all codes, the weakest; without codes whether there is anything near."""
    if codes:
        return max((code.found for code in codes), key=_WEAKEST_LAST.index)
    return "near" if is_any else "none"


def _summary(
    chosen: Sequence[Collection], query: str, hits: Sequence[SearchHit], codes: Sequence[CodeFound]
) -> str:
    """Tell a person in a line what was found."""
    missing = [code.code for code in codes if code.found == "none"]
    lead = f"{', '.join(missing[:_NAMED])} not in {_told(chosen)}. " if missing else ""
    if not hits:
        return lead.strip() or f"Nothing found in {_told(chosen)} for “{query}”"
    documents = len({hit.document_id for hit in hits})
    from_ = f"{documents} document{'' if documents == 1 else 's'}"
    return f"{lead}{passages_counted(len(hits))} from {from_} for “{query}”"


def _counted(documents: int) -> str:
    return f"{documents} document{' is' if documents == 1 else 's are'}"


def _told(collections: Sequence[Collection]) -> str:
    """Name a few collections and count the rest."""
    names, more = ", ".join(c.name for c in collections[:_NAMED]), len(collections) - _NAMED
    return f"{names} and {more} more" if more > 0 else names


def _attached_hits(
    scope: Scope, actor: Actor, given: FilesInScope, query: str, filters: Mapping[str, Any] | None
) -> Sequence[SearchHit]:
    """Search the attached files by themselves: a large collection shall not push them out, and no assistant's filter."""
    if not given.documents:
        return ()
    homes = Collection.objects.filter(tenant=scope.tenant, owner_id=actor.user_id)
    homes = homes.filter(documents__in=given.documents).select_related("space").distinct()
    found = search_run(
        tenant=scope.tenant,
        actor=actor,
        collections=list(homes),
        query=query,
        k=ATTACHED_PASSAGES,
        filters={**(filters or {}), "document_id": {"in": given.documents}},
        billing_account=run_billing_account(scope.run),
        is_patient=True,
        is_quoted=True,
    )
    return found.hits


def _beside(hit: SearchHit) -> dict[str, str]:
    """Return what the model is told of a passage besides: its type, its match, what is around it."""
    told = {
        "type": hit.document_type,
        "match": hit.match,
        "before": "\n".join(hit.before),
        "after": "\n".join(hit.after),
    }
    return {name: text for name, text in told.items() if text}


def _row(hit: SearchHit, collection: str) -> dict[str, Any]:
    return {
        **result_row(hit, hit.chunk_id, hit.document_name, hit.version, collection),
        "score": hit.score,
        "vector_rank": hit.vector_rank,
        "lexical_rank": hit.lexical_rank,
        "exact_rank": hit.exact_rank,
        **({} if hit.quotable is None else {"quotable": hit.quotable}),
    }
