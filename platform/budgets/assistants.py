"""Which assistants a budget can be about: a higher room says so, because this one knows none."""

from __future__ import annotations

from collections.abc import Callable, Collection

from tenancy.actors import Actor

Names = Callable[[Actor, Collection[int] | None], list[tuple[int, str]]]
_sources: list[Names] = []


def assistants_from(names: Names) -> None:
    """Register what lists assistants (id, name) of an actor's workspace: those with these ids, or with None all in use."""
    _sources[:] = [names]


def assistant_names(actor: Actor, pks: Collection[int] | None = None) -> list[tuple[int, str]]:
    """Return them; none while nobody has registered."""
    return [row for source in _sources for row in source(actor, pks)]
