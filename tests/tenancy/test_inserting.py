"""Rows of several tables by one statement: what is stored is what the ORM stores, and nothing of another workspace changes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from django.db import IntegrityError, connection, models, transaction
from django.utils import timezone

from apps.conversations.models import Conversation, Message, Turn
from jobs.models import Job
from runs.models import Run
from tenancy.inserting import rows_insert
from tenancy.scope import tenant_scope
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def new_id(model: type[models.Model]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(%s)", [f"{model._meta.db_table}_id_seq"])
        return int(cursor.fetchone()[0])


def stored(row: Any, **without: Any) -> Mapping[str, Any]:
    """Return a row's columns as the database has them, without what tells two such rows apart."""
    found = type(row).objects.filter(pk=row.pk).values().get()
    return {name: value for name, value in found.items() if name not in ("id", *without)}


def refused(rows: list[Any]) -> None:
    rows_insert(rows)
    connection.check_constraints()


def test_rows_are_stored_as_the_orm_stores_them(cast: Cast) -> None:
    tenant, moment = cast.tenant, timezone.now()
    with tenant_scope(tenant.pk):
        talk = Conversation.objects.create(
            tenant=tenant, user=cast.user("member"), model="extractive", title="A"
        )

        def question() -> list[Any]:
            # Columns with a value, with NULL, with Python's default, and with the database's, given and left.
            job = Job(pk=new_id(Job), tenant=tenant, kind="x", payload={"a": [1, "é"]}, woken_at=moment)
            run = Run(
                pk=new_id(Run), tenant=tenant, kind="test", model="extractive", request={"b": {"c": None}}
            )
            run.job = job
            turn = Turn(pk=new_id(Turn), tenant=tenant, conversation=talk, run=run, client_id=uuid.uuid4())
            turn.index, turn.is_active = turn.pk % 10_000, False
            said = Message(
                pk=new_id(Message), tenant=tenant, turn=turn, author="user", text="50 % of «%s» {}"
            )
            return [job, run, turn, said]

        ours, theirs = question(), question()
        for row in theirs:
            row.save(force_insert=True)
        talk.title, talk.head, talk.archived_at, talk.draft = 'B "%s"', ours[2], None, "stays in memory"
        rows_insert(ours, changed=talk, fields=("title", "head", "archived_at"))
        own = {"job_id", "run_id", "turn_id", "index", "client_id", "created_at", "run_after"}
        for mine, other in zip(ours, theirs, strict=True):
            assert stored(mine, **dict.fromkeys(own)) == stored(other, **dict.fromkeys(own))
            assert not mine._state.adding
            for field in mine._meta.db_returning_fields:  # what the database filled in is known
                assert getattr(mine, field.attname) == getattr(
                    type(mine).objects.get(pk=mine.pk), field.attname
                )
        talk.refresh_from_db()
        assert (talk.title, talk.head_id, talk.draft) == ('B "%s"', ours[2].pk, "")
        # A row that refers to nothing takes all others with it.
        job, run, turn, said = question()
        turn.conversation_id = 10**15
        with pytest.raises(IntegrityError), transaction.atomic():
            refused([job, run, turn, said])
        assert not Job.objects.filter(pk=job.pk).exists()
        # What nobody refers to needs no id of its own before.
        unknown = [Job(tenant=tenant, kind=kind, payload={}) for kind in ("x", "y")]
        rows_insert(unknown)
        assert [Job.objects.get(pk=row.pk).kind for row in unknown] == ["x", "y"]
        talk.title = "from outside"
    with tenant_scope(cast.other_tenant.pk):
        job = Job(pk=new_id(Job), tenant=cast.other_tenant, kind="x", payload={})
        rows_insert([job], changed=talk, fields=("title",))
    with tenant_scope(tenant.pk):
        assert Conversation.objects.get(pk=talk.pk).title == 'B "%s"'
