"""Rows from conversations and feedback: one's own, redacted, and never more than the person may see."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client

from apps.conversations.models import Conversation, Feedback, Message, Turn
from apps.datasets.collect import services as collect_services
from apps.datasets.models import DatasetRow
from apps.datasets.rows import dataset_services
from basics.errors import Denied, Invalid, Missing
from runs.models import Run, ToolCall
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.markup import flat
from tests.permissions.world import make_row

pytestmark = pytest.mark.django_db


def test_an_answer_becomes_a_row_to_review_without_its_personal_data(cast: Cast) -> None:
    person = cast.user("member")
    run = make_row(Run, cast.tenant, person, model="extractive", status="completed")
    with tenant_scope(cast.tenant.pk):
        talk = Conversation.objects.create(tenant=cast.tenant, user=person, model="extractive")
        turn = Turn.objects.create(
            tenant=cast.tenant, conversation=talk, run=run, index=1, client_id=uuid.uuid4(), is_active=False
        )
        Conversation.objects.filter(pk=talk.pk).update(head=turn)
        for author, text in (("user", "Whom do I ask?"), ("assistant", "Ask jane@acme-corp.com.")):
            Message.objects.create(tenant=cast.tenant, turn=turn, author=author, text=text)
        (shown,) = collect_services.turns_collect(actor=cast.actor("member"), conversation_pk=talk.pk)
        assert shown.changed == [("answer", "Ask jane@acme-corp.com.", "Ask [EMAIL].")]
        dataset = dataset_services.dataset_create(
            tenant=cast.tenant, actor=cast.actor("member"), name="Asked"
        )
        with pytest.raises(Missing):
            collect_services.turns_collect(actor=cast.actor("admin"), conversation_pk=talk.pk)
        with pytest.raises(Invalid):
            collect_services.rows_collect(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                dataset=dataset,
                conversation=talk,
                turn_pks=[],
            )
        collect_services.rows_collect(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            dataset=dataset,
            conversation=talk,
            turn_pks=[turn.pk],
        )
        row = DatasetRow.objects.get(dataset=dataset)
    assert (row.answer, row.status, row.tags) == ("Ask [EMAIL].", "review", ["conversation"])
    assert row.lineage["redacted"] == [{"kind": "email", "field": "answer"}]


def judged(cast: Cast, role: str, answer: str) -> Feedback:
    """Return what a person has said about an answer of theirs; call inside the tenant's scope."""
    person = cast.user(role)
    run = make_row(Run, cast.tenant, person, model="extractive", status="completed")
    talk = Conversation.objects.create(tenant=cast.tenant, user=person, model="extractive")
    turn = Turn.objects.create(
        tenant=cast.tenant, conversation=talk, run=run, index=1, client_id=uuid.uuid4(), is_active=False
    )
    make_row(ToolCall, cast.tenant, person, run=run, user_id=person.pk, arguments={"query": "private"})
    for author, text in (("user", "Whom do I ask?"), ("assistant", answer)):
        Message.objects.create(tenant=cast.tenant, turn=turn, author=author, text=text)
    row: Feedback = Feedback.objects.create(
        tenant=cast.tenant, turn=turn, user=person, verdict="bad", reason="wrong"
    )
    return row


def test_judged_answers_become_rows_of_what_the_actor_may_read(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        mine = judged(cast, "member", "Ask jane@acme-corp.com.")
        theirs = judged(cast, "admin", "Ask the archive.")
        who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
        dataset = dataset_services.dataset_create(**who, name="Judged")
        (shown,) = collect_services.feedback_collect(actor=who["actor"], feedback_pks=[mine.pk, theirs.pk])
        assert shown.after.answer == "Ask [EMAIL]."
        with pytest.raises(Invalid):
            collect_services.feedback_rows_collect(**who, dataset=dataset, feedback_pks=[theirs.pk])
        with pytest.raises(Denied):
            collect_services.feedback_rows_collect(
                tenant=cast.tenant, actor=cast.actor("viewer"), dataset=dataset, feedback_pks=[mine.pk]
            )
        made = collect_services.feedback_rows_collect(
            tenant=cast.tenant, actor=cast.actor("admin"), dataset=dataset, feedback_pks=[mine.pk, theirs.pk]
        )
        rows = list(DatasetRow.objects.filter(pk__in=made.created).order_by("answer"))
    assert [row.answer for row in rows] == ["Ask [EMAIL].", "Ask the archive."]
    assert {row.status for row in rows} == {"review"}
    assert [row.steps for row in rows] == [[], []]
    assert rows[0].tags == ["feedback", "bad"]
    assert rows[0].lineage["reason"] == "wrong"


def test_pages_show_what_is_hidden_and_add_what_is_chosen(cast: Cast) -> None:
    client = Client()
    client.force_login(cast.user("member"), "django.contrib.auth.backends.ModelBackend")
    root = f"/t/{cast.tenant.slug}/datasets"
    with tenant_scope(cast.tenant.pk):
        said = judged(cast, "member", "Ask jane@acme-corp.com.")
        Conversation.objects.filter(pk=said.turn.conversation_id).update(head=said.turn)
        foreign = judged(cast, "admin", "Ask the archive.")
        dataset = dataset_services.dataset_create(tenant=cast.tenant, actor=cast.actor("member"), name="A")
    talk = f"{root}/from-conversation/{said.turn.conversation_id}/"
    page = client.get(talk, {"turn": said.turn_id}).content.decode()
    assert "<del>jane@acme-corp.com.</del><ins>[EMAIL].</ins>" in flat(page)
    assert "checked" in page
    listed = client.get(f"{root}/from-feedback/", {"verdict": "bad", "reason": "wrong"})
    assert "<ins>[EMAIL].</ins>" in flat(listed.content.decode())
    assert "the archive" not in listed.content.decode()
    assert client.get(f"{root}/from-conversation/{foreign.turn.conversation_id}/").status_code == 404
    unchosen = client.post(talk, {"pick": said.turn_id}, follow=True)
    assert "Choose a dataset for the rows." in unchosen.content.decode()
    added = client.post(talk, {"pick": said.turn_id, "dataset": dataset.pk}, follow=True)
    assert "1 new, waiting for review." in added.content.decode()
    again = client.post(f"{root}/from-feedback/", {"pick": foreign.pk, "dataset": dataset.pk}, follow=True)
    assert "Choose at least one judged answer." in again.content.decode()
    with tenant_scope(cast.tenant.pk):
        assert DatasetRow.objects.filter(dataset=dataset).count() == 1
