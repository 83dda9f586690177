"""The tools that read: prose or code alone, the code graph, links, lists; with the rights of the person at that moment."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from typing import Any

import pytest

from apps.collections.documents import access
from apps.collections.models import ChunkKind, Collection, Document
from apps.conversations.toolset.bundle import BUNDLE, SCOPE, TOOLSET, Scope
from apps.tools.toolset.selectors import guard_for
from runs.actors import actor_facts
from runs.models import Run
from tenancy.models import Membership
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import (  # noqa: F401 - fixtures
    LAMPS,
    collection,
    embedder,
    ingest,
    read_at_once,
    storage,
)
from tests.factories import make_collection
from toolloop.tools import ToolContext, ToolError

pytestmark = pytest.mark.django_db
CODE = b'''"""Duties."""


def rate(code: str) -> float:
    """Return the duty rate of a tariff code."""
    return 2.5


def duty(code: str, value: float) -> float:
    """Return the duty on lamps."""
    return rate(code) * value / 100
'''


@pytest.fixture(autouse=True)
def _scope(cast: Cast) -> Iterator[None]:
    with tenant_scope(cast.tenant.pk):
        yield


async def here(function: Any, *arguments: Any) -> Any:
    """Run a function where the test's transaction is."""
    return function(*arguments)


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for something")


@pytest.fixture
def use(cast: Cast, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    read_at_once(monkeypatch)
    trade: Collection = request.getfixturevalue("collection")
    ingest(cast, trade, "lamps.md", LAMPS)
    ingest(cast, trade, "duties.py", CODE)

    def of(role: str = "member") -> Any:
        actor = cast.actor(role)
        run = Run.objects.create(
            tenant=cast.tenant, user=cast.user(role), request={"actor": actor_facts(actor)}
        )
        guard = guard_for(actor=actor, scope={trade.pk: trade.name})
        tools = guard.toolset(TOOLSET, BUNDLE)
        context = ToolContext({SCOPE: Scope(cast.tenant, None, run, here, guard)})

        def calling(name: str, **arguments: Any) -> Any:
            tool = tools.get(name)
            assert tool is not None
            output = finished(tool.function(context, **arguments))
            return json.loads(output.content)

        return calling

    return of


def kinds(told: Any) -> set[str]:
    from apps.collections.models import Chunk

    pks = [int(row["id"].removeprefix("c")) for row in told["results"]]
    return set(Chunk.objects.filter(pk__in=pks).values_list("kind", flat=True))


def test_prose_and_code_are_searched_apart(use: Any) -> None:
    call = use()
    prose = call("search_documentation", query="duty on lamps", neighbours=1)
    assert kinds(prose) == {ChunkKind.DOC}
    assert all(row["document"] == "lamps.md" for row in prose["results"])
    code = call("search_codebase", query="duty on lamps")
    assert kinds(code) <= {ChunkKind.FUNCTION, ChunkKind.CLASS, ChunkKind.FILE}
    assert {row["document"] for row in code["results"]} == {"duties.py"}
    Document.objects.filter(name="lamps.md").update(document_type="guide")
    unknown = call("search_documentation", query="lamps", document_type="no_such_type")
    assert unknown["results"], "a type orders, it hides nothing"
    assert "no document" in unknown["note"].lower()
    assert "Known types: guide" in unknown["note"]


def test_question_is_embedded_once_where_a_call_searches_twice(
    use: Any,
    embedder: Any,  # noqa: F811 - the fixture
) -> None:
    call = use()
    embedded: list[str] = []
    embedder.on_texts, embedder.space = embedded.extend, replace(embedder.space, provider="local")
    Document.objects.filter(name="lamps.md").update(document_type="guide")
    found = call("search_documents", query="What is the duty on lamps?", document_type="guide")
    assert found["results"][0]["type"] == "guide"
    assert embedded == ["What is the duty on lamps?"]


def test_code_graph_answers_by_relation(use: Any) -> None:
    call = use()
    (definition,) = call("search_codebase", query="rate", relation="definition")["results"]
    assert "def rate" in definition["text"]
    assert "line 4" in definition["definition"][0]
    (caller,) = call("search_codebase", query="rate", relation="callers")["results"]
    assert "def duty" in caller["text"]
    (callee,) = call("search_codebase", query="duty", relation="callees")["results"]
    assert "calls" in callee["callees"][0]
    assert "knows no callers" in call("search_codebase", query="nobody", relation="callers")["note"]


def test_links_are_followed_and_told(use: Any) -> None:
    call = use()
    first = call("search_documentation", query="LED lamps 8539.50.00")["results"][0]["id"]
    linked = call("get_linked_chunk", chunk_id=first, relation="next")
    (row,) = linked["results"]
    assert row["id"] != first
    assert row["relation"] == "next"
    back = call("get_linked_chunk", chunk_id=row["id"], relation="previous")
    assert back["results"][0]["id"] == first
    with pytest.raises(ToolError, match=r"Relations it has: .*next"):
        call("get_linked_chunk", chunk_id=first, relation="nonsense")
    with pytest.raises(ToolError, match="no such link"):
        call("get_linked_chunk", chunk_id=first, relation="next", place=5)
    with pytest.raises(ToolError, match="a passage id"):
        call("get_linked_chunk", chunk_id="c1; drop")


def test_documents_are_listed_filtered_and_counted(use: Any, cast: Cast) -> None:
    call = use()
    told = call("list_documents")
    assert [d["path"] for d in told["documents"]] == ["duties.py", "lamps.md"]
    assert told["total"] == 2
    assert call("list_documents", name_contains="lamps")["total"] == 1
    assert call("list_documents", document_type="none\x00such")["total"] == 0
    assert call("list_documents", page=99)["documents"] == []
    with pytest.raises(ToolError, match="Available: “Trade”"):
        call("list_documents", collections=["Other"])


def test_limited_document_is_in_no_tool_of_others(use: Any, cast: Cast) -> None:
    call, owner = use(), use("owner")
    lamps = Document.objects.current().filter(path="lamps.md").get()
    access.document_access_set(
        tenant=cast.tenant, actor=cast.actor("owner"), document=lamps, is_restricted=True, roles=["owner"]
    )
    ident = owner("search_documentation", query="lamps")["results"][0]["id"]
    assert call("search_documentation", query="lamps")["results"] == []
    assert [d["path"] for d in call("list_documents")["documents"]] == ["duties.py"]
    with pytest.raises(ToolError, match="does not exist"):
        call("get_linked_chunk", chunk_id=ident)


def test_tools_see_no_other_tenant_and_act_for_nobody_who_has_left(use: Any, cast: Cast) -> None:
    with tenant_scope(cast.other_tenant.pk):
        make_collection(cast.other_tenant, "Secret")
    call = use()
    with pytest.raises(ToolError, match="no collection “Secret”"):
        call("search_codebase", query="x", collections=["Secret"])
    Membership.objects.filter(pk=cast.member.pk).delete()
    for name, more in (
        ("search_documentation", {"query": "lamps"}),
        ("search_codebase", {"query": "lamps"}),
        ("search_codebase", {"query": "rate", "relation": "callers"}),
        ("list_documents", {}),
        ("get_linked_chunk", {"chunk_id": "c1"}),
    ):
        with pytest.raises(ToolError, match="no longer a member"):
            call(name, **more)
