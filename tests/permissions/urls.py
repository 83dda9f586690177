"""Every URL of the URL configuration, by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import get_resolver


def all_urls() -> Iterator[tuple[str, str]]:
    """Yield (name with namespace, route) of each URL; a URL without a name is "namespace:?"."""
    yield from _walk(get_resolver(), "", "")


def _walk(resolver: Any, namespace: str, route: str) -> Iterator[tuple[str, str]]:
    for pattern in resolver.url_patterns:
        here = route + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            inner = pattern.namespace
            yield from _walk(pattern, f"{namespace}{inner}:" if inner else namespace, here)
        else:
            yield namespace + (pattern.name or "?"), here
