"""Which role may do what. One table; nothing outside it grants anything."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

VIEWER, MEMBER, ADMIN, OWNER = "viewer", "member", "admin", "owner"

_VIEWER = frozenset(
    {
        "tenant.read",
        "collection.read",
        "search.run",
        "conversation.read",
        "conversation.write",
        "assistant.read",
        "run.read",
        "model.read",
        "tool.run",
        "dataset.read",
        "evaluation.read",
        "app.connect",
        "memory.use",
        "notice.read",
    }
)
_MEMBER = _VIEWER | {
    "collection.write",
    "document.write",
    "member.read",
    "dataset.write",
    "evaluation.write",
    "assistant.write",
}
_ADMIN = _MEMBER | {
    "dataset.delete",
    "collection.delete",
    "member.manage",
    "key.manage",
    "credential.manage",
    "audit.read",
    "tool.manage",
    "webhook.manage",
    "instruction.manage",
}
_OWNER = _ADMIN | {"tenant.manage", "budget.manage", "retention.manage", "admin.site"}

ROLE_ACTIONS: dict[str, frozenset[str]] = {VIEWER: _VIEWER, MEMBER: _MEMBER, ADMIN: _ADMIN, OWNER: _OWNER}
ACTIONS: frozenset[str] = _OWNER

_RANKS = {VIEWER: 1, MEMBER: 2, ADMIN: 3, OWNER: 4, "system": 5}


def rank(role: str) -> int:
    """Return how high a role stands, 0 for none; nobody gives or takes a role above their own."""
    return _RANKS.get(role, 0)


# What an API key may be given. People's and keys' administration stays with people, and so do their own notes and notifications.
KEY_SCOPES: frozenset[str] = (_MEMBER - {"app.connect", "memory.use", "notice.read"}) | {
    "collection.delete",
    "audit.read",
    "tool.manage",
    "webhook.manage",
    "dataset.delete",
    "budget.manage",
    "retention.manage",
}
# Such a key can give itself every tool, or all the money, or have what people said deleted. ``noun.*`` does not mean it: who makes one says so.
BY_NAME_ALONE = frozenset({"tool.manage", "budget.manage", "retention.manage"})


# What a connected application may be given, in the words in which its person is asked. It is all that the MCP server asks for.
APP_SCOPES: dict[str, StrOrPromise] = {
    "collection.read": gettext_lazy("See your collections and read their documents"),
    "search.run": gettext_lazy("Search the documents"),
    "tool.run": gettext_lazy("Run the tools you can run"),
    "run.read": gettext_lazy("See the results of its calls"),
    "document.write": gettext_lazy("Add and change documents and files"),
}
APP_DEFAULT = frozenset(APP_SCOPES) - {"document.write"}


# What a key that is limited to collections may be given: all it reads by these is behind that limit.
LIMITED_SCOPES = frozenset(
    {
        "tenant.read",
        "collection.read",
        "document.write",
        "search.run",
        "conversation.read",
        "conversation.write",
        "model.read",
        "tool.run",
    }
)


def expand_scopes(scopes: list[str]) -> frozenset[str]:
    """Return the actions that API key scopes stand for; ``collection.*`` means all of that noun but what must be named.

    Raises:
        ValueError: a scope names no action a key may have; the message lists the known ones.
    """
    return _expanded(tuple(scopes))


@lru_cache(maxsize=256)
def _expanded(scopes: tuple[str, ...]) -> frozenset[str]:
    actions: set[str] = set()
    for scope in scopes:
        noun, dot, verb = scope.partition(".")
        every = KEY_SCOPES - BY_NAME_ALONE if verb == "*" else frozenset()
        found = {a for a in KEY_SCOPES if a == scope or (a in every and a.startswith(noun + dot))}
        if not found:
            raise ValueError(f"unknown scope {scope!r}; known: {', '.join(sorted(KEY_SCOPES))}")
        actions |= found
    return frozenset(actions)
