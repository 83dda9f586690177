"""What a person's work came to while they looked elsewhere: lines of the side bar, gone when its page is looked at.

Work that ends is noted with the person's membership (``tenancy.services.finished``), which each request reads anyway: a
page of somebody for whom nothing is noted costs no further statement. Each app registers its kinds in its ``finished``
module, which is imported at start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.http import HttpRequest
from django.urls import Resolver404, ResolverMatch, resolve

from exports.moves import Arrival
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant
from tenancy.services import finished_seen

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class Work:
    """One piece of work as a source knows it.

    Attributes:
        name: what it was about.
        url: its page.
    """

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the side bar.

    Attributes:
        text: how it ended, in a few words.
        is_good: whether it ended as it should.
    """

    name: str
    url: str
    text: StrOrPromise
    is_good: bool


Read = Callable[[Tenant, Actor, Collection[int]], Mapping[int, Work]]


@dataclass(frozen=True, slots=True)
class _Source:
    read: Read
    texts: Mapping[str, StrOrPromise]
    view: str
    key: str


_GOOD = "completed"
_sources: dict[str, _Source] = {}


def finished_source(
    kind: str, *, texts: Mapping[str, StrOrPromise], view: str, key: str = "pk"
) -> Callable[[Read], Read]:
    """Register a function (tenant, actor, ids) -> {id: Work} of what the actor may see.

    Args:
        kind: as ``finished_note`` has it.
        texts: by state, what the side bar says; "completed" is the good one.
        view: name of the page where one looks at such work.
        key: which part of that page's address is its id.
    """

    def register(read: Read) -> Read:
        _sources[kind] = _Source(read, texts, view, key)
        return read

    return register


def finished_lines(request: HttpRequest, *, membership: Membership, actor: Actor) -> list[Line]:
    """Return what has ended and was not looked at, newest first; what the page in front of the person shows is forgotten."""
    if not membership.finished:
        return []
    match = _looked_at(request)
    for kind, source in _sources.items():
        if match is not None and match.view_name == source.view:
            finished_seen(membership=membership, kind=kind, pk=match.kwargs[source.key])
    noted = [(kind, pk, state) for kind, pk, state in reversed(membership.finished) if kind in _sources]
    known = {
        kind: _sources[kind].read(membership.tenant, actor, [pk for k, pk, _ in noted if k == kind])
        for kind in {kind for kind, _, _ in noted}
    }
    return [
        Line(work.name, work.url, text, state == _GOOD)
        for kind, pk, state in noted
        if (work := known[kind].get(pk)) is not None and (text := _sources[kind].texts.get(state)) is not None
    ]


def finished_forget(arrival: Arrival) -> None:
    """Note nothing in a workspace that comes from elsewhere: the numbers are those of another server."""
    Membership.objects.filter(tenant=arrival.tenant).exclude(finished=[]).update(finished=[])


def _looked_at(request: HttpRequest) -> ResolverMatch | None:
    """Return which page the person has in front of them; None where a page in the background asks."""
    if request.headers.get("HX-Request") != "true":
        return request.resolver_match
    if request.headers.get("X-Hidden"):
        return None
    try:
        return resolve(urlsplit(request.headers.get("HX-Current-URL", "")).path)
    except (Resolver404, ValueError):  # a page that is gone, or no URL at all
        return None
