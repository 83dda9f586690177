"""Which rows name a key: asked of the apps that keep files, before any bytes go."""

from __future__ import annotations

from collections.abc import Callable, Collection

_asked: list[Callable[[int, Collection[str]], set[str]]] = []


def named_by(names: Callable[[int, Collection[str]], set[str]]) -> None:
    """Have it asked, by workspace and keys, which of the keys rows name; at start-up, by every app that keeps files."""
    if names not in _asked:
        _asked.append(names)


def named(tenant_id: int, keys: Collection[str]) -> set[str]:
    """Return those of the keys that rows name, in the workspace's scope."""
    return set().union(*(names(tenant_id, keys) for names in _asked))
