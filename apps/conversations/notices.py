"""What people are told of answers, and of calls that wait for their decision."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.urls import reverse
from django.utils.translation import gettext_lazy

from apps.conversations.models import Conversation, Turn
from notices.sources import Thing, notice_source
from runs.approvals.deciders import decidable, deciders_of
from runs.approvals.selectors import open_decisions
from runs.models import PendingDecision, RunStatus
from tenancy.actors import Actor
from tenancy.models import Tenant


@notice_source(
    "answer",
    group="answer",
    texts={
        RunStatus.COMPLETED: gettext_lazy("Answer ready"),
        RunStatus.FAILED: gettext_lazy("Answer failed"),
    },
)
def answers(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Thing]:
    """Return conversations with a new answer, by their title."""
    if not actor.can("conversation.read"):
        return {}
    rows = Conversation.objects.visible_to(actor).filter(pk__in=pks).only("pk", "title")
    return {row.pk: Thing(str(row), _conversation_url(tenant, row.pk)) for row in rows}


def _deciders(tenant_id: int, pk: int) -> Collection[int]:
    row = PendingDecision.objects.filter(open_decisions(), tenant_id=tenant_id, pk=pk).select_related("run")
    return deciders_of(found) if (found := row.first()) is not None else []


@notice_source(
    "approval",
    group="approval",
    texts={"pending": gettext_lazy("Approval needed")},
    good=(),
    people=_deciders,
)
def approvals(tenant: Tenant, actor: Actor, pks: Collection[int]) -> Mapping[int, Thing]:
    """Return decisions that still wait for the actor, by their tool; one of an own conversation is there."""
    if not actor.can("run.read"):
        return {}
    rows = list(
        PendingDecision.objects.visible_to(actor)
        .filter(open_decisions(), decidable(actor), pk__in=pks)
        .only("pk", "name", "run_id")
    )
    own = Turn.objects.visible_to(actor).filter(
        run_id__in={row.run_id for row in rows},
        conversation__user_id=actor.user_id or 0,
        conversation__removed_at=None,
    )
    place = dict(own.values_list("run_id", "conversation_id")) if rows else {}
    return {
        row.pk: Thing(
            row.name,
            _conversation_url(tenant, place[row.run_id])
            if row.run_id in place
            else reverse("tools:approval", args=[tenant.slug, row.pk]),
        )
        for row in rows
    }


def _conversation_url(tenant: Tenant, pk: int) -> str:
    return reverse("conversations:detail", args=[tenant.slug, pk])
