"""Which tools fit a question: by words and meaning, as models find them, and by how well their calls have gone before."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.tools.catalog.selectors import Listed, catalog_read
from apps.tools.toolset.vectors import tools_likeness
from runs.models import ToolCall, ToolCallStatus
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.tools.catalog import Catalog

DAYS = 90
_DEPTH = 50  # hits whose history is read
# Ten calls' worth of an even chance: one failure of a new tool must not hide it, nor one success put it first.
_PRIOR = 10


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A tool that fits.

    Attributes:
        tool: as the catalog lists it.
        score: 0 to 1, for comparing only.
        calls, succeeded: of the last 90 days in the whole workspace; what the policy denied is not among them.
    """

    tool: Listed
    score: float
    calls: int
    succeeded: int

    @property
    def why(self) -> str:
        """Return in words how its calls have gone."""
        if not self.calls:
            return _("not called in the last %(days)s days") % {"days": DAYS}
        return ngettext(
            "%(succeeded)s of %(count)s calls in the last %(days)s days succeeded",
            "%(succeeded)s of %(count)s calls in the last %(days)s days succeeded",
            self.calls,
        ) % {"succeeded": self.succeeded, "count": self.calls, "days": DAYS}


def tools_suggest(
    *, actor: Actor, question: str, limit: int = 5, tools: Sequence[Listed] | None = None
) -> list[Suggestion]:
    """Return the tools that fit a question best and that the actor may call; none where nothing fits.

    A fixed number of queries beside those of the catalog, whatever the number of tools.

    Args:
        question: in plain words.
        limit: how many at most.
        tools: only these, as ``catalog_read`` gave them to this actor; None for all.

    Raises:
        Denied: without the right ``tool.run``.
    """
    actor.require("tool.run")
    if not question.strip():
        return []
    known = catalog_read(actor=actor) if tools is None else tools
    usable = [t for t in known if t.is_enabled and (t.elsewhere or t.decision.effect) != "deny"]
    if not usable:
        return []
    hits = _hits(Tenant.objects.get(pk=actor.tenant_id), usable, question)
    history = _history(actor, [tool.name for tool, _ in hits])
    found = []
    for tool, score in hits:
        calls, succeeded = history.get(tool.name, (0, 0))
        chance = (succeeded + _PRIOR / 2) / (calls + _PRIOR)
        found.append(Suggestion(tool, score * (0.5 + 0.5 * chance), calls, succeeded))
    return sorted(found, key=lambda one: (-one.score, one.tool.name))[:limit]


def _hits(tenant: Tenant, tools: Sequence[Listed], question: str) -> list[tuple[Listed, float]]:
    """Return what a model would find too, with the words of titles, and the score of each."""
    stated = [replace(listed.tool, description=listed.description) for listed in tools]
    catalog = Catalog(
        replace(tool, category=listed.category, tags=(*listed.tags, listed.own_title))
        for tool, listed in zip(stated, tools, strict=True)
    )
    page = catalog.search(question, limit=_DEPTH, likeness=tools_likeness(tenant, stated, question))
    by_name = {listed.name: listed for listed in tools}
    return [(by_name[hit.entry.name], hit.score) for hit in page.hits]


def _history(actor: Actor, names: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    since = timezone.now() - datetime.timedelta(days=DAYS)
    rows = (
        ToolCall.objects.visible_to(actor)
        .filter(name__in=names, started_at__gte=since)
        .filter(status__in=(ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.UNKNOWN))
        .values_list("name")
        .annotate(calls=Count("pk"), succeeded=Count("pk", filter=Q(status=ToolCallStatus.SUCCEEDED)))
    )
    return {name: (calls, succeeded) for name, calls, succeeded in rows}
