"""Tools that a conversation does not use: switched off by its owner, gone from its next answer, and no other's."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from apps.conversations.answering import tasks
from apps.conversations.chat.starters import starters_made
from apps.conversations.chat.tools_offered import tool_lines
from apps.conversations.models import Conversation
from apps.conversations.turns import conversations
from apps.conversations.turns import services as turns_services
from apps.tools.permissions.services import grant_create
from basics.errors import Invalid, Missing
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import make_library

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


@pytest.fixture
def member(cast: Cast) -> dict[str, Any]:
    return {"tenant": cast.tenant, "actor": cast.actor("member")}


def offered(conversation: Conversation, member: dict[str, Any]) -> set[str]:
    turn = turns_services.turn_submit(
        **member, conversation=conversation, text="What?", client_id=uuid.uuid4()
    )
    prepared = tasks._prepare(turn.tenant_id, turn.pk, turn.run_id)
    assert prepared is not None
    return set(prepared.answering.toolset.names())


def test_tool_that_is_switched_off_is_not_offered_and_not_run(cast: Cast, member: dict[str, Any]) -> None:
    plain = conversations.conversation_create(**member)
    assert "calculate" in offered(plain, member)
    off = conversations.conversation_create(**member, tools_off=["calculate", "calculate", "no_such"])
    assert off.tools_off == ["calculate", "no_such"]
    names = offered(off, member)
    assert "calculate" not in names
    assert "search_documents" in names
    conversations.tools_off_set(**member, conversation=off, names=["search_documents"])
    assert AuditEvent.objects.get(action="conversation.tools").data == {"off": ["search_documents"]}
    lines = tool_lines(actor=member["actor"], version=None, off=Conversation.objects.get(pk=off.pk).tools_off)
    assert [line.name for line in lines if not line.is_on] == ["search_documents"]


def test_tools_are_chosen_by_the_owner_alone_and_in_good_measure(cast: Cast, member: dict[str, Any]) -> None:
    conversation = conversations.conversation_create(**member)
    for names in (["x"] * 1001, [""], ["x" * 201], ["a\x00b"]):
        with pytest.raises(Invalid):
            conversations.tools_off_set(**member, conversation=conversation, names=names)
    for role in ("owner", "outsider"):
        with pytest.raises(Missing):
            conversations.tools_off_set(
                tenant=cast.tenant, actor=cast.actor(role), conversation=conversation, names=[]
            )


def test_list_tells_what_is_allowed_and_what_asks_first(cast: Cast, member: dict[str, Any]) -> None:
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    grant_create(**who, effect="ask", target_kind="tool", target="calculate")
    grant_create(**who, effect="deny", target_kind="tool", target="date_info")
    lines = {line.name: line for line in tool_lines(actor=member["actor"], version=None, off=())}
    assert lines["calculate"].asks
    assert not lines["search_documents"].asks
    assert "date_info" not in lines


def test_first_questions_are_made_of_documents_that_one_may_see(cast: Cast, member: dict[str, Any]) -> None:
    assert starters_made(actor=member["actor"]) is None
    library = make_library(cast, document="duties.pdf")
    assert starters_made(actor=member["actor"]) == []
    for chunk, heading in zip(library.chunks, ("Cars", "Cars", "Notices."), strict=True):
        chunk.headings = ["Duties", heading]
        chunk.save(update_fields=["headings"])
    assert starters_made(actor=member["actor"]) == [
        "What do the documents say about “Cars”?",
        "What do the documents say about “Notices”?",
    ]
    library.chunks[2].text = "Goods are kept.\n\nEach declaration must be signed by the owner of the goods."
    library.chunks[2].save(update_fields=["text"])
    first, *others = starters_made(actor=member["actor"]) or []
    assert first == "By whom must each declaration be signed?"
    assert others == [
        "What do the documents say about “Cars”?",
        "What do the documents say about “Notices”?",
    ]
    library.document.is_restricted = True
    library.document.save(update_fields=["is_restricted"])
    assert starters_made(actor=member["actor"]) is None
    assert starters_made(actor=cast.actor("outsider")) is None
