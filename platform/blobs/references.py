"""Which rows name a key: asked of the apps that keep files, before any bytes go."""

from __future__ import annotations

from collections.abc import Callable

_asked: list[Callable[[int, str], bool]] = []


def named_by(is_named: Callable[[int, str], bool]) -> None:
    """Have it asked, by workspace and key, whether a row names a key; at start-up, by every app that keeps files."""
    if is_named not in _asked:
        _asked.append(is_named)


def is_named(tenant_id: int, key: str) -> bool:
    """Tell whether any row names a key, in the workspace's scope."""
    return any(ask(tenant_id, key) for ask in _asked)
