"""Reads of notices: with the names and rights of the moment in which they are told."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import QuerySet

from notices.models import Notice, NoticeSetting
from notices.sources import GROUPS, PORTAL, SOURCES, WAYS, kinds_of
from tenancy.actors import Actor
from tenancy.models import Tenant

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Ways = Mapping[str, frozenset[str]]
MOST = 50
"""Notices in a list; older ones are there until they are removed, and newer ones come first."""
_LOOKED_AT = 500
"""Rows read at most to find them: of some nothing can be told any more, such as decided approvals."""


@dataclass(frozen=True, slots=True)
class ToldNotice:
    """A notice as its person may see it now.

    Attributes:
        text: what has happened, in a few words.
        name: to what.
        is_good: nothing needs the person.
    """

    pk: int
    kind: str
    group: str
    state: str
    text: StrOrPromise
    name: str
    url: str
    at: datetime.datetime
    is_read: bool
    is_good: bool

    @property
    def path(self) -> str:
        """Return the address of its page without query and fragment: who has it in front of them has seen it."""
        return urlsplit(self.url).path


def ways_default() -> Ways:
    """Return the ways that are on, by group, of a person who has chosen nothing."""
    return {name: group.defaults for name, group in GROUPS.items()}


def ways_of(stored: Any) -> Ways:
    """Return the ways that are on, by group, from what is stored of a person's choice; {} for none."""
    found = {**ways_default()}
    for name, chosen in stored.items():
        if name in GROUPS:
            found[name] = frozenset(chosen) & WAYS.keys()
    return found


def notice_ways(*, actor: Actor) -> Ways:
    """Return the ways in which the actor is told, by group."""
    row = NoticeSetting.objects.visible_to(actor).first()
    return ways_of(row.ways if row is not None else {})


def groups_with(way: str, ways: Ways) -> list[str]:
    """Return the groups in which a way is on."""
    return [name for name, chosen in ways.items() if way in chosen]


def notice_list(*, tenant: Tenant, actor: Actor, ways: Ways | None = None) -> list[ToldNotice]:
    """Return the newest notices that the portal shows the actor.

    Args:
        ways: the actor's, where they are known already.
    """
    rows = _rows(actor, PORTAL, notice_ways(actor=actor) if ways is None else ways)
    return notices_told(tenant, actor, rows.order_by("-at", "-pk")[:_LOOKED_AT])[:MOST]


def notices_unread(*, actor: Actor) -> QuerySet[Notice]:
    """Return what the portal tells the actor and is unread, the newest first; not all of very many."""
    rows = _rows(actor, PORTAL, notice_ways(actor=actor)).filter(read_at=None)
    return rows.order_by("-at", "-pk")[:_LOOKED_AT]


def notices_told(tenant: Tenant, actor: Actor, rows: Iterable[Notice]) -> list[ToldNotice]:
    """Return notices in words, without those of things that the actor may not see (any more); one read a kind."""
    found = list(rows)
    asked: dict[str, set[int]] = defaultdict(set)
    for row in found:
        asked[row.kind].add(row.object_id)
    known = {
        kind: SOURCES[kind].read(tenant, actor, sorted(pks)) for kind, pks in asked.items() if kind in SOURCES
    }
    return [
        ToldNotice(
            pk=row.pk,
            kind=row.kind,
            group=source.group,
            state=row.state,
            text=text,
            name=thing.name,
            url=thing.url,
            at=row.at,
            is_read=row.read_at is not None,
            is_good=row.state in source.good,
        )
        for row in found
        if (source := SOURCES.get(row.kind)) is not None
        and (text := source.texts.get(row.state)) is not None
        and (thing := known[row.kind].get(row.object_id)) is not None
    ]


def is_mail_set_up() -> bool:
    """Tell whether the server sends mail, rather than printing it."""
    return "console" not in settings.EMAIL_BACKEND


def of_groups(rows: QuerySet[Any], groups: Collection[str]) -> QuerySet[Any]:
    """Return the notices of some groups."""
    return rows.filter(kind__in=kinds_of(groups))


def _rows(actor: Actor, way: str, ways: Ways) -> QuerySet[Notice]:
    found: QuerySet[Notice] = Notice.objects.visible_to(actor)
    return of_groups(found, groups_with(way, ways))
