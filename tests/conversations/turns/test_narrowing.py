"""A message limited to collections, documents or tools: what may be named, and that no tool sees more than was named."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from apps.collections.documents import access
from apps.collections.file_tools.toolset import FILE_TOOLS
from apps.collections.models import Collection, Document
from apps.conversations.answering import tasks
from apps.conversations.chat.queued_lines import queued_lines
from apps.conversations.models import Turn
from apps.conversations.projects.services import project_create
from apps.conversations.toolset.bundle import BUNDLE, SCOPE, TOOLSET, Scope
from apps.conversations.toolset.results import Searching
from apps.conversations.turns.conversations import conversation_create
from apps.conversations.turns.narrowing import Narrowing, narrowing_of
from apps.conversations.turns.queue import question_queue, queued_next
from apps.conversations.turns.services import turn_retry, turn_submit
from apps.tools.toolset.selectors import guard_for
from basics.errors import Invalid
from runs.actors import actor_facts
from runs.models import Run
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, collection, embedder, ingest, storage  # noqa: F401 - fixtures
from tests.conversations.answering.test_helpers import asked
from tests.conversations.support import make_library
from tests.conversations.toolset.test_reading import CODE, finished, here
from toolloop.tools import ToolContext, ToolError

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


def submit(cast: Cast, narrowing: Narrowing | None, **more: Any) -> Turn:
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    conversation = more.pop("conversation", None) or conversation_create(**who, **more.pop("scope", {}))
    return turn_submit(
        **who, conversation=conversation, text="Why?", client_id=uuid.uuid4(), narrowing=narrowing, **more
    )


def prepared(turn: Turn) -> Any:
    found = tasks._prepare(turn.tenant_id, turn.pk, turn.run_id)
    assert found is not None
    return found


def ended(turn: Turn, status: str = "failed") -> None:
    Turn.objects.filter(pk=turn.pk).update(is_active=False)
    Run.objects.filter(pk=turn.run_id).update(status=status)


def test_only_what_the_conversation_searches_and_the_person_may_use_can_be_named(cast: Cast) -> None:
    ours, beside = make_library(cast, "Ours"), make_library(cast, "Beside")
    kept = make_library(cast, "Kept", document="kept.pdf")
    kept.document.is_restricted = True
    kept.document.save(update_fields=["is_restricted"])
    with tenant_scope(cast.other_tenant.pk):
        theirs = Collection.objects.create(
            tenant=cast.other_tenant, name="Theirs", space_id=ours.collection.space_id
        )
    one = {"collections": [ours.collection.pk]}
    project = project_create(
        tenant=cast.tenant, actor=cast.actor("member"), name="P", collections=one["collections"]
    )
    for code, narrowing, scope in (
        ("unknown_collection", Narrowing(collections=(theirs.pk,)), {}),
        ("unknown_collection", Narrowing(collections=(beside.collection.pk,)), one),
        ("unknown_collection", Narrowing(collections=(beside.collection.pk,)), {"project": project.pk}),
        ("unknown_document", Narrowing(documents=(beside.document.pk,)), one),
        ("unknown_document", Narrowing(documents=(kept.document.pk,)), {}),
        ("unknown_document", Narrowing(documents=(2**40,)), {}),
        ("unknown_tool", Narrowing(tools=("no_such",)), {}),
        ("unknown_tool", Narrowing(tools=("lookup_hts_code",)), {}),  # nobody has granted it
        ("unknown_tool", Narrowing(tools=("calculate",)), {"tools_off": ["calculate"]}),
        ("narrowing_mixed", Narrowing((ours.collection.pk,), (ours.document.pk,)), {}),
        ("narrowing_too_long", Narrowing(tuple(range(1, 22))), {}),
    ):
        with pytest.raises(Invalid) as refused:
            submit(cast, narrowing, scope=scope)
        assert refused.value.code == code, narrowing
    named = Narrowing(documents=(ours.document.pk, ours.document.pk), tools=("calculate",))
    for place in (one, {"project": project.pk}):
        found = narrowing_of(submit(cast, named, scope=place).run)
        assert found == Narrowing((), (ours.document.pk,), ("calculate",))


def test_collections_and_tools_narrow_what_the_answer_has(cast: Cast) -> None:
    ours, _beside = make_library(cast, "Ours"), make_library(cast, "Beside")
    plain = prepared(submit(cast, None))
    assert len(plain.collections) == 2
    assert {"date_info", "read_file"} <= set(plain.answering.toolset.names())
    both = prepared(submit(cast, Narrowing(collections=(ours.collection.pk,), tools=("calculate",))))
    assert (both.collections, both.narrowed.collections) == ([ours.collection.pk], {ours.collection.pk})
    assert set(both.answering.toolset.names()) == {"calculate", *TOOLSET.names()}
    assert "“Beside”" not in both.answering.system


def test_named_tools_leave_out_other_assistants(cast: Cast) -> None:
    turn = asked(cast, {})
    assert "ask_tariff_expert" in prepared(turn).answering.toolset.names()
    turn.run.request |= Narrowing(tools=("calculate",)).facts()
    turn.run.save(update_fields=["request"])
    assert set(prepared(turn).answering.toolset.names()) == {"calculate", *TOOLSET.names()}


def test_documents_narrow_and_are_looked_at_again_when_the_answer_is_written(cast: Cast) -> None:
    ours = make_library(cast, "Ours")
    old = ours.document
    turn = submit(cast, Narrowing(documents=(old.pk,)))
    now = prepared(turn)
    assert (now.narrowed.documents, now.narrowed.collections) == ({old.pk}, {ours.collection.pk})
    assert not set(FILE_TOOLS.names()) & set(now.answering.toolset.names()), "they look at whole collections"
    assert "limited this question to certain documents" in now.answering.system
    # A new version takes the place of the one that was named.
    old.live_to = old.created_at
    old.save(update_fields=["live_to"])
    new = Document.objects.create(
        tenant=cast.tenant,
        collection=ours.collection,
        **{n: getattr(old, n) for n in ("name", "path", "media_type", "size", "file", "status")},
        sha256="0" * 64,
        version=2,
    )
    assert prepared(turn).narrowed.documents == {new.pk}
    Document.objects.filter(pk__in=[old.pk, new.pk]).update(is_restricted=True)
    lost = prepared(turn)
    assert (lost.narrowed.documents, lost.collections) == (frozenset(), [])


def test_it_stays_with_the_question_and_with_no_other(cast: Cast) -> None:
    make_library(cast)
    named = Narrowing(tools=("calculate",))
    first = submit(cast, named)
    waiting = question_queue(
        tenant=cast.tenant,
        actor=cast.actor("member"),
        conversation=first.conversation,
        text="Then?",
        client_id=uuid.uuid4(),
        narrowing=named,
    )
    assert waiting.request["narrowed"]["tools"] == ["calculate"]  # type: ignore[union-attr]
    (line,) = queued_lines(actor=cast.actor("member"), conversation=first.conversation)
    assert line.limits == ["1 tool only"]
    assert [(chip["kind"], chip["title"]) for chip in json.loads(line.named)] == [("tool", "Calculator")]
    ended(first)
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    again = turn_retry(**who, turn=Turn.objects.get(pk=first.pk))
    assert narrowing_of(again.run) == named
    ended(again, "completed")
    then = queued_next(tenant=cast.tenant, conversation_pk=first.conversation_id)
    assert then is not None
    assert narrowing_of(then.run) == named
    ended(then, "completed")
    beside = submit(cast, None, conversation=first.conversation, beside=then)
    assert narrowing_of(beside.run) == named, "another wording of the same question"
    ended(beside, "completed")
    assert not narrowing_of(submit(cast, None, conversation=first.conversation).run)


def test_no_search_tool_sees_another_document(cast: Cast, request: pytest.FixtureRequest) -> None:
    trade: Collection = request.getfixturevalue("collection")
    lamps = ingest(cast, trade, "lamps.md", LAMPS)
    duties = ingest(cast, trade, "duties.py", CODE)
    actor = cast.actor("member")
    run = Run.objects.create(
        tenant=cast.tenant, user=cast.user("member"), request={"actor": actor_facts(actor)}
    )

    def call(
        name: str, documents: set[int] | None, searching: Searching | None = None, **arguments: Any
    ) -> Any:
        guard = guard_for(actor=actor, scope={trade.pk: trade.name})
        limited = None if documents is None else frozenset(documents)
        scope = Scope(
            cast.tenant, None, run, here, guard, searching=searching or Searching(), documents=limited
        )
        tool = guard.toolset(TOOLSET, BUNDLE).get(name)
        assert tool is not None
        output = finished(tool.function(ToolContext({SCOPE: scope}), **arguments))
        return output.payload["results"] if name != "list_documents" else output.content

    def documents(rows: Any) -> set[int]:
        return {row["document_id"] for row in rows}

    everything = call("search_documents", None, query="duty on lamps")
    assert documents(everything) == {lamps.pk, duties.pk}
    assert documents(call("search_documents", {lamps.pk}, query="duty on lamps")) == {lamps.pk}
    own = Searching(
        filters={"document_id": {"in": [duties.pk]}}
    )  # an assistant's filter doesn't take its place
    assert call("search_documents", {lamps.pk}, own, query="duty on lamps") == []
    assert call("search_documents", set(), query="duty on lamps") == []
    assert call("search_codebase", {lamps.pk}, query="rate", relation="callers") == []
    assert documents(call("search_codebase", {duties.pk}, query="rate", relation="callers")) == {duties.pk}
    inside = next(row for row in everything if row["document_id"] == duties.pk)
    for name in ("get_chunk", "get_linked_chunk"):
        with pytest.raises(ToolError, match="none of the documents"):
            call(name, {lamps.pk}, chunk_id=f"c{inside['chunk_id']}")
    listed = call("list_documents", {lamps.pk})
    assert "lamps.md" in listed
    assert "duties.py" not in listed
    access.document_access_set(
        tenant=cast.tenant, actor=cast.actor("owner"), document=lamps, is_restricted=True, roles=["owner"]
    )
    assert call("search_documents", {lamps.pk}, query="duty on lamps") == []
