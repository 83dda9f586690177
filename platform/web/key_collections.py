"""Which collections a new key may be limited to: a higher room says so, because this one knows no collections."""

from __future__ import annotations

from collections.abc import Callable

from tenancy.actors import Actor

Choices = Callable[[Actor], list[tuple[int, str]]]
_sources: list[Choices] = []


def key_collections_from(choices: Choices) -> None:
    """Register what lists the collections (id, name) that an actor may see."""
    _sources[:] = [choices]


def key_collections(actor: Actor) -> list[tuple[int, str]]:
    """Return them; none while nobody has registered."""
    return [choice for source in _sources for choice in source(actor)]
