"""What is a person's among conversations: theirs, with the files they attached and the runs they began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from apps.conversations.models import Conversation
from apps.conversations.turns.conversations import RUN_KIND, conversation_remove
from runs.models import Run
from tenancy.actors import system_actor
from tenancy.models import Tenant, User
from tenancy.scope import tenant_scope

_KINDS = (RUN_KIND, "completion", "tool_calls")
"""Kinds of runs that hold what a person said; those of datasets and evaluations belong to the workspace."""


def person_conversations_erase(person: User) -> Mapping[str, int]:
    """Delete a person's conversations in every workspace, and their runs that no other conversation shows."""
    conversations = runs = 0
    for tenant in _tenants(Conversation.objects.filter(user=person)):
        with tenant_scope(tenant.pk):
            for row in Conversation.objects.select_for_update().filter(tenant=tenant, user=person):
                conversation_remove(tenant, system_actor(tenant.pk), row)
                conversations += 1
    mine = Run.objects.filter(user=person, kind__in=_KINDS)
    for tenant in _tenants(mine):
        with tenant_scope(tenant.pk):
            runs += mine.filter(tenant=tenant, turns=None).delete()[0]
    return {"conversations.Conversation": conversations, "runs.Run": runs}


def _tenants(rows: QuerySet[Any]) -> list[Tenant]:
    return list(Tenant.objects.filter(pk__in=rows.values("tenant_id").distinct()))
