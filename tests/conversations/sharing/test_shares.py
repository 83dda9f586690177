"""Shared conversations: a link shows what was said when it was made, and never more of a source than its reader may see."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from apps.collections.models import Document
from apps.conversations.branches import services as branches_services
from apps.conversations.models import Conversation, ConversationShare, Turn
from apps.conversations.sharing import exports
from apps.conversations.sharing import services as sharing_services
from apps.conversations.sharing.selectors import share_list, shared_view
from apps.conversations.transcript import selectors
from apps.conversations.turns import conversations
from basics.errors import Conflict, Missing
from runs.withheld import HIDDEN
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, answer, ask
from toolloop.providers.scripted import call, calls, says

pytestmark = pytest.mark.django_db(transaction=True)
QUOTE = "Cars of heading 8703 pay a duty of 2.5 percent."


@pytest.fixture
async def told(cast: Cast, library: Library, found: Any, lane_threads: Executor, monkeypatch: Any) -> Turn:
    """A finished answer that cites the library."""
    turn: Turn = await sync_to_async(ask)(cast)
    await answer(
        turn,
        lane_threads,
        monkeypatch,
        [
            calls(call("search_documents", query="duty")),
            says(f"{QUOTE} [c{library.chunks[0].pk}]. Nobody says [c99999] this."),
        ],
    )
    return turn


def share(cast: Cast, turn: Turn, role: str = "member") -> ConversationShare:
    with tenant_scope(cast.tenant.pk):
        row = Conversation.objects.get(pk=turn.conversation_id)
        return sharing_services.share_create(tenant=cast.tenant, actor=cast.actor(role), conversation=row)


def read(cast: Cast, key: uuid.UUID, role: str) -> Any:
    actor = cast.actor(role)
    tenant = cast.tenant if role != "outsider" else cast.other_tenant
    with tenant_scope(tenant.pk):
        return shared_view(
            actor=actor, share=sharing_services.share_open(tenant=tenant, actor=actor, key=key)
        )


async def test_reader_sees_of_a_source_what_they_may_see_now(
    cast: Cast, library: Library, told: Turn
) -> None:
    def look() -> None:
        key = share(cast, told).key
        (turn,) = read(cast, key, "viewer").turns
        (card,) = turn.citations
        assert card.quote == QUOTE
        assert card.document_name == library.document.name
        assert (turn.hidden, turn.answer) == (0, f"{QUOTE} [1]. Nobody says this.")
        with tenant_scope(cast.tenant.pk):
            Document.objects.filter(pk=library.document.pk).update(is_restricted=True)
        (turn,) = read(cast, key, "viewer").turns
        (card,) = turn.citations
        assert (card.document_name, card.quote, card.page, turn.hidden) == (HIDDEN, "", None, 1)
        assert library.document.name not in json.dumps([str(turn)])
        assert library.document.name not in "".join(block.html for block in turn.blocks)
        with tenant_scope(cast.tenant.pk):
            Document.objects.all().delete()
        (turn,) = read(cast, key, "member").turns
        assert turn.citations[0].quote == ""

    await sync_to_async(look)()


async def test_link_is_for_members_and_only_until_it_is_revoked(cast: Cast, told: Turn) -> None:
    def look() -> None:
        for role in ("owner", "viewer"):
            with pytest.raises(Missing):
                share(cast, told, role)
        row = share(cast, told)
        for key, role in ((row.key, "outsider"), (uuid.uuid4(), "member")):
            with pytest.raises(Missing):
                read(cast, key, role)
        assert read(cast, row.key, "admin").by == str(cast.actor("member").name)
        assert read(cast, row.key, "viewer").is_own is False
        read(cast, row.key, "viewer")
        assert read(cast, row.key, "member").is_own is True
        who: Any = {"tenant": cast.tenant, "conversation": told.conversation, "pk": row.pk}
        with tenant_scope(cast.tenant.pk):
            (listed,) = share_list(actor=cast.actor("member"), conversation=told.conversation)
            assert len(listed.readers.all()) == 2
            assert not share_list(actor=cast.actor("owner"), conversation=told.conversation)
            with pytest.raises(Missing):
                sharing_services.share_revoke(**who, actor=cast.actor("owner"))
            sharing_services.share_revoke(**who, actor=cast.actor("member"))
            sharing_services.share_revoke(**who, actor=cast.actor("member"))
            assert ConversationShare.objects.get().snapshot == {"turns": []}
        with pytest.raises(Missing):
            read(cast, row.key, "viewer")

    await sync_to_async(look)()


async def test_snapshot_does_not_grow_and_goes_with_its_conversation(cast: Cast, told: Turn) -> None:
    def look() -> None:
        row = share(cast, told)
        ask(cast, "Later?", conversation=told.conversation)
        assert [t.question for t in read(cast, row.key, "viewer").turns] == ["What is the duty on cars?"]
        with tenant_scope(cast.tenant.pk):
            conversations.conversation_delete(
                tenant=cast.tenant, actor=cast.actor("member"), conversation=told.conversation
            )
        with pytest.raises(Missing):
            read(cast, row.key, "viewer")

    await sync_to_async(look)()


def test_nothing_is_shared_without_an_answer(cast: Cast) -> None:
    turn = ask(cast)
    with pytest.raises(Conflict, match="no finished answer"):
        share(cast, turn)


async def test_exports_hold_sources_and_branches_and_hide_what_is_hidden(
    cast: Cast, library: Library, told: Turn
) -> None:
    def look() -> None:
        actor = cast.actor("member")
        with tenant_scope(cast.tenant.pk):
            row = selectors.conversation_get(actor=actor, pk=told.conversation_id)
            turn = selectors.turn_get(actor=actor, conversation=row, pk=told.pk)
            turn.conversation = row
            other = branches_services.turn_edit(
                tenant=cast.tenant, actor=actor, turn=turn, text="And *trucks*?", client_id=uuid.uuid4()
            )
            tree = exports.export_json(actor=actor, conversation=row)
            assert [(t["id"], t["parent"]) for t in tree["turns"]] == [(told.pk, None), (other.pk, None)]
            assert tree["shown"] == [other.pk]
            assert tree["turns"][0]["citations"][0]["quote"] == QUOTE
            json.dumps(tree)
            branches_services.turn_choose(tenant=cast.tenant, actor=actor, turn=turn)
            text = exports.export_markdown(actor=actor, conversation=row)
            assert f"- [1] {library.document.name} (Tariff, page 1): “{QUOTE}”" in text
            assert "trucks" not in text
            Document.objects.filter(pk=library.document.pk).update(is_restricted=True)
            text = exports.export_markdown(actor=actor, conversation=row)
            assert f"- [1] {HIDDEN}" in text
            assert library.document.name not in text
            tree = exports.export_json(actor=actor, conversation=row)
            assert library.document.name not in json.dumps(tree)

    await sync_to_async(look)()
