"""Notes, the switch over them, and instructions: kept, changed, erased, and given to models in their order."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from apps.conversations.assistants import services as assistants_services
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.memory import services
from apps.conversations.memory.selectors import entry_list, memory_get, told_of
from apps.conversations.models import MemoryEntry
from apps.conversations.rules.instructions import MAX_INSTRUCTIONS, instructions_get, instructions_set
from apps.conversations.rules.services import rules_set
from basics.errors import Conflict, Invalid
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.answering.test_modes import asked as assistant_asked
from tests.conversations.memory.test_walls import Model, asked, browser, model, remembering, who  # noqa: F401
from tests.conversations.support import answer
from toolloop.providers.scripted import call, calls, says

pytestmark = pytest.mark.django_db(transaction=True)


def test_notes_are_lines_of_text_each_once_and_a_hundred_at_most(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MAX_ENTRIES", 2)
    with tenant_scope(cast.tenant.pk):
        one = services.entry_add(**who(cast), text="  Likes\n\ttables.\u202e\x00 ")
        assert one.text == "Likes tables."
        assert services.entry_add(**who(cast), text="likes TABLES.") == one
        services.entry_add(**who(cast), text="x" * 400)
        for text in ("", " \n\u202e", "x" * 401):
            with pytest.raises(Invalid):
                services.entry_add(**who(cast), text=text)
        with pytest.raises(Conflict, match="already 2"):
            services.entry_add(**who(cast), text="A third")
        services.entry_add(**who(cast, "owner"), text="Another person's")
        changed = services.entry_change(**who(cast), pk=one.pk, text="Likes lists.")
        assert changed.text == "Likes lists."
        assert [row.text for row in entry_list(actor=cast.actor("member"))] == ["x" * 400, "Likes lists."]
        assert memory_get(actor=cast.actor("member")).is_on is False
        assert services.memory_erase(**who(cast)) == 2
        assert MemoryEntry.objects.count() == 1
        assert AuditEvent.objects.get(action="memory.erase").data == {"count": 2}


async def test_workspace_comes_first_then_the_assistant_then_the_notes(
    cast: Cast,
    lane_threads: Executor,
    model: Model,  # noqa: F811
) -> None:
    def told() -> None:
        remembering(cast, "member", 'Says "hi".', "Second.")
        with tenant_scope(cast.tenant.pk):
            instructions_set(**who(cast, "admin"), text="Answer formally.\r\n")

    await sync_to_async(told)()
    provider = model(calls(call("remember", note="Is new here.", said="I am new here")), says("Done."))
    turn = await sync_to_async(assistant_asked)(cast, "I am new here.", prompt="You are the clerk.")
    await answer(turn, lane_threads)
    system = provider.requests[0].system
    order = [
        "Answer formally.",
        "You answer questions from the documents",
        "You are the clerk.",
        '- "Says \\"hi\\"."',
    ]
    places = [system.index(text) for text in order]
    assert places == sorted(places)
    assert system.startswith("Instructions of the workspace")
    assert system.endswith('- "Second."')
    assert provider.requests[1].system == system, "a note is given from the next question on"

    def kept() -> None:
        with tenant_scope(cast.tenant.pk):
            entry = MemoryEntry.objects.latest("pk")
            assert (entry.text, entry.by_model, entry.turn_id) == ("Is new here.", True, turn.pk)

    await sync_to_async(kept)()


async def test_a_mode_without_calls_is_given_the_notes_and_no_tool(
    cast: Cast,
    lane_threads: Executor,
    model: Model,  # noqa: F811
) -> None:
    await sync_to_async(remembering)(cast, "member", "Likes tables.")
    provider = model(says("2.5 percent."))
    turn = await sync_to_async(assistant_asked)(cast, mode="quick")
    await answer(turn, lane_threads)
    last = provider.requests[-1]
    assert last.system.endswith('- "Likes tables."')
    assert "call the tool remember" not in last.system


def test_instructions_are_versioned_in_the_trail_and_spare_the_other_rules(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        rules_set(**who(cast, "owner"), makes_titles=False)
        instructions_set(**who(cast, "admin"), text="First.")
        instructions_set(**who(cast, "owner"), allows_memory=False)
        now = instructions_set(**who(cast, "admin"), text="Second.")
        instructions_set(**who(cast, "admin"), text="Second.")
        assert (now.text, now.allows_memory) == ("Second.", False)
        assert instructions_get(actor=cast.actor("viewer")) == now
        trail = AuditEvent.objects.filter(action="instruction.set").order_by("pk")
        assert [(row.data["before"]["text"], row.data["after"]["text"]) for row in trail] == [
            ("", "First."),
            ("First.", "First."),
            ("First.", "Second."),
        ]
        with pytest.raises(Invalid):
            instructions_set(**who(cast, "admin"), text="x" * (MAX_INSTRUCTIONS + 1))
        assert told_of(cast.tenant.pk).instructions == "Second."
        # Who writes assistants sees them beside their own.
        row = assistants_services.assistant_create(**who(cast), name="Clerk", spec=VersionSpec(prompt="Hi"))
    page = browser(cast.viewer).get(reverse("conversations:settings-instructions", args=[cast.tenant.slug]))
    assert b"Second." in page.content
    assert b"<textarea" not in page.content
    told = reverse("conversations:settings-instructions", args=[cast.tenant.slug]).encode()
    about = browser(cast.viewer).get(reverse("assistants:detail", args=[cast.tenant.slug, row.pk]))
    assert told in about.content


def test_rest_of_the_memory(cast: Cast) -> None:
    client, headers = browser(cast.member), {"X-Tenant": cast.tenant.slug}
    more: Any = {"headers": headers, "content_type": "application/json"}
    memory, entries = reverse("api:memory"), reverse("api:memory-entries-list")
    off = {"is_on": False, "is_allowed": True, "count": 0}
    assert client.get(memory, headers=headers).json() == off
    assert client.put(memory, {"is_on": True}, **more).json() == {**off, "is_on": True}
    made = client.post(entries, {"text": "Likes tables."}, **more)
    assert made.status_code == 201
    one = made.json()
    assert (one["text"], one["by_model"], one["conversation"], one["turn"]) == (
        "Likes tables.",
        False,
        None,
        None,
    )
    url = reverse("api:memory-entries-detail", args=[one["id"]])
    assert client.patch(url, {"text": "Likes lists."}, **more).json()["text"] == "Likes lists."
    assert client.post(entries, {"text": " \n "}, **more).status_code == 400
    assert [row["text"] for row in client.get(entries, headers=headers).json()["results"]] == ["Likes lists."]
    assert client.delete(memory, headers=headers).status_code == 204
    assert client.get(url, headers=headers).status_code == 404
