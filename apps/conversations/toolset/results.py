"""What the tools of a conversation share: whose rights they have, where they look, and the form of what they return."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.collections.models import Chunk, Collection
from apps.collections.quotes.selectors import quotables_read
from apps.collections.search import LEGS, SearchHit
from apps.conversations.attachments.selectors import ATTACHED, FilesInScope
from apps.conversations.models import Attachment, Conversation
from apps.conversations.transcript import selectors
from apps.tools.toolset.bundles import CallGuard
from runs.models import Run
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.tools import ToolError, ToolOutput

SCOPE = "conversation_scope"
PASSAGES = 8


@dataclass(frozen=True, slots=True)
class Searching:
    """How the searches of one run are made, whatever the model asks for.

    Attributes:
        top_k: passages of a search.
        neighbours: passages before and after each that are shown as well, at least.
        filters: conditions that every passage meets; see ``parse_filters``.
        legs: ways of searching; see ``search_run``.
    """

    top_k: int = PASSAGES
    neighbours: int = 0
    filters: Mapping[str, Any] = field(default_factory=dict)
    legs: Sequence[str] = LEGS


@dataclass(frozen=True, slots=True)
class Scope:
    """What the tools of one run work on; ``in_db`` runs a function on the worker's database threads.

    ``conversation`` is None for calls outside of one. ``only`` are the collections they are about, None for all. The files
    ``given`` with the conversation's questions are searched as well. ``documents`` are the only ones of the collections that
    may be searched and read, None for all. ``along`` tells where a call may look as it was when the call was let in; None
    where nothing has read that.
    """

    tenant: Tenant
    conversation: Conversation | None
    run: Run
    in_db: Callable[..., Awaitable[Any]]
    guard: CallGuard
    only: frozenset[int] | None = None
    searching: Searching = Searching()
    given: FilesInScope = FilesInScope()  # noqa: RUF009 - frozen
    documents: frozenset[int] | None = None
    along: selectors.ScopeAlong | None = None

    def holds(self, document: int) -> bool:
        """Tell whether a document of its collections may be read."""
        return self.documents is None or document in self.documents


def attached_now(scope: Scope, actor: Actor) -> list[Attachment]:
    """Return those files of the run that its person may read at this moment."""
    if not scope.given.rows:
        return []
    there = Attachment.objects.visible_to(actor).filter(pk__in=[row.pk for row in scope.given.rows])
    pks = set(there.values_list("pk", flat=True))
    return [row for row in scope.given.rows if row.pk in pks]


def is_attached(names: Sequence[str]) -> bool:
    """Tell whether a call that names these collections is about the attached files too."""
    return not names or ATTACHED.casefold() in {name.strip().casefold() for name in names}


def rights_now(scope: Scope) -> tuple[Actor, list[Collection]]:
    """Return the person as they may act at this moment, and the collections that the running tool may touch for them."""
    found = None if scope.along is None else scope.along.take()
    actor, rows = found or selectors.run_scope_now(scope.run, scope.conversation)
    if scope.only is not None:
        rows = [row for row in rows if row.pk in scope.only]
    return actor, scope.guard.collections(rows, lambda row: row.pk)


def collections_named(allowed: list[Collection], names: Sequence[str]) -> list[Collection]:
    """Return the collections of these names, all without a name. Raises ToolError that lists those there are."""
    if not names:
        return allowed
    names = [name for name in names if name.strip().casefold() != ATTACHED.casefold()]
    by_name = {c.name.casefold(): c for c in allowed}
    unknown = [name for name in names if name.strip().casefold() not in by_name]
    if unknown:
        known = ", ".join(f"“{c.name}”" for c in allowed[:50]) or "none"
        raise ToolError(f"There is no collection “{unknown[0]}” to search. Available: {known}.")
    return [by_name[name] for name in dict.fromkeys(n.strip().casefold() for n in names)]


def chunk_number(chunk_id: str) -> int:
    """Return the number in a passage's id such as "c123". Raises ToolError."""
    digits = chunk_id.strip().strip("[]").lower().removeprefix("c")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise ToolError(f"{chunk_id!r} isn't a passage id: use one from a search result, such as c123.")
    return int(digits)


def result_row(
    source: SearchHit | Chunk, chunk_id: int, document: str, version: int, collection: str
) -> dict[str, Any]:
    """Return a passage as the retrieval trace keeps it; citations and the log of reads rest on these fields."""
    return {
        "chunk_id": chunk_id,
        "document_id": source.document_id,
        "document": document,
        "version": version,
        "collection": collection,
        "page": source.page_start,
        "headings": source.headings,
        "char_start": source.char_start,
        "text": source.text,
    }


def results_output(
    scope: Scope,
    results: Sequence[dict[str, Any]],
    note: str,
    summary: str,
    query: str,
    *,
    extra: Mapping[int, Mapping[str, Any]] | None = None,
    found: str = "",
    codes: Sequence[Mapping[str, str]] = (),
    similarity: float | None = None,
) -> ToolOutput:
    """Return what the model reads, and the retrieval trace that citations are resolved against.

    What was found and the note come first: a long result is cut at its end. The trace also keeps what may be quoted of each
    passage; the caller is on a database thread.

    Args:
        extra: what the model is told of a passage besides, by chunk id.
        found: what a search has found: ``exact``, ``near``, ``parent`` or ``none``; "" for what is no search.
        codes: the same for each code that was asked for.
        similarity: cosine of the question and the nearest passage, 0 to 1; None where it says nothing.
    """
    told = [
        {
            "id": f"c{r['chunk_id']}",
            "document": r["document"],
            "page": r["page"],
            "headings": r["headings"],
            "text": r["text"],
            **(extra or {}).get(r["chunk_id"], {}),
        }
        for r in results
    ]
    said = {"found": found} if found else {}
    named: dict[str, Any] = {"codes": list(codes)} if codes else {}
    if similarity is not None:
        named["similarity"] = round(similarity, 2)
    content = json.dumps({**said, "note": note, **named, "results": told}, ensure_ascii=False)
    quotables = quotables_read(scope.tenant.pk, [r["chunk_id"] for r in results if "quotable" not in r])
    kept = [{"quotable": quotables.get(r["chunk_id"]), **r} for r in results]
    return ToolOutput(content, {"query": query, "summary": summary, "results": kept})


def passages_counted(count: int) -> str:
    """Return "1 passage" or "3 passages"."""
    return f"{count} passage{'' if count == 1 else 's'}"
