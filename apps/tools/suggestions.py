"""Which tools fit a question: by the words of their descriptions, and by how well their calls have gone before."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q
from django.utils import timezone

from apps.tools.catalog import Listed, catalog_read
from runs.models import ToolCall, ToolCallStatus
from tenancy.actors import Actor
from toolloop.tools.ranking import WordIndex

DAYS = 90
_NAME, _TAGS, _TEXT = 3.0, 2.0, 1.0
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
            return f"not called in the last {DAYS} days"
        return f"{self.succeeded} of {self.calls} calls in the last {DAYS} days succeeded"


def tools_suggest(*, actor: Actor, question: str, limit: int = 5) -> list[Suggestion]:
    """Return the tools that fit a question best and that the actor may call; none where no word fits.

    One query beside those of the catalog, whatever their number.

    Args:
        question: in plain words.
        limit: how many at most.

    Raises:
        Denied: without the right ``tool.run``.
    """
    tools = [t for t in catalog_read(actor=actor) if t.is_enabled and "deny" not in (t.elsewhere or t.decision.effect)]  # fmt: skip
    scores = WordIndex([_fields(tool) for tool in tools]).scores(question)
    if not scores:
        return []
    history = _history(actor, [tools[number].name for number in scores])
    found = []
    for number, score in scores.items():
        calls, succeeded = history.get(tools[number].name, (0, 0))
        chance = (succeeded + _PRIOR / 2) / (calls + _PRIOR)
        found.append(Suggestion(tools[number], score * (0.5 + 0.5 * chance), calls, succeeded))
    return sorted(found, key=lambda one: (-one.score, one.tool.name))[:limit]


def _fields(tool: Listed) -> Sequence[tuple[float, str]]:
    return (
        (_NAME, f"{tool.name} {tool.title}"),
        (_TAGS, f"{tool.category} {' '.join(tool.tags)}"),
        (_TEXT, tool.description),
    )


def _history(actor: Actor, names: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    since = timezone.now() - datetime.timedelta(days=DAYS)
    rows = (
        ToolCall.objects.visible_to(actor)
        .filter(name__in=names, started_at__gte=since)
        .filter(status__in=(ToolCallStatus.SUCCEEDED, ToolCallStatus.FAILED, ToolCallStatus.UNKNOWN))
        .values_list("name")
        .annotate(calls=Count("pk"), succeeded=Count("pk", filter=Q(status=ToolCallStatus.SUCCEEDED)))
    )  # fmt: skip
    return {name: (calls, succeeded) for name, calls, succeeded in rows}
