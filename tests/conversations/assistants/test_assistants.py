"""Assistants: their versions, who may make and choose them, and what a turn of one may search and call."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from apps.conversations.answering import tasks
from apps.conversations.assistants import selectors as reads
from apps.conversations.assistants import services as assistants_services
from apps.conversations.assistants.options import OF_MODE, Options, VersionSpec, options_json, options_read
from apps.conversations.models import Assistant, Turn
from apps.conversations.openai import tasks as completions
from apps.conversations.openai.services import CompletionRequest, completion_start
from apps.conversations.openai.wire import ParsedRequest
from apps.conversations.turns import services as turns_services
from apps.tools.models import Toolkit
from apps.tools.toolkits.services import toolkit_delete, toolkit_set
from basics.errors import Conflict, Denied, Invalid, Missing
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.conversations.support import Library, make_library
from toolloop.messages import UserMessage

pytestmark = pytest.mark.django_db(transaction=True)
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


@pytest.fixture
def who(cast: Cast) -> Iterator[dict[str, Any]]:
    """Give tenant and actor of an editor, inside the scope."""
    with tenant_scope(cast.tenant.pk):
        yield {"tenant": cast.tenant, "actor": cast.actor("member")}


def made(who: dict[str, Any], name: str = "Clerk", *, publish: bool = True, **spec: Any) -> Assistant:
    """Return a new assistant, published unless said otherwise."""
    row = assistants_services.assistant_create(**who, name=name, spec=VersionSpec(**spec))
    return assistants_services.version_publish(**who, assistant=row, number=1) if publish else row


def asked(who: dict[str, Any], **more: Any) -> Turn:
    """Return the first turn of a new conversation."""
    return turns_services.conversation_ask(**who, text="What is the duty?", client_id=uuid.uuid4(), **more)


@contextmanager
def refuses(field: str) -> Iterator[None]:
    """Expect a refusal of one field, in words."""
    with pytest.raises(Invalid) as caught:
        yield
    assert list(caught.value.data["fields"]) == [field]
    assert len(caught.value.message) > 20


def test_options_keep_what_differs_and_name_what_is_wrong() -> None:
    options = options_read("quick", {"top_k": 12, "document_types": ["cbp_guide"], "temperature": 0})
    assert options.search_filters == {"document_type": {"in": ["cbp_guide"]}}
    assert options.model_options == {"temperature": 0.0}
    assert options_read("quick", options_json(options)) == options
    assert options_json(Options()) == {}
    served = {"service_tier": "flex", "cache_ttl": "1h", "background": True}
    for mode in OF_MODE:
        read = options_read(mode, {**served, "max_tool_calls": 5})
        assert read.model_options == served
        assert options_json(read) == {"max_tool_calls": 5, **served}


@pytest.mark.parametrize(
    ("mode", "given", "field"),
    [
        ("quick", {"top_k": 0}, "top_k"),
        ("quick", {"top_k": True}, "top_k"),
        ("quick", {"top_k": "8"}, "top_k"),
        ("quick", {"filters": {"owner": 1}}, "filters"),
        ("quick", {"filters": [1]}, "filters"),
        ("quick", {"document_types": "cbp_guide"}, "document_types"),
        ("quick", {"document_types": ["a"], "filters": {"document_type": "b"}}, "filters"),
        ("planned", {"top_k": 3}, "options"),
        ("planned", {"max_replans": 6}, "max_replans"),
        ("tools", {"temperature": float("nan")}, "temperature"),
        ("tools", {"effort": ["high"]}, "effort"),
        ("tools", {"service_tier": "cheap"}, "service_tier"),
        ("quick", {"cache_ttl": "2h"}, "cache_ttl"),
        ("planned", {"background": "yes"}, "background"),
        ("tools", ["effort"], "options"),
        ("slow", {}, "mode"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_options_are_refused_by_field(mode: str, given: Any, field: str) -> None:
    with refuses(field):
        options_read(mode, given)


def test_what_the_model_lacks_is_refused_when_it_is_saved(
    who: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    model = "anthropic/claude-haiku-5-5"
    with refuses("service_tier"):
        made(who, model=model, options={"service_tier": "flex"})
    with refuses("background"):
        made(who, model=model, options={"background": True})
    row = made(who, model=model, options={"service_tier": "priority", "cache_ttl": "1h"})
    assert row.published is not None
    assert reads.version_options(row.published).model_options == {
        "service_tier": "priority",
        "cache_ttl": "1h",
    }


def test_versions_are_numbered_published_and_undone(who: dict[str, Any]) -> None:
    row = made(who, publish=False)
    assert list(reads.assistant_choices(actor=who["actor"])) == []
    second = assistants_services.version_create(
        **who, assistant=row, spec=VersionSpec(mode="planned"), note="Plans"
    )
    assert (second.number, row.slug) == (2, "clerk")
    assistants_services.version_publish(**who, assistant=row, number=2)
    assistants_services.version_publish(**who, assistant=row, number=1)
    assert [a.published.number for a in reads.assistant_choices(actor=who["actor"])] == [1]
    assistants_services.version_unpublish(**who, assistant=row)
    assert not reads.assistant_choices(actor=who["actor"]).exists()
    told = AuditEvent.objects.filter(object_name="Clerk").order_by("pk").values_list("action", "data")
    assert [action for action, _ in told] == [
        "assistant.create",
        "assistant.version",
        "assistant.publish",
        "assistant.publish",
        "assistant.unpublish",
    ]
    assert [data.get("before") for _, data in told][2:] == [None, 2, 1]


def test_slugs_are_made_kept_and_never_the_workspaces(who: dict[str, Any]) -> None:
    assert [made(who, "Trade desk").slug, made(who, "Trade desk").slug] == ["trade-desk", "trade-desk-2"]
    with pytest.raises(Conflict):
        assistants_services.assistant_create(**who, name="x", slug="trade-desk", spec=VersionSpec())
    for slug in ("workspace", "Trade", "a/b", "a b", "-a", "a" * 61):
        with refuses("slug"):
            assistants_services.assistant_create(**who, name="x", slug=slug, spec=VersionSpec())
    row = made(who, "質問係")
    assistants_services.assistant_rename(**who, assistant=row, name="Asker", description="Asks.")
    row.refresh_from_db()
    assert (row.name, row.slug) == ("Asker", "assistant")


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("mode", {"mode": "slow"}),
        ("mode", {"mode": "quick", "has_toolkit": True}),
        ("model", {"model": "openai:gone"}),
        ("prompt", {"prompt": "x" * 20_001}),
        ("collections", {"collections": [10**9]}),
        ("toolkit", {"toolkit": 10**9, "has_toolkit": True}),
        ("output", {"output": "yaml"}),
        ("output_name", {"output": "schema", "output_schema": SCHEMA}),
        ("output_schema", {"output": "schema", "output_name": "a", "output_schema": None}),
        ("output_schema", {"output": "schema", "output_name": "a", "output_schema": {"type": "array"}}),
        ("output_schema", {"output": "schema", "output_name": "a", "output_schema": {"type": "objekt"}}),
        (
            "output_schema",
            {"output": "schema", "output_name": "a", "output_schema": {**SCHEMA, "x": "y" * 33_000}},
        ),
        (
            "output_schema",
            {
                "output": "schema",
                "output_name": "a",
                "output_schema": {**SCHEMA, "$defs": {"a": {"$ref": "https://evil.test/a"}}},
            },
        ),
        (
            "output_schema",
            {
                "output": "schema",
                "output_name": "a",
                "output_schema": {
                    "type": "object",
                    "properties": {"a": {"type": "string", "pattern": "(a+)+$"}},
                },
            },
        ),
        ("starters", {"starters": list("abcdefg")}),
        ("starters", {"starters": ["x" * 201]}),
        ("helpers", {"helpers": [10**9]}),
        ("top_k", {"mode": "quick", "options": {"top_k": 99}}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_version_is_refused_by_field_and_leaves_nothing(
    who: dict[str, Any], field: str, spec: dict[str, Any]
) -> None:
    with refuses(field):
        assistants_services.assistant_create(**who, name="x", spec=VersionSpec(**spec))
    assert not Assistant.objects.exists()


def test_a_schema_nested_too_deep_is_refused(who: dict[str, Any]) -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(60):
        deep = {"type": "object", "properties": {"a": deep}}
    with refuses("output_schema"):
        made(who, output="schema", output_name="a", output_schema=deep)


def test_another_workspace_has_nothing_to_offer(cast: Cast, who: dict[str, Any]) -> None:
    theirs: Any = {"tenant": cast.other_tenant, "actor": cast.actor("outsider")}
    with tenant_scope(cast.other_tenant.pk):
        foreign = made(theirs, "Spy")
        kit = Toolkit.objects.create(tenant=cast.other_tenant, name="kit")
    with refuses("helpers"):
        made(who, helpers=[foreign.pk])
    with refuses("toolkit"):
        made(who, toolkit=kit.pk, has_toolkit=True)
    with pytest.raises(Missing):
        assistants_services.version_publish(**who, assistant=foreign, number=1)
    with pytest.raises(Missing):
        asked(who, assistant="spy")
    assert not reads.assistant_list(actor=who["actor"]).exists()


def test_viewers_ask_and_do_not_edit(cast: Cast, who: dict[str, Any]) -> None:
    row = made(who)
    viewer: Any = {"tenant": cast.tenant, "actor": cast.actor("viewer")}
    assert asked(viewer, assistant="clerk").assistant_version == row.published
    for call in (
        lambda: assistants_services.assistant_create(**viewer, name="x", spec=VersionSpec()),
        lambda: assistants_services.version_create(**viewer, assistant=row, spec=VersionSpec()),
        lambda: assistants_services.version_publish(**viewer, assistant=row, number=1),
        lambda: assistants_services.version_unpublish(**viewer, assistant=row),
        lambda: assistants_services.assistant_rename(**viewer, assistant=row, name="x", description=""),
        lambda: assistants_services.assistant_archive(**viewer, assistant=row),
        lambda: assistants_services.assistant_restore(**viewer, assistant=row),
        lambda: asked(viewer, assistant="clerk", assistant_version=1),
    ):
        with pytest.raises(Denied):
            call()


def test_helpers_form_no_circle_and_no_deep_chain(who: dict[str, Any]) -> None:
    first = made(who, "a")
    second = made(who, "b", helpers=[first.pk])
    third = made(who, "c", helpers=[second.pk])
    with refuses("helpers"):
        made(who, "d", helpers=[third.pk])
    with refuses("helpers"):
        assistants_services.version_create(**who, assistant=first, spec=VersionSpec(helpers=[third.pk]))
    with refuses("helpers"):
        assistants_services.version_create(**who, assistant=first, spec=VersionSpec(helpers=[first.pk]))
    # What was fine when it was written can close a circle by the time it is published.
    one, two = made(who, "one", publish=False), made(who, "two", publish=False)
    assistants_services.version_create(**who, assistant=one, spec=VersionSpec(helpers=[two.pk]))
    assistants_services.version_create(**who, assistant=two, spec=VersionSpec(helpers=[one.pk]))
    assistants_services.version_publish(**who, assistant=one, number=2)
    with refuses("helpers"):
        assistants_services.version_publish(**who, assistant=two, number=2)
    # Below somebody else's chain there is no room either.
    deep = made(who, "deep")
    with refuses("helpers"):
        assistants_services.version_create(**who, assistant=first, spec=VersionSpec(helpers=[deep.pk]))


def test_archived_ones_cannot_be_asked_until_they_are_restored(who: dict[str, Any]) -> None:
    row = made(who)
    turn = asked(who, assistant="clerk")
    Turn.objects.update(is_active=False)
    assistants_services.assistant_archive(**who, assistant=row)
    more: Any = {**who, "conversation": turn.conversation, "text": "And?"}
    with pytest.raises(Conflict, match="archived"):
        turns_services.turn_submit(**more, client_id=uuid.uuid4())
    with pytest.raises(Missing):
        asked(who, assistant="clerk")
    with pytest.raises(Conflict):
        assistants_services.version_create(**who, assistant=row, spec=VersionSpec())
    # The model alone goes on with the conversation.
    alone = turns_services.turn_submit(**more, client_id=uuid.uuid4(), assistant="")
    assert alone.assistant_version is None
    assistants_services.assistant_restore(**who, assistant=row)
    assert asked(who, assistant="clerk").assistant_version == row.published


def test_a_conversation_follows_what_is_published_and_a_trial_does_not(who: dict[str, Any]) -> None:
    row = made(who)
    live = asked(who, assistant="clerk")
    assistants_services.version_create(**who, assistant=row, spec=VersionSpec(mode="planned"))
    trial = asked(who, assistant="clerk", assistant_version=2)
    assert (live.assistant_version.number, trial.assistant_version.number) == (1, 2)
    assert trial.run.request["assistant_version"] == trial.assistant_version.pk
    assistants_services.version_create(**who, assistant=row, spec=VersionSpec())
    assistants_services.version_publish(**who, assistant=row, number=3)
    Turn.objects.update(is_active=False)
    numbers = [
        turns_services.turn_submit(
            **who, conversation=t.conversation, text="And?", client_id=uuid.uuid4()
        ).assistant_version.number
        for t in (live, trial)
    ]
    assert numbers == [3, 2]


def test_an_assistant_brings_its_model(who: dict[str, Any]) -> None:
    made(who, model="extractive")
    turn = asked(who, assistant="clerk")
    assert (turn.run.model, turn.conversation.model) == ("extractive", "extractive")
    with pytest.raises(Invalid, match="own model"):
        asked(who, assistant="clerk", model="openai:gpt-5")


def prepared(turn: Turn) -> Any:
    """Return what the worker would run."""
    return tasks._prepare(turn.tenant_id, turn.pk, turn.run_id)


def test_a_turn_searches_what_person_conversation_and_assistant_share(
    cast: Cast, who: dict[str, Any], library: Library
) -> None:
    one, two = make_library(cast, "One").collection, make_library(cast, "Two").collection
    made(who, collections=[one.pk, two.pk])
    everything = prepared(asked(who, assistant="clerk"))
    narrowed = prepared(asked(who, assistant="clerk", collections=[two.pk, library.collection.pk]))
    assert (everything.collections, narrowed.collections) == ([one.pk, two.pk], [two.pk])
    one.delete()
    two.delete()
    nothing = prepared(asked(who, assistant="clerk"))
    assert (nothing.collections, nothing.narrowed.collections) == ([], frozenset())


def test_a_toolkit_narrows_and_a_deleted_one_leaves_no_tool(cast: Cast, who: dict[str, Any]) -> None:
    admin: Any = {"tenant": cast.tenant, "actor": cast.actor("admin")}
    kit = toolkit_set(**admin, name="Search", tools=["search_documents", "no_such_tool"])
    made(who, toolkit=kit.pk, has_toolkit=True, prompt="Be brief.")
    found = prepared(asked(who, assistant="clerk"))
    assert list(found.answering.toolset.names()) == ["search_documents"]
    assert found.answering.system.endswith("\n\nBe brief.")
    toolkit_delete(**admin, pk=kit.pk)
    assert list(prepared(asked(who, assistant="clerk")).answering.toolset.names()) == []


def test_changes_between_versions_are_told_in_words(who: dict[str, Any]) -> None:
    row = made(who, prompt="Line one.\nLine two.", starters=["Who?"])
    spec = VersionSpec(
        mode="planned", prompt="Line one.\nLine three.", options={"max_replans": 1}, collections=[]
    )
    assistants_services.version_create(**who, assistant=row, spec=spec)
    new, old = reads.version_list(actor=who["actor"], assistant=row)
    changes = {c.label: c for c in reads.version_changes(old, new)}
    assert list(changes) == ["Mode", "Collections", "Maximum new plans", "Instructions", "Starters"]
    assert (changes["Collections"].before, changes["Collections"].after) == (
        "all, including future ones",
        "none",
    )
    assert [(line.kind, line.text) for line in changes["Instructions"].lines] == [
        ("same", "Line one."),
        ("removed", "Line two."),
        ("added", "Line three."),
    ]
    assert reads.version_spec(new) == VersionSpec(
        mode="planned",
        prompt="Line one.\nLine three.",
        options={"max_replans": 1},
        collections=[],
        starters=[],
        helpers=[],
    )


def test_openai_clients_name_an_assistant_and_get_its_scope_tools_and_prompt(
    cast: Cast, who: dict[str, Any], library: Library
) -> None:
    two = make_library(cast, "Two").collection
    admin: Any = {"tenant": cast.tenant, "actor": cast.actor("admin")}
    kit = toolkit_set(**admin, name="Search", tools=["search_documents"])
    made(
        who,
        collections=[two.pk],
        toolkit=kit.pk,
        has_toolkit=True,
        prompt="Be brief.",
        options={"temperature": 1},
    )
    said = ParsedRequest("Speak plainly.", [UserMessage("The duty?")], {})

    def prepared_for(**more: Any) -> Any:
        asked: Any = {"model": "assistant/clerk", "asked": said, "collections": None}
        request = CompletionRequest(**{**asked, **more})
        run = completion_start(**who, request=request)
        return completions._prepare(run.pk)

    found = prepared_for()
    assert (found.collections, list(found.answering.toolset.names())) == ([two.pk], ["search_documents"])
    assert found.answering.system.endswith("Be brief.\n\nSpeak plainly.")
    assert found.answering.options == {"temperature": 1.0}
    outside = prepared_for(collections=[library.collection.pk])
    assert outside.collections == []
    weather = {"name": "weather", "description": "Tell it.", "parameters": {"type": "object"}}
    both = prepared_for(tools=[weather]).answering.toolset
    assert set(both.names()) == {"search_documents", "weather"}, "the client's too, and no more of ours"
    first = prepared_for(tools=[weather], tool_choice="required", first_tool="weather")
    assert list(first.answering.toolset.names()) == ["weather"]
    with pytest.raises(Invalid, match="response_format"):
        prepared_for(schema=SCHEMA)
    with pytest.raises(Missing):
        prepared_for(model="assistant/nobody")
