"""The retention rule: what it removes, what it never touches, who sets it, and that old pages stay readable."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from apps.conversations.models import Conversation, Message, Turn
from basics.errors import Denied, Invalid
from erasure.removal import removal_round
from runs.models import ChunkRead, PendingDecision, Run, RunEvent, RunStep, ToolCall, UsageRecord
from runs.retention import REMOVED, RUNS, retention_set
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db
SAID = "said-in-the-run"


@pytest.fixture(autouse=True)
def at_once(settings: Any) -> None:
    """Rules begin when they are set."""
    settings.ERASURE_GRACE_DAYS = 0


def make_run(cast: Cast, *, days_ago: int, status: str = "completed", **values: Any) -> Run:
    """Make a run in whose every corner something was said."""
    at = timezone.now() - datetime.timedelta(days=days_ago)
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.create(
            tenant=cast.tenant,
            user_id=cast.actor("member").user_id,
            kind="conversation",
            model="extractive",
            status=status,
            answer="The answer.",
            finished_at=None if status in ("queued", "running", "parked") else at,
            request={"actor": {"kind": "user"}, "history": [SAID], "system": SAID, "calls": [SAID]},
            **values,
        )
        RunEvent.objects.create(tenant=cast.tenant, run=run, seq=1, kind="text", data={"text": SAID})
        RunStep.objects.create(tenant=cast.tenant, run=run, index=0, turn={"text": SAID})
        ToolCall.objects.create(
            tenant=cast.tenant,
            run=run,
            step=0,
            call_id="c",
            name="look",
            status="succeeded",
            arguments={"a": SAID},
            arguments_masked={"a": SAID},
            content=SAID,
            payload={"b": SAID},
            decision="allow",
            rule_id=5,
        )
        PendingDecision.objects.create(
            tenant=cast.tenant,
            run=run,
            step=0,
            call_id="c",
            name="look",
            kind="approval",
            status="approved",
            arguments={"a": SAID},
            edited_arguments={"a": SAID},
            reason=SAID,
            answer=SAID,
            expires_at=at,
        )
        UsageRecord.objects.create(
            tenant=cast.tenant, run_id=run.pk, step=0, kind="turn", provider="p", model="m"
        )
        ChunkRead.objects.create(
            tenant=cast.tenant, run_id=run.pk, chunk_id=1, document_id=1, document_name="D", tool="search"
        )
    return run


def said(cast: Cast, run: Run) -> str:
    """Return everything that the database still knows about a run, but for its answer."""
    with tenant_scope(cast.tenant.pk):
        found: list[Any] = [Run.objects.filter(pk=run.pk).values().get()]
        for model in (RunEvent, RunStep, ToolCall, PendingDecision):
            found += list(model.objects.filter(run=run).values())
    return str(found)


def rule(cast: Cast, days: int | None) -> None:
    with tenant_scope(cast.tenant.pk):
        retention_set(tenant=cast.tenant, actor=cast.actor("owner"), days=days)


def test_old_run_keeps_its_facts_and_nothing_that_was_said(cast: Cast) -> None:
    old, young = make_run(cast, days_ago=31), make_run(cast, days_ago=29)
    rule(cast, 30)
    assert removal_round(RUNS) == 1
    assert SAID not in said(cast, old)
    assert SAID in said(cast, young)
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.get(pk=old.pk)
        assert run.answer == "The answer."
        assert run.request == {"actor": {"kind": "user"}}
        call = ToolCall.objects.get(run=run)
        assert (call.name, call.status, call.decision, call.rule_id) == ("look", "succeeded", "allow", 5)
        assert call.content == call.arguments_shown == REMOVED
        assert UsageRecord.objects.filter(run_id=run.pk).exists()
        assert ChunkRead.objects.filter(run_id=run.pk).exists()
    assert removal_round(RUNS) == 0


@pytest.mark.parametrize("status", ["queued", "running", "parked"])
def test_run_that_goes_on_is_never_touched(cast: Cast, status: str) -> None:
    run = make_run(cast, days_ago=400, status=status)
    rule(cast, 1)
    assert removal_round(RUNS) == 0
    assert SAID in said(cast, run)


def test_without_a_rule_the_operators_default_holds(cast: Cast, settings: Any) -> None:
    run = make_run(cast, days_ago=31)
    assert removal_round(RUNS) == 0
    settings.RETENTION_DAYS = 30
    rule(cast, 0)  # The workspace keeps it for ever.
    assert removal_round(RUNS) == 0
    rule(cast, None)
    assert removal_round(RUNS) == 1
    assert SAID not in said(cast, run)


def test_many_runs_are_pruned_batch_by_batch(cast: Cast) -> None:
    for _ in range(5):
        make_run(cast, days_ago=31)
    rule(cast, 30)
    assert [removal_round(RUNS, batch=2) for _ in range(4)] == [2, 2, 1, 0]


def test_page_of_an_old_conversation_still_shows_its_answer(cast: Cast) -> None:
    run = make_run(cast, days_ago=31)
    user = cast.member.user
    with tenant_scope(cast.tenant.pk):
        conversation = Conversation.objects.create(
            tenant=cast.tenant, user=user, model="extractive", title="T"
        )
        turn = Turn.objects.create(
            tenant=cast.tenant,
            conversation=conversation,
            index=0,
            run=run,
            is_active=False,
            client_id=uuid.uuid4(),
        )
        Conversation.objects.filter(pk=conversation.pk).update(head=turn)
        Message.objects.create(tenant=cast.tenant, turn=turn, author="user", text="What is it?")
        Message.objects.create(tenant=cast.tenant, turn=turn, author="assistant", text="The answer.")
    rule(cast, 30)
    removal_round(RUNS)
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    shown = client.get(reverse("conversations:detail", args=[cast.tenant.slug, conversation.pk]))
    text = shown.content.decode()
    assert shown.status_code == 200
    assert "What is it?" in text
    assert "The answer." in text
    assert escape(REMOVED) in text
    assert SAID not in text


def test_only_owners_set_the_rule_and_it_is_on_record(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        with pytest.raises(Denied):
            retention_set(tenant=cast.tenant, actor=cast.actor("admin"), days=30)
        for days in (-1, 3651):
            with pytest.raises(Invalid):
                retention_set(tenant=cast.tenant, actor=cast.actor("owner"), days=days)
    client = Client()
    client.force_login(cast.owner.user, "django.contrib.auth.backends.ModelBackend")
    url = reverse("web:settings-retention", args=[cast.tenant.slug])
    assert "Kept forever" in client.get(url).content.decode()
    assert client.post(url, {"runs": "30"}).status_code == 302
    assert 'value="30"' in client.get(url).content.decode()
    assert client.post(url, {"runs": "-1"}).status_code == 422
    assert client.post(url, {"runs": ""}).status_code == 302
    with tenant_scope(cast.tenant.pk):
        events = AuditEvent.objects.filter(action="retention.set").order_by("pk")
        assert [e.data for e in events] == [
            {"kind": "runs", "before": None, "after": 30},
            {"kind": "runs", "before": 30, "after": None},
        ]
