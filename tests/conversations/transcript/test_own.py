"""Statements that are written by hand let in whom ``visible_to`` lets in: with each question, stream and end of an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from apps.conversations.models import Conversation
from apps.conversations.transcript.locks import conversation_locked
from apps.conversations.transcript.selectors import stream_target
from apps.conversations.turns.conversations import conversation_create
from apps.conversations.turns.drafts import conversation_seen
from basics.errors import Missing
from tenancy.actors import Actor
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import ask

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def is_let_in(work: Callable[..., Any], *args: Any, **named: Any) -> bool:
    try:
        with transaction.atomic():
            work(*args, **named)
    except Missing:
        return False
    return True


@pytest.mark.django_db
def test_own_conversations_are_those_that_visible_to_returns(cast: Cast) -> None:
    talks: list[Conversation] = []
    for role, tenant in (("member", cast.tenant), ("admin", cast.tenant), ("outsider", cast.other_tenant)):
        with tenant_scope(tenant.pk):
            talks += [conversation_create(tenant=tenant, actor=cast.actor(role)) for _ in range(2)]
    runs = {}
    for talk, role in zip(talks[:4], ("member", "member", "admin", "admin"), strict=True):
        with tenant_scope(cast.tenant.pk):
            runs[talk.pk] = ask(cast, conversation=talk, role=role).run_id
    with tenant_scope(cast.tenant.pk):
        Conversation.objects.filter(pk__in=[talks[1].pk, talks[3].pk]).update(removed_at=timezone.now())
    member = cast.actor("member")
    key = replace(member, kind="api_key", api_key_id=1)
    actors: list[Actor] = [
        member,
        cast.actor("admin"),
        cast.actor("outsider"),
        key,
        replace(key, collections=frozenset({1})),
        replace(key, user_id=None),
    ]
    let_in = 0
    for scope in (cast.tenant, cast.other_tenant):
        for actor in actors:
            for talk in talks:
                with tenant_scope(scope.pk):
                    row = Conversation.objects.visible_to(actor).filter(pk=talk.pk)
                    is_visible = row.exists()
                    let_in += is_visible
                    assert is_let_in(conversation_locked, actor, talk.pk) == is_visible
                    if is_visible:
                        with transaction.atomic():
                            assert vars(conversation_locked(actor, talk.pk)).keys() == vars(row.get()).keys()
                    Conversation.objects.filter(pk=talk.pk).update(seen_at=LONG_AGO)
                    conversation_seen(tenant=scope, actor=actor, conversation=talk)
                    seen = Conversation.objects.filter(pk=talk.pk, seen_at__gt=LONG_AGO).exists()
                    assert seen == is_visible
                    if (run := runs.get(talk.pk)) and actor.collections is None:
                        watch: Any = {"actor": actor, "conversation_pk": talk.pk, "run_id": run}
                        assert is_let_in(stream_target, **watch) == is_visible
    assert let_in == 5, "one each of both members and of the key, and the stranger's two in their workspace"
