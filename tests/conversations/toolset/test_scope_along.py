"""What a call may search is read as it is let in: what that tells is what is told when it is asked for by itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from django.db.models import QuerySet

from apps.conversations.models import Conversation
from apps.conversations.transcript import selectors
from apps.conversations.transcript.selectors import ScopeAlong, run_scope_now
from apps.conversations.turns.conversations import conversation_create
from apps.tools.models import ToolGrant
from apps.tools.toolset.rights import caller_and_rules, tool_rules
from apps.tools.toolset.selectors import guard_for, subject_of
from basics.errors import Denied
from runs.actors import actor_facts, actor_now
from runs.models import Run
from tenancy.actors import Actor
from tenancy.models import ApiKey
from tenancy.scope import tenant_scope
from tenancy.selectors import api_key_authenticate
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.factories import make_collection
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)
SEARCH = "search_documents"


@pytest.fixture(autouse=True)
def _calls_begin_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than that from letting a call in to running it."""
    monkeypatch.setattr(selectors, "FRESH_S", PATIENCE_S)


def key_of(cast: Cast, collections: list[int] | None) -> Actor:
    scopes = ["conversation.write", "collection.read", "search.run", "tool.run"]
    _, secret = api_key_create(
        tenant=cast.tenant, actor=cast.actor("owner"), name="k", scopes=scopes, collections=collections
    )
    found = api_key_authenticate(key=secret)
    assert found is not None
    return found[1]


def stored(key: Actor) -> QuerySet[ApiKey]:
    assert key.api_key_id is not None
    return ApiKey.objects.filter(pk=key.api_key_id)


def told(found: tuple[Actor, list[Any]] | None) -> Any:
    assert found is not None
    actor, rows = found
    return actor, actor.name, [(row.__dict__ | {"_state": None}, row.space.pk) for row in rows]


def test_scope_that_is_read_along_is_the_scope(cast: Cast) -> None:
    near, far = make_collection(cast.tenant, "Near"), make_collection(cast.tenant, "Far")
    with tenant_scope(cast.tenant.pk):
        left = key_of(cast, [near.pk])  # with nothing of what it was limited to
        stored(left).update(collections=[])
        left = replace(left, collections=frozenset())
        callers = [cast.actor("member"), key_of(cast, None), key_of(cast, [far.pk]), left]
        asker = cast.actor("member")
        everywhere = conversation_create(tenant=cast.tenant, actor=asker)
        chosen = conversation_create(tenant=cast.tenant, actor=asker, collections=[near.pk])
        names = []
        for caller in callers:
            run = Run(tenant=cast.tenant, user_id=caller.user_id, request={"actor": actor_facts(caller)})
            for conversation in (everywhere, chosen, None):
                along = let_in(run, conversation)
                assert told(along.take()) == told(run_scope_now(run, conversation))
                assert actor_now(run) == caller
                names.append([row.name for row in (along.take() or (None, []))[1]])
        assert names == [
            *(["Far", "Near"], ["Near"], ["Far", "Near"]),
            *(["Far", "Near"], ["Near"], ["Far", "Near"]),
            *(["Far"], [], ["Far"]),
            *([], [], []),
        ]


def let_in(run: Run, conversation: Conversation | None) -> ScopeAlong:
    """Return what was read as a search was let in; another tool reads nothing along."""
    along = ScopeAlong(run, conversation, [SEARCH])
    guard = guard_for(actor=actor_now(run), scope={}, along=along)
    guard._again("calculate")
    assert along.take() is None
    guard._again(SEARCH)
    return along


def test_rules_are_the_same_with_and_without_it(cast: Cast) -> None:
    make_collection(cast.tenant, "Near")
    make_collection(cast.tenant, "Far")
    with tenant_scope(cast.tenant.pk):
        ToolGrant.objects.create(
            tenant=cast.tenant,
            effect="deny",
            target_kind="tool",
            target=SEARCH,
            subject_kind="role",
            subject="owner",
        )
        key = key_of(cast, None)
        run = Run(tenant=cast.tenant, user_id=key.user_id, request={"actor": actor_facts(key)})
        for caller in (cast.actor("member"), key):
            plain = tool_rules(actor=caller, subject=subject_of(caller))
            for along in (None, ScopeAlong(run, None, [SEARCH])):
                actor, subject, rules = caller_and_rules(caller, along)
                assert (actor, subject) == (caller, subject_of(caller))
                assert rules.entries == plain.entries
                assert rules.limited == plain.limited
                assert [r.grant for r in rules_of(rules.policy)] == [r.grant for r in rules_of(plain.policy)]
        assert any(r.grant.effect == "deny" for r in rules_of(rules.policy))


def rules_of(policy: Any) -> list[Any]:
    return [*policy._all, *policy._patterns, *chain(*policy._by_tool.values(), *policy._by_group.values())]


def test_whoever_has_lost_access_is_let_in_nowhere(cast: Cast) -> None:
    make_collection(cast.tenant, "Near")
    with tenant_scope(cast.tenant.pk):
        key = key_of(cast, None)
        run = Run(tenant=cast.tenant, user_id=key.user_id, request={"actor": actor_facts(key)})
        along = ScopeAlong(run, None, [SEARCH])
        guard = guard_for(actor=key, scope={}, along=along)
        stored(key).update(revoked_at="2026-01-01T00:00Z")
        for ask in (lambda: guard._again(SEARCH), lambda: run_scope_now(run, None), lambda: actor_now(run)):
            with pytest.raises(Denied, match="revoked or has expired"):
                ask()
        assert along.take() is None
        stored(key).update(revoked_at=None, expires_at="2026-01-01T00:00Z")
        with pytest.raises(Denied, match="revoked or has expired"):
            guard._again(SEARCH)
        stored(key).update(expires_at=None)
        cast.owner.delete()
        with pytest.raises(Denied, match="no longer a member"):
            guard._again(SEARCH)
