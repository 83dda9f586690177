"""A key for chosen collections knows no other: tried over every address that names something of a collection."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.collections.models import Chunk, Collection, Document
from apps.conversations.models import Conversation, Turn
from basics.errors import Invalid
from runs.actors import actor_facts, actor_now
from runs.models import Run
from tenancy.actors import Actor
from tenancy.models import ApiKey
from tenancy.permissions import LIMITED_SCOPES
from tenancy.scope import tenant_scope
from tenancy.selectors import api_key_authenticate
from tenancy.services import api_key_create
from tests.factories import actor_of
from tests.permissions.rows import API, Row
from tests.permissions.test_matrix import ask
from tests.permissions.walking import each_row
from tests.permissions.world import Side, make_row

pytestmark = pytest.mark.django_db

OURS = "collections."


NAMING = [r for r in API if not r.is_stream and any(v.startswith(OURS) for v in r.ids.values())]


@pytest.fixture
def side(db: None) -> Side:
    return Side()


def limited(side: Side, collections: list[int], scopes: frozenset[str] = LIMITED_SCOPES) -> str:
    return api_key_create(
        tenant=side.tenant,
        actor=actor_of(side.people["owner"]),
        name="k",
        scopes=sorted(scopes),
        collections=collections,
    )[1]


def client_of(key: str) -> Client:
    return Client(raise_request_exception=False, headers={"Authorization": f"Bearer {key}"})


def actor_with(key: str) -> Actor:
    found = api_key_authenticate(key=key)
    assert found is not None
    return found[1]


@each_row(NAMING, of="side")
def test_what_is_below_another_collection_does_not_exist(row: Row, side: Side) -> None:
    other = make_row(Collection, side.tenant, side.user("owner"))
    client = client_of(limited(side, [other.pk]))
    response = ask(client, row, slug=side.tenant.slug, ids=side, role="owner")
    assert response.status_code == (404 if row.action in LIMITED_SCOPES else 403), response.content[:300]


def test_lists_and_searches_know_the_chosen_ones_alone(side: Side) -> None:
    mine = side.row("collections.Chunk", "owner")
    other = make_row(Collection, side.tenant, side.user("owner"), name="Closed")
    document = make_row(
        Document, side.tenant, side.user("owner"), collection=other, status="ready", name="secret.txt"
    )
    make_row(Chunk, side.tenant, side.user("owner"), collection=other, document=document, text="zebra")
    key = limited(side, [mine.collection_id])
    client = client_of(key)
    listed = client.get("/api/v1/collections").json()["results"]
    assert [row["id"] for row in listed] == [mine.collection_id]
    for body in ({"query": "zebra"}, {"query": "zebra", "collections": [other.pk]}):
        answer = client.post("/api/v1/search", body, content_type="application/json")
        assert b"secret.txt" not in answer.content
        assert answer.status_code in (200, 404)
    actor = actor_with(key)
    with tenant_scope(side.tenant.pk):
        assert set(Document.objects.visible_to(actor).values_list("collection_id", flat=True)) == {
            mine.collection_id
        }
        assert not Chunk.objects.visible_to(actor).filter(collection=other).exists()


def test_run_keeps_the_limit_of_the_key_that_asked(side: Side) -> None:
    key = limited(side, [7])
    run = Run(tenant=side.tenant, user=side.user("owner"), request={"actor": actor_facts(actor_with(key))})
    with tenant_scope(side.tenant.pk):
        assert actor_now(run).collections == frozenset({7})


def test_nothing_is_seen_when_all_chosen_collections_are_gone(side: Side) -> None:
    """The limit does not vanish with them."""
    side.row("collections.Chunk", "owner")
    with tenant_scope(side.tenant.pk):
        gone = Collection.objects.create(
            tenant=side.tenant, name="Gone", space=side.row("collections.Collection", "owner").space
        )
        key = limited(side, [gone.pk])
        gone.delete()
        assert not Collection.objects.visible_to(actor_with(key)).exists()


def test_conversations_in_which_others_asked_are_not_the_keys(side: Side) -> None:
    person = side.user("owner")
    key = limited(side, [side.row("collections.Collection", "owner").pk])
    actor = actor_with(key)

    def asked(facts: dict[str, Any]) -> Conversation:
        conversation = make_row(Conversation, side.tenant, person, user=person, model="extractive")
        run = make_row(Run, side.tenant, person, user=person, model="extractive", request={"actor": facts})
        make_row(Turn, side.tenant, person, conversation=conversation, run=run)
        found: Conversation = conversation
        return found

    own = asked(actor_facts(actor))
    by_hand = asked({"kind": "user", "api_key_id": None})
    older = asked({})
    with tenant_scope(side.tenant.pk):
        seen = set(Conversation.objects.visible_to(actor).values_list("pk", flat=True))
    assert own.pk in seen
    assert not seen & {by_hand.pk, older.pk}


@pytest.mark.parametrize(
    "scope", ["audit.read", "run.read", "collection.write", "tool.manage", "member.read"]
)
def test_scope_that_reaches_beyond_is_refused(side: Side, scope: str) -> None:
    with pytest.raises(Invalid, match="reaches beyond"):
        limited(side, [1], frozenset({"collection.read", scope}))
    with pytest.raises(Invalid, match="at least one collection"):
        limited(side, [])
    with tenant_scope(side.tenant.pk):
        assert not ApiKey.objects.exists()
