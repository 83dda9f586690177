"""What can be told of: each app registers its kinds in its ``notices`` module, which is imported at start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy

from tenancy.actors import Actor
from tenancy.models import Tenant

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PORTAL, BROWSER, MAIL = "portal", "browser", "mail"
WAYS: Final[Mapping[str, StrOrPromise]] = {
    PORTAL: gettext_lazy("In the portal"),
    BROWSER: gettext_lazy("Browser"),
    MAIL: gettext_lazy("Mail"),
}


@dataclass(frozen=True, slots=True)
class Group:
    """Kinds that a person switches on and off together.

    Attributes:
        what: when it tells, in a sentence.
        defaults: ways that are on until a person chooses.
    """

    label: StrOrPromise
    what: StrOrPromise
    defaults: frozenset[str]


GROUPS: Final[Mapping[str, Group]] = {
    "answer": Group(
        gettext_lazy("Answers"),
        gettext_lazy("An answer is ready or has failed while you were looking elsewhere."),
        frozenset({PORTAL, BROWSER}),
    ),
    "approval": Group(
        gettext_lazy("Approvals"),
        gettext_lazy("A tool call waits for your decision."),
        frozenset({PORTAL, BROWSER, MAIL}),
    ),
    "work": Group(
        gettext_lazy("Long work"),
        gettext_lazy("An import, generation or experiment you started has ended, failed or paused."),
        frozenset({PORTAL, BROWSER}),
    ),
    "budget": Group(
        gettext_lazy("Budgets"),
        # xgettext:no-python-format
        gettext_lazy("A budget of yours, or one you manage, has reached 80 % or is used up."),
        frozenset({PORTAL, BROWSER, MAIL}),
    ),
}


@dataclass(frozen=True, slots=True)
class Thing:
    """What a notice is about, as its reader may see it now.

    Attributes:
        name: what it is called.
        url: its page, below the server's address.
    """

    name: str
    url: str


Read = Callable[[Tenant, Actor, Collection[int]], Mapping[int, Thing]]
People = Callable[[int, int], Collection[int]]


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of thing.

    Attributes:
        read: returns what the actor may see of the things with these ids.
        texts: what is said, by state; a notice in any other state is not told.
        good: the states in which nothing needs the person.
        people: returns whom to tell of one, from workspace and id, as it is now; for ``notice_spread``.
    """

    group: str
    read: Read
    texts: Mapping[str, StrOrPromise]
    good: frozenset[str]
    people: People | None = None


SOURCES: dict[str, Source] = {}


def notice_source(
    kind: str,
    *,
    group: str,
    texts: Mapping[str, StrOrPromise],
    good: Collection[str] = ("completed",),
    people: People | None = None,
) -> Callable[[Read], Read]:
    """Register a function (tenant, actor, ids) -> {id: Thing} of what the actor may see; see ``Source``.

    Raises:
        ValueError: there is no such group.
    """
    if group not in GROUPS:
        raise ValueError(f"unknown group of notices {group!r}")

    def register(read: Read) -> Read:
        SOURCES[kind] = Source(group, read, texts, frozenset(good), people)
        return read

    return register


def kinds_of(groups: Collection[str]) -> list[str]:
    """Return the kinds of some groups."""
    return [kind for kind, source in SOURCES.items() if source.group in groups]
