"""Titles, search, feedback, states and the rule that deletes old conversations."""

from __future__ import annotations

import datetime
import json
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.utils import timezone

from apps.conversations.feedback import services as feedback_services
from apps.conversations.feedback.selectors import feedback_list
from apps.conversations.models import Conversation, Feedback, Message, Turn
from apps.conversations.rules import services as rules_services
from apps.conversations.transcript import selectors
from apps.conversations.transcript.locks import title_of
from apps.conversations.transcript.search import conversation_find
from apps.conversations.turns import conversations, drafts, titles
from apps.conversations.turns.tasks import conversation_title
from basics.errors import Conflict, Denied, Invalid, Missing
from erasure.removal import removal_round
from jobs.context import LeaseLost
from jobs.models import Job
from jobs.runner import _finish
from jobs.services import job_enqueue
from runs.models import Run, RunStatus, UsageRecord
from runs.services import Completion
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.conversations.branches.test_branches import act, end, loaded
from tests.conversations.support import ask, fresh, title_made
from tests.runs.support import take
from tests.statements import statements_noted
from toolloop.tokens import Usage

pytestmark = pytest.mark.django_db(transaction=True)
COUNTS: dict[str, int] = json.loads(Path(__file__).with_name("statement_counts.json").read_text())


def find(cast: Cast, query: str, role: str = "member") -> list[tuple[int, str]]:
    with tenant_scope(cast.actor(role).tenant_id):
        rows = conversation_find(actor=cast.actor(role), query=query)
        return [(row.pk, row.excerpt_html) for row in rows]


def test_search_finds_words_of_questions_and_answers_marked_and_escaped(cast: Cast) -> None:
    one = end(ask(cast, "What is the duty on cars?"), "Cars pay 2 < 3 percent & more.")
    two = end(ask(cast, "Notice period?"), "Thirty days.")
    assert find(cast, "PERCENT") == [
        (one.conversation_id, "Cars pay 2 &lt; 3 <mark>percent</mark> &amp; more")
    ]
    assert [pk for pk, _ in find(cast, "noti")] == [two.conversation_id]
    assert [pk for pk, _ in find(cast, "notice thirty")] == []
    with tenant_scope(cast.tenant.pk):
        Conversation.objects.filter(pk=two.conversation_id).update(title="Leases")
    assert find(cast, "lease") == [(two.conversation_id, "")]


@pytest.mark.parametrize("query", ["", "   ", "&|!()':*", "'; DROP TABLE x; --", "\\", "a' & 'b", "<->"])
def test_search_takes_any_characters(cast: Cast, query: str) -> None:
    end(ask(cast, "Notice period?"), "Thirty days.")
    assert find(cast, query) == []


def test_search_is_over_ones_own(cast: Cast) -> None:
    end(ask(cast, "Notice period?"), "Thirty days.")
    for role in ("owner", "admin", "viewer", "outsider"):
        assert find(cast, "thirty", role) == []
    with tenant_scope(cast.tenant.pk), pytest.raises(Invalid):
        conversation_find(actor=cast.actor("member"), query="x" * 201)


def test_feedback_is_replaced_withdrawn_and_seen_by_who_may(cast: Cast) -> None:
    turn = end(ask(cast), "So.")
    give, undo = feedback_services.feedback_give, feedback_services.feedback_withdraw
    act(cast, give, turn, verdict="bad")
    act(cast, give, turn, verdict="bad", reason="wrong", comment=" No.\x00 ")
    with tenant_scope(cast.tenant.pk):
        row = Feedback.objects.get()
        assert (row.verdict, row.reason, row.comment) == ("bad", "wrong", "No.")
        for role, count in (("member", 1), ("owner", 1), ("admin", 1), ("viewer", 0)):
            assert len(feedback_list(actor=cast.actor(role))) == count
        assert not feedback_list(actor=cast.actor("member"), verdict="good")
        with pytest.raises(Missing):
            give(tenant=cast.tenant, actor=cast.actor("owner"), turn=loaded(cast, turn)[1], verdict="good")
    with tenant_scope(cast.other_tenant.pk):
        assert not feedback_list(actor=cast.actor("outsider"))
    for wrong in (
        {"verdict": "great"},
        {"verdict": "good", "reason": "wrong"},
        {"verdict": "good", "comment": "x" * 4001},
    ):
        with pytest.raises(Invalid):
            act(cast, give, turn, **wrong)
    act(cast, undo, turn)
    act(cast, undo, turn)
    with tenant_scope(cast.tenant.pk):
        assert Feedback.objects.count() == 0
        assert AuditEvent.objects.filter(action__startswith="feedback.").count() == 3
    with pytest.raises(Conflict):
        act(cast, give, ask(cast, "Running?"), verdict="good")


