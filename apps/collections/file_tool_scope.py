"""What file tools work on, and how each of their calls gets its actor and its collection."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from apps.collections.models import Collection
from basics.errors import DomainError
from runs.actors import actor_now
from runs.models import Run
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.tools import ToolContext, ToolError, ToolOutput

FILE_SCOPE = "file_scope"


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
    context: ToolContext, name: str, work: Callable[[Actor, Collection], Any]
) -> ToolOutput:
    """Return what ``work`` reads in the collection of this name; see ``files_act``."""
    return await files_act(context, name, lambda scope, actor, row: work(actor, row))


async def files_act(
    context: ToolContext, name: str, work: Callable[[FileScope, Actor, Collection], Any]
) -> ToolOutput:
    """Return what ``work`` does in the collection of this name, on a thread of the database, with the rights of now.

    Raises:
        ToolError: the conversation searches no such collection, or ``work`` was refused; the model reads why.
    """
    scope: FileScope = context.data[FILE_SCOPE]
    payload = await scope.in_db(_work, scope, name, work)
    return ToolOutput(json.dumps(payload, ensure_ascii=False, default=str), payload)


def _work(scope: FileScope, name: str, work: Callable[[FileScope, Actor, Collection], Any]) -> Any:
    try:
        actor = actor_now(scope.run)
        rows = {row.name.casefold(): row for row in scope.collections(actor)}
        row = rows.get(name.strip().casefold())
        if row is None:
            known = ", ".join(f"“{one.name}”" for one in list(rows.values())[:50]) or "none"
            raise ToolError(f"There is no collection “{name}” here. Available: {known}.")
        return json.loads(json.dumps(work(scope, actor, row), default=str))
    except DomainError as error:
        raise ToolError(error.message) from error
