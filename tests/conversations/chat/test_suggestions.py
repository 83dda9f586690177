"""What the lists of the composer offer: no more than one may use at that moment, few lines, in words for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.conversations.chat.suggestions import SHOWN, Suggestion, Where, suggestions, where_of
from apps.conversations.models import Turn
from apps.conversations.projects.services import project_create
from apps.conversations.prompts.services import prompt_create
from apps.conversations.turns.conversations import conversation_create
from apps.tools.toolset.bundles import bundle_list
from apps.tools.toolset.words import tool_words
from basics.errors import Invalid, Missing
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import make_library

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


def lines(
    cast: Cast, what: str, query: str = "", role: str = "member", where: Where | None = None
) -> list[Suggestion]:
    groups = suggestions(actor=cast.actor(role), what=what, query=query, where=where or Where())
    return [line for group in groups for line in group.lines]


def test_mentions_are_what_the_conversation_searches_and_the_person_may_see(cast: Cast) -> None:
    ours = make_library(cast, "Tariffs", document="duties.pdf")
    beside = make_library(cast, "Contracts", document="duties of staff.pdf")
    assert {line.title for line in lines(cast, "mentions", "duties")} == {"duties.pdf", "duties of staff.pdf"}
    assert [(line.kind, line.hint) for line in lines(cast, "mentions", "DUTIES staff")] == [
        ("document", "Contracts")
    ]
    conversation = conversation_create(
        tenant=cast.tenant, actor=cast.actor("member"), collections=[ours.collection.pk]
    )
    inside = where_of(actor=cast.actor("member"), conversation=conversation.pk, assistant="", collections=())
    project = project_create(
        tenant=cast.tenant, actor=cast.actor("member"), name="P", collections=[ours.collection.pk]
    )
    begun: dict[str, Any] = {"conversation": None, "assistant": "", "collections": (), "project": project.pk}
    in_project = where_of(actor=cast.actor("member"), **begun)
    for where in (inside, in_project, Where(collections=[ours.collection.pk])):
        assert [line.title for line in lines(cast, "mentions", where=where)] == ["Tariffs", "duties.pdf"]
    beside.document.is_restricted = True
    beside.document.save(update_fields=["is_restricted"])
    assert [line.title for line in lines(cast, "mentions", "staff")] == []
    with pytest.raises(Missing):
        where_of(actor=cast.actor("owner"), conversation=conversation.pk, assistant="", collections=())
    with pytest.raises(Invalid):
        lines(cast, "everything")
    with tenant_scope(cast.other_tenant.pk):
        assert lines(cast, "mentions", role="outsider") == []
        assert lines(cast, "prompts", role="outsider") == []


def test_tools_have_a_title_and_a_sentence_for_people_and_come_few_at_a_time(cast: Cast) -> None:
    nameless = [
        tool.name
        for bundle in bundle_list()
        for tool in bundle.tools()
        if tool_words(tool.name, bundle) is None
    ]
    assert nameless == []
    (group,) = suggestions(actor=cast.actor("member"), what="tools", query="", where=Where())
    assert (len(group.lines), group.is_cut) == (SHOWN, True)
    first, *_others = lines(cast, "tools", "calcul")
    assert (first.value, first.title) == ("calculate", "Calculator")
    assert [line.value for line in lines(cast, "tools", "calculate")] == ["calculate"], "and by its code name"
    off = Where(off=["calculate"])
    assert lines(cast, "tools", "calculate", where=off) == []
    (menu,) = suggestions(actor=cast.actor("member"), what="tools", query="calcul", where=off, is_menu=True)
    assert [line.value for line in menu.lines] == ["calculate"], "the menu switches it on again"


def test_page_takes_chips_and_lists_are_escaped(cast: Cast, client: Client) -> None:
    library = make_library(cast, "Tariffs <b>", document="duties.pdf")
    prompt = prompt_create(tenant=cast.tenant, actor=cast.actor("member"), name="<i>", text='"{what}" <u>')
    client.force_login(cast.user("member"))
    url = reverse("conversations:suggest", args=[cast.tenant.slug])
    page = client.get(url, {"what": "prompts"}).content.decode()
    assert 'data-text="&quot;{what}&quot; &lt;u&gt;"' in page
    assert f'data-variables="{json.dumps(["what"]).replace(chr(34), "&quot;")}"' in page
    assert "Tariffs &lt;b&gt;" in client.get(url, {"what": "mentions"}).content.decode()
    home = reverse("conversations:home", args=[cast.tenant.slug])
    assert "&lt;u&gt;" in client.get(home, {"prompt": prompt.pk}).content.decode()
    assert client.get(home, {"prompt": 2**40}).status_code == 200
    sent = {
        "text": "Why?",
        "client_id": "6f0e6c9c-64a5-4c35-a0c3-6a1d2f8f7b11",
        "only_documents": library.document.pk,
        "only_tools": "calculate",
    }
    create = reverse("conversations:create", args=[cast.tenant.slug])
    assert client.post(create, sent | {"only_documents": "x"}).status_code == 400
    assert not Turn.objects.exists()
    conversation = client.post(create, sent)
    assert conversation.status_code == 302
    shown = client.get(conversation["Location"]).content.decode()
    assert "1 document only" in shown
    assert "1 tool only" in shown
    narrowed = Turn.objects.select_related("run").get().run.request["narrowed"]
    assert narrowed == {"collections": [], "documents": [library.document.pk], "tools": ["calculate"]}
