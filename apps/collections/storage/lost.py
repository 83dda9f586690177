"""Documents that were deleted or limited to some, told to the rooms above in the transaction that does it."""

from __future__ import annotations

from collections.abc import Callable

from tenancy.actors import Actor
from tenancy.models import Tenant

Listener = Callable[[Tenant, Actor, int], None]
_told: list[Listener] = []


def on_document_lost(listener: Listener) -> None:
    """Have it called with workspace, who did it and the document's id; at start-up, by rooms this one must not know."""
    if listener not in _told:
        _told.append(listener)


def document_lost_tell(*, tenant: Tenant, actor: Actor, document: int) -> None:
    """Tell that some may not read a document any more."""
    for listener in _told:
        listener(tenant, actor, document)
