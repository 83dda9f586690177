"""Rows from conversations: one's own, redacted, and never more than the person may see."""

from __future__ import annotations

import uuid

import pytest

from apps.conversations.models import Conversation, Message, Turn
from apps.datasets import services
from apps.datasets.models import DatasetRow
from basics.errors import Invalid, Missing
from runs.models import Run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.permissions.world import make_row

pytestmark = pytest.mark.django_db


def test_an_answer_becomes_a_row_to_review_without_its_personal_data(cast: Cast) -> None:
    person = cast.user("member")
    run = make_row(Run, cast.tenant, person, model="extractive", status="completed")
    with tenant_scope(cast.tenant.pk):
        talk = Conversation.objects.create(tenant=cast.tenant, user=person, model="extractive")
        turn = Turn.objects.create(tenant=cast.tenant, conversation=talk, run=run, index=1, client_id=uuid.uuid4(), is_active=False)  # fmt: skip
        Conversation.objects.filter(pk=talk.pk).update(head=turn)
        for author, text in (("user", "Whom do I ask?"), ("assistant", "Ask jane@acme-corp.com.")):
            Message.objects.create(tenant=cast.tenant, turn=turn, author=author, text=text)
        (shown,) = services.turns_collect(actor=cast.actor("member"), conversation_pk=talk.pk)
        assert shown.changed == [("answer", "Ask jane@acme-corp.com.", "Ask [EMAIL].")]
        dataset = services.dataset_create(
            tenant=cast.tenant, actor=cast.actor("member"), name="Asked"
        )
        with pytest.raises(Missing):
            services.turns_collect(actor=cast.actor("admin"), conversation_pk=talk.pk)
        with pytest.raises(Invalid):
            services.rows_collect(tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset, conversation=talk, turn_pks=[])  # fmt: skip
        services.rows_collect(tenant=cast.tenant, actor=cast.actor("member"), dataset=dataset, conversation=talk, turn_pks=[turn.pk])  # fmt: skip
        row = DatasetRow.objects.get(dataset=dataset)
    assert (row.answer, row.status, row.tags) == ("Ask [EMAIL].", "review", ["conversation"])
    assert row.lineage["redacted"] == [{"kind": "email", "field": "answer"}]