def test_state_of_a_conversation_in_the_list(cast: Cast) -> None:
    turn = ask(cast)
    actor = cast.actor("member")

    def state() -> str:
        with tenant_scope(cast.tenant.pk):
            return selectors.live_state(selectors.conversation_list(actor=actor).get())

    assert state() == "running"
    with tenant_scope(cast.tenant.pk):
        Run.objects.filter(pk=turn.run_id).update(status=RunStatus.PARKED)
    assert state() == "waiting"
    end(turn, "So.")
    with tenant_scope(cast.tenant.pk):
        Run.objects.filter(pk=turn.run_id).update(finished_at=timezone.now())
    assert state() == "done"
    with tenant_scope(cast.tenant.pk):
        for role in ("owner", "member"):
            assert state() == "done"
            drafts.conversation_seen(
                tenant=cast.tenant, actor=cast.actor(role), conversation=turn.conversation
            )
    assert state() == ""
    with tenant_scope(cast.tenant.pk):
        Run.objects.filter(pk=turn.run_id).update(status=RunStatus.FAILED)
    assert state() == "failed"


@pytest.fixture
def model_titles(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A model that names everything “Duties on cars”; returns what it was asked."""
    asked: list[dict[str, Any]] = []

    class Asking:
        async def answer(self, in_db: Any) -> Completion:
            return Completion(None, ' "Duties on cars."\n', Usage(), 0.001)

    def prepare(**values: Any) -> Asking:
        asked.append(values)
        return Asking()

    monkeypatch.setattr(titles, "completion_prepare", prepare)
    return asked


def named(cast: Cast, turn: Turn) -> str:
    with tenant_scope(cast.tenant.pk):
        title_made(cast, turn)
    title: str = fresh(turn).conversation.title
    return title


def test_model_names_a_conversation_unless_somebody_has(cast: Cast, model_titles: Any) -> None:
    turn = end(ask(cast), "So.")
    assert named(cast, turn) == title_of("What is the duty on cars?")  # extractive writes no titles
    with tenant_scope(cast.tenant.pk):
        Run.objects.update(model="openai/gpt-5")
        rules_services.rules_set(tenant=cast.tenant, actor=cast.actor("owner"), days=None, makes_titles=False)
    assert named(cast, turn) == title_of("What is the duty on cars?")
    assert model_titles == []
    with tenant_scope(cast.tenant.pk):
        rules_services.rules_set(tenant=cast.tenant, actor=cast.actor("owner"), days=None, makes_titles=True)
    assert named(cast, turn) == "Duties on cars"
    assert (model_titles[0]["purpose"], model_titles[0]["attribution"]) == (
        "title",
        {"conversation": turn.conversation_id},
    )
    with tenant_scope(cast.tenant.pk):
        conversations.conversation_rename(
            tenant=cast.tenant, actor=cast.actor("member"), conversation=turn.conversation, title="Mine"
        )
    assert named(cast, turn) == "Mine"
    assert len(model_titles) == 1


async def test_title_is_kept_with_the_end_of_its_job_or_not_at_all(
    cast: Cast, model_titles: Any, lane_threads: Executor
) -> None:
    turn = await sync_to_async(end)(await sync_to_async(ask)(cast), "So.")

    def queued() -> Job:
        with tenant_scope(cast.tenant.pk):
            Run.objects.update(model="openai/gpt-5")
            return job_enqueue(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                kind=titles.JOB_KIND,
                payload={"turn_id": turn.pk},
            )

    def stored() -> tuple[str, str, int]:
        job.refresh_from_db()
        return (
            job.status,
            Conversation.objects.get().title,
            AuditEvent.objects.filter(action="conversation.title").count(),
        )

    with tenant_scope(cast.tenant.pk):
        job = await sync_to_async(queued)()
        lost = await sync_to_async(take)(job, "w1", lane_threads)
        ctx = await sync_to_async(take)(job, "w2", lane_threads)
        with pytest.raises(LeaseLost):
            await conversation_title(lost, **job.payload)
        assert await lost.in_db(stored) == ("running", title_of("What is the duty on cars?"), 0)
        with statements_noted() as sent:
            await conversation_title(ctx, **job.payload)
            await ctx.in_db(_finish, ctx, job, None)
        assert len(sent) == COUNTS["title"]
        assert await ctx.in_db(stored) == ("succeeded", "Duties on cars", 1)


def test_old_conversations_are_deleted_with_their_runs_and_usage_stays(cast: Cast, settings: Any) -> None:
    old, active, new = end(ask(cast, "Old?"), "1."), ask(cast, "Running?"), end(ask(cast), "2.")
    with tenant_scope(cast.tenant.pk):
        UsageRecord.objects.create(
            tenant=cast.tenant, run_id=old.run_id, kind="turn", provider="x", model="x", step=0
        )
        long_ago = timezone.now() - datetime.timedelta(days=31)
        Conversation.objects.exclude(pk=new.conversation_id).update(updated_at=long_ago)
    settings.CONVERSATION_DAYS, settings.ERASURE_GRACE_DAYS = 0, 0
    assert removal_round(rules_services.CONVERSATIONS) == 0
    settings.CONVERSATION_DAYS = 30
    with tenant_scope(cast.tenant.pk):
        for role in ("member", "admin"):
            with pytest.raises(Denied):
                rules_services.rules_set(
                    tenant=cast.tenant, actor=cast.actor(role), days=1, makes_titles=True
                )
        with pytest.raises(Invalid):
            rules_services.rules_set(
                tenant=cast.tenant, actor=cast.actor("owner"), days=-1, makes_titles=True
            )
        rules_services.rules_set(tenant=cast.tenant, actor=cast.actor("owner"), days=0, makes_titles=True)
    assert removal_round(rules_services.CONVERSATIONS) == 0
    with tenant_scope(cast.tenant.pk):
        rules_services.rules_set(tenant=cast.tenant, actor=cast.actor("owner"), days=None, makes_titles=True)
    assert removal_round(rules_services.CONVERSATIONS) == 1
    with tenant_scope(cast.tenant.pk):
        left = set(Conversation.objects.values_list("pk", flat=True))
        assert left == {active.conversation_id, new.conversation_id}
        assert not Run.objects.filter(pk=old.run_id).exists()
        assert not Message.objects.filter(text="Old?").exists()
        assert UsageRecord.objects.filter(run_id=old.run_id).count() == 1
        assert AuditEvent.objects.filter(action="conversation.expire").count() == 1


def test_rest_reads_sets_and_previews_the_rules(cast: Cast, settings: Any) -> None:
    settings.CONVERSATION_DAYS, settings.ERASURE_GRACE_DAYS = 0, 0
    old, other, active = end(ask(cast, "Old?"), "1."), end(ask(cast, "Old?", role="owner"), "1."), ask(cast)
    new = end(ask(cast), "2.")
    long_ago = timezone.now() - datetime.timedelta(days=31)
    with tenant_scope(cast.tenant.pk):
        Conversation.objects.exclude(pk=new.conversation_id).update(updated_at=long_ago)
        scopes = ["conversation.*", "retention.*", "audit.read"]
        with pytest.raises(Invalid):  # what deletes is named in full
            api_key_create(tenant=cast.tenant, actor=cast.actor("owner"), name="x", scopes=scopes)
        scopes[1] = "retention.manage"
        _, key = api_key_create(tenant=cast.tenant, actor=cast.actor("owner"), name="x", scopes=scopes)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    rules, preview = "/api/v1/conversations/rules", "/api/v1/conversations/rules/preview"
    assert client.get(rules).json() == {
        "keep_days": None,
        "days": 0,
        "makes_titles": True,
        "support_model": "",
    }
    assert client.get(preview).json()["count"] == 0
    told = client.get(preview, {"keep_days": 30}).json()
    assert (told["days"], told["count"], told["users"]) == (30, 2, 2)
    assert told["oldest_at"].startswith(long_ago.strftime("%Y-%m-%dT%H:%M"))
    assert client.get(preview, {"keep_days": 32}).json()["count"] == 0
    for wrong in (-1, 3651, "soon"):
        assert client.get(preview, {"keep_days": wrong}).status_code == 400
        put = client.put(rules, {"keep_days": wrong}, content_type="application/json")
        assert put.status_code == 400
    unchanged = client.put(rules, {}, content_type="application/json").json()
    assert (unchanged["keep_days"], unchanged["makes_titles"]) == (None, True)
    put = client.put(rules, {"keep_days": 30, "makes_titles": False}, content_type="application/json")
    assert put.json() == {"keep_days": 30, "days": 30, "makes_titles": False, "support_model": ""}
    put = client.put(rules, {"keep_days": 30}, content_type="application/json")
    assert put.json()["makes_titles"] is False
    assert removal_round(rules_services.CONVERSATIONS) == told["count"]
    with tenant_scope(cast.tenant.pk):
        left = set(Conversation.objects.values_list("pk", flat=True))
        assert left == {active.conversation_id, new.conversation_id}
        assert left.isdisjoint({old.conversation_id, other.conversation_id})
