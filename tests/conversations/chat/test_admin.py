"""Runs and conversations in the admin: every list and page opens, and nobody can change a journal."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.conversations.models import Assistant, AssistantVersion
from runs.models import ChunkRead, PendingDecision, RunEvent, RunRetention, RunStep, ToolCall, UsageRecord
from tenancy.models import User
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import ask, fresh
from tests.permissions.world import make_row

pytestmark = pytest.mark.django_db(transaction=True)
MODELS: list[type[Any]] = [
    model
    for label in ("runs", "conversations")
    for model in apps.get_app_config(label).get_models()
    if model in admin.site._registry and model is not RunRetention  # a rule, which owners set
]


def test_every_model_is_registered_that_says_something() -> None:
    names = {model.__name__ for model in MODELS}
    assert names >= {
        "Run",
        "RunEvent",
        "RunStep",
        "ToolCall",
        "PendingDecision",
        "UsageRecord",
        "Conversation",
        "Turn",
        "Message",
        "Citation",
        "Assistant",
        "AssistantVersion",
    }


def rows_of_every_model(cast: Cast) -> dict[type[Any], int]:
    """Make at least one row of each model, and return the key of the last one."""
    turn = fresh(ask(cast))
    with tenant_scope(cast.tenant.pk):
        common = {"tenant": cast.tenant, "run": turn.run}
        RunStep.objects.create(**common, index=0, turn={})
        ToolCall.objects.create(**common, step=0, call_id="x", name="search_documents")
        RunEvent.objects.create(**common, seq=1, kind="text", data={"text": "<script>"})
        PendingDecision.objects.create(
            **common, step=0, call_id="x", name="send", kind="approval", expires_at=timezone.now()
        )
        UsageRecord.objects.create(
            tenant=cast.tenant, run_id=turn.run_id, kind="turn", provider="p", model="m"
        )
        ChunkRead.objects.create(
            tenant=cast.tenant, run_id=turn.run_id, chunk_id=1, document_id=1, document_name="d"
        )
        turn.citations.create(tenant=cast.tenant, number=1, chunk_ref=1, document_name="d")
        clerk = Assistant.objects.create(tenant=cast.tenant, name="Clerk", slug="clerk")
        AssistantVersion.objects.create(tenant=cast.tenant, assistant=clerk, number=1)
        for model in MODELS:
            if not model.objects.exists():
                make_row(model, cast.tenant, cast.owner.user)
        return {model: model.objects.latest("pk").pk for model in MODELS}


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_lists_and_pages_open_and_nothing_can_be_changed(cast: Cast, subtests: pytest.Subtests) -> None:
    boss = User.objects.create_superuser("boss@example.org", "secret-password")
    readers = [signed_in(user) for user in (boss, cast.user("owner"))]
    outsider = signed_in(cast.user("outsider"))
    for model, pk in rows_of_every_model(cast).items():
        base = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        with subtests.test(model._meta.label):
            for client in readers:
                for query in ("", "?q=1", "?q=duty"):
                    assert client.get(reverse(f"{base}_changelist") + query).status_code == 200
                assert client.get(reverse(f"{base}_change", args=[pk])).status_code == 200
                assert client.get(reverse(f"{base}_add")).status_code == 403
                assert client.post(reverse(f"{base}_delete", args=[pk]), {"post": "yes"}).status_code == 403
            assert outsider.get(reverse(f"{base}_change", args=[pk])).status_code == 404
