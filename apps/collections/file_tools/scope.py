"""What file tools work on, and how each of their calls gets its actor and its collection."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from apps.collections.models import Collection, Document
from basics.errors import DomainError
from runs.actors import actor_now
from runs.models import Run
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.tools import ToolContext, ToolError, ToolOutput

FILE_SCOPE = "file_scope"
_PATHS = ("path", "old_path", "new_path")


@dataclass(frozen=True, slots=True)
class FileScope:
    """What the file tools of one run work on; put it into the run's context under ``FILE_SCOPE``.

    Attributes:
        tenant, run: of the run; the run's actor decides what is allowed.
        collections: gives the collections that the conversation searches, as the actor may see them now.
        in_db: runs a function on the worker's database threads.
    """

    tenant: Tenant
    run: Run
    collections: Callable[[Actor], Sequence[Collection]]
    in_db: Callable[..., Awaitable[Any]]


async def files_read(
    context: ToolContext,
    name: str,
    work: Callable[[Actor, Collection], Any],
    paths: Sequence[str] | None = (),
) -> ToolOutput:
    """Return what ``work`` reads in the collection of this name; see ``files_act``."""
    return await files_act(context, name, lambda scope, actor, row: work(actor, row), paths)


async def files_act(
    context: ToolContext,
    name: str,
    work: Callable[[FileScope, Actor, Collection], Any],
    paths: Sequence[str] | None = (),
) -> ToolOutput:
    """Return what ``work`` does in the collection of this name, on a thread of the database, with the rights of now.

    The payload names, beside what ``work`` returns, the documents whose files it tells of: who loses one of them later loses
    what was told of it.

    Args:
        paths: of files that it reads, beside those that its result names; None where it tells names and no contents.

    Raises:
        ToolError: the conversation searches no such collection, or ``work`` was refused; the model reads why.
    """
    scope: FileScope = context.data[FILE_SCOPE]
    payload, read = await scope.in_db(_work, scope, name, work, paths)
    told = json.dumps(payload, ensure_ascii=False, default=str)
    return ToolOutput(told, {**payload, "documents": read} if read else payload)


def _work(
    scope: FileScope,
    name: str,
    work: Callable[[FileScope, Actor, Collection], Any],
    paths: Sequence[str] | None,
) -> tuple[Any, list[dict[str, Any]]]:
    try:
        actor = actor_now(scope.run)
        rows = {row.name.casefold(): row for row in scope.collections(actor)}
        row = rows.get(name.strip().casefold())
        if row is None:
            known = ", ".join(f"“{one.name}”" for one in list(rows.values())[:50]) or "none"
            raise ToolError(f"There is no collection “{name}” here. Available: {known}.")
        payload = json.loads(json.dumps(work(scope, actor, row), default=str))
        if not isinstance(payload, dict) or paths is None:
            return payload, []
        named = {*paths, *_paths_in(payload)}
        documents = Document.objects.visible_to(actor).current()
        found = documents.filter(collection=row, path__in=named).order_by("pk")
        columns = ("pk", "name", "version")
        return payload, [
            {"document_id": pk, "document": title, "version": version, "collection": row.name}
            for pk, title, version in found.values_list(*columns)
        ]
    except DomainError as error:
        raise ToolError(error.message) from error


def _paths_in(value: Any) -> Iterator[str]:
    """Return the paths of files that a result names, wherever in it."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in _PATHS and isinstance(item, str):
                yield item
            else:
                yield from _paths_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _paths_in(item)
