"""The command palette: each app adds what it can find, this room adds the places of the shell.

An app registers a source in its ``palette`` module, which is imported at start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tenancy.actors import Actor
from tenancy.models import Tenant

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the palette.

    Attributes:
        icon: a name in static/icons.svg.
        hint: a few words at the right.
        key: the shortcut that does the same on the page; ``url`` is used where the page has none.
    """

    title: str
    url: str
    icon: str = "arrow-right"
    hint: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Lines under one heading."""

    label: str
    items_list: list[Item] = field(default_factory=list)


Source = Callable[[Tenant, Actor, str], Group]
_sources: dict[str, tuple[int, Source]] = {}


def palette_source(name: str, *, order: int) -> Callable[[Source], Source]:
    """Register a function (tenant, actor, query) -> Group; ``query`` may be "" (show what was used last).

    Args:
        name: unique; registering it again replaces the source.
        order: groups are shown in ascending order; the shell's own places have 100.
    """

    def register(source: Source) -> Source:
        _sources[name] = (order, source)
        return source

    return register


def palette_groups(*, tenant: Tenant, actor: Actor, query: str) -> list[Group]:
    """Return what all sources find, without empty groups."""
    found = [source(tenant, actor, query) for _, source in sorted(_sources.values(), key=_order)]
    return [group for group in found if group.items_list]


def _order(entry: tuple[int, Source]) -> int:
    return entry[0]


_PLACES: tuple[tuple[StrOrPromise, str, str, str, str], ...] = (
    (gettext_lazy("New conversation"), "conversations:home", "message-square", "conversation.write", "c"),
    (gettext_lazy("Prompts"), "conversations:prompts", "quote", "conversation.read", ""),
    (gettext_lazy("Assistants"), "assistants:list", "bot", "assistant.read", ""),
    (gettext_lazy("Collections"), "collections:list", "library", "collection.read", ""),
    (gettext_lazy("New collection"), "collections:create", "plus", "collection.write", ""),
    (gettext_lazy("Tools"), "tools:catalog", "wrench", "tool.run", ""),
    (gettext_lazy("Members"), "web:settings-members", "users", "member.read", ""),
    (gettext_lazy("Models"), "web:settings-models", "cpu", "credential.manage", ""),
    (gettext_lazy("API keys"), "web:settings-keys", "key-round", "key.manage", ""),
    (gettext_lazy("Connected applications"), "web:settings-connections", "plug", "app.connect", ""),
    (gettext_lazy("Memory"), "conversations:settings-memory", "pin", "memory.use", ""),
    (gettext_lazy("Notifications"), "web:notices", "bell", "notice.read", ""),
    (
        gettext_lazy("What the assistant is told"),
        "conversations:settings-instructions",
        "sparkles",
        "conversation.read",
        "",
    ),
    (gettext_lazy("Audit log"), "web:settings-audit", "scroll-text", "audit.read", ""),
)


@palette_source("places", order=100)
def places(tenant: Tenant, actor: Actor, query: str) -> Group:
    """Return the pages and commands that this actor may use."""
    needle = query.casefold()
    items = [
        Item(str(title), reverse(url, args=[tenant.slug]), icon, key=key)
        for title, url, icon, action, key in _PLACES
        if needle in str(title).casefold() and actor.can(action)
    ]
    own = _("Your account")
    if needle in own.casefold():
        items.append(Item(own, reverse("web:profile"), "user"))
    return Group(_("Go to"), items)
