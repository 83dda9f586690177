"""What a workspace's MCP server offers: the tools of the policy, what the caller may read, and nothing more."""

from __future__ import annotations

import json
from concurrent.futures import Executor
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client

from apps.collections.models import Chunk, Collection, Document, DocumentAccess, Page
from apps.tools.mcp_server import calls, resources
from apps.tools.models import ToolGrant
from apps.tools.permissions.services import grant_create
from runs.approvals.services import call_decide
from runs.models import PendingDecision, Run, ToolCall
from tenancy.models import AuditEvent
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import LAMPS, ingest
from tests.conversations.support import make_library
from tests.factories import make_collection
from tests.tools.calls.test_calls import _work
from tests.tools.mcp_server.conftest import Send, key_of
from toolloop.deferred import Decision

pytestmark = pytest.mark.django_db(transaction=True)


def names(listed: dict[str, Any], of: str = "tools") -> set[str]:
    return {entry["name"] for entry in listed[of]}


def read(ask: Send, uri: str, **who: Any) -> Any:
    """Return the text at an address, or the error."""
    said = ask("resources/read", uri=uri, **who)
    return said["contents"][0]["text"] if "contents" in said else said


# --- what others have ------------------------------------------------------------------------------


def test_rows_of_another_workspace_are_nowhere(cast: Cast, ask: Send) -> None:
    theirs = make_library(_other(cast), "Secret plans", "plans.txt")
    listed = ask("resources/list")["resources"]
    assert listed == []
    missing = read(ask, "groundwork://documents/987654321")
    chunk = theirs.chunks[0].pk
    for uri in (
        f"collections/{theirs.collection.pk}",
        f"documents/{theirs.document.pk}",
        f"documents/{theirs.document.pk}/pages/1",
        f"chunks/{chunk}",
    ):
        said = read(ask, f"groundwork://{uri}")
        assert said["code"] == -32602
        assert said["data"]["code"] == "not_found"
        assert "Secret" not in json.dumps(said)
    assert read(ask, f"groundwork://documents/{theirs.document.pk}")["message"] == missing["message"]
    assert "Secret" not in read(ask, "groundwork://search?query=duty")


def _other(cast: Cast) -> Any:
    class Other:
        tenant = cast.other_tenant

    return Other()


def test_limited_document_is_not_there_for_others(cast: Cast, ask: Send, collection: Collection) -> None:
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "limited.md", LAMPS)
        Document.objects.update(is_restricted=True)
        DocumentAccess.objects.create(tenant=cast.tenant, document=document, user=cast.user("admin"))
        chunk = Chunk.objects.filter(document=document).first()
    assert chunk is not None
    for uri in (f"documents/{document.pk}", f"documents/{document.pk}/pages/1", f"chunks/{chunk.pk}"):
        assert read(ask, f"groundwork://{uri}", role="member")["data"]["code"] == "not_found"
        assert isinstance(read(ask, f"groundwork://{uri}", role="admin"), str)
    assert "limited.md" not in json.dumps(ask("resources/list", role="member"))
    assert "limited.md" in json.dumps(ask("resources/list", role="admin"))
    for uri in (
        "groundwork://search?query=LED%20lamps",
        f"groundwork://collections/{collection.pk}/search?query=lamps",
    ):
        assert json.loads(read(ask, uri, role="member"))["passages"] == []
        assert json.loads(read(ask, uri, role="admin"))["passages"]


def test_run_of_a_colleague_is_not_there(cast: Cast, ask: Send, with_pay: list[int]) -> None:
    run = ask("tools/call", name="pay", arguments={"amount": 1}, role="member")["structuredContent"]["run"]
    for who in ("owner", "admin"):
        assert read(ask, f"groundwork://runs/{run}", role=who)["data"]["code"] == "not_found"
        said = ask("tools/call", name="approval_result", arguments={"run": run}, role=who)
        assert said["data"]["code"] == "not_found"


# --- rights ---------------------------------------------------------------------------------------


def test_key_without_a_right_is_offered_nothing_of_it(cast: Cast, ask: Send) -> None:
    library = make_library(cast)
    few = {"scopes": ["run.read"]}
    assert ask("tools/list", **few)["tools"] == []
    assert ask("resources/list", **few)["resources"] == []
    assert ask("prompts/list", **few)["prompts"] == []
    for uri, right in (
        (f"documents/{library.document.pk}", "collection.read"),
        ("search?query=duty", "search.run"),
    ):
        said = read(ask, f"groundwork://{uri}", **few)
        assert said["data"] == {"code": "permission_denied", "status": 403, "details": {"action": right}}
    called = ask("tools/call", name="calculate", arguments={"expression": "1"}, **few)
    assert called["data"]["code"] == "permission_denied"
    prompt = ask("prompts/get", name="use_tools", **few)
    assert prompt["data"]["code"] == "permission_denied"


# --- tools ----------------------------------------------------------------------------------------


def test_tools_are_those_of_rest_and_one_for_approvals(cast: Cast, ask: Send) -> None:
    key = key_of(cast)
    rest = Client(headers={"Authorization": f"Bearer {key}"}).get("/api/v1/tools").json()["tools"]
    by_name = {t["function"]["name"]: t["function"] for t in rest}
    listed = {t["name"]: t for t in ask("tools/list")["tools"]}
    assert set(listed) - {"approval_result"} == set(by_name)
    for name, tool in by_name.items():
        assert listed[name]["inputSchema"] == tool["parameters"]
        assert listed[name]["description"] == tool["description"]
    assert listed["calculate"]["annotations"]["readOnlyHint"] is True


def test_allowed_call_runs_and_is_recorded_as_over_rest(cast: Cast, ask: Send) -> None:
    said = ask("tools/call", name="calculate", arguments={"expression": "6*7"})
    assert "42" in said["content"][0]["text"]
    assert said.get("isError", False) is False
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.get(pk=said["_meta"]["groundwork/run"])
        assert (run.kind, run.status, run.user_id) == ("tool_calls", "completed", cast.owner.user_id)
        row = ToolCall.objects.get(run=run)
        assert row.path == "mcp"
        assert (row.name, row.status, row.arguments) == ("calculate", "succeeded", {"expression": "6*7"})
        event = AuditEvent.objects.get(action="tool.execute", object_id=str(run.pk))
        assert event.api_key_id is not None


def test_denied_tool_is_neither_offered_nor_told_of(cast: Cast, ask: Send) -> None:
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    grant_create(**who, effect="deny", target_kind="tool", target="calculate")
    assert "calculate" not in names(ask("tools/list"))
    said = ask("tools/call", name="calculate", arguments={"expression": "1"})
    never = ask("tools/call", name="never_was", arguments={})
    assert said["code"] == never["code"] == -32602
    assert said["message"].startswith("There is no tool 'calculate'")


def test_denied_arguments_are_refused_with_the_reason(cast: Cast, ask: Send, with_pay: list[int]) -> None:
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    condition = [{"kind": "above", "argument": "amount", "value": 10}]
    with tenant_scope(cast.tenant.pk):
        ToolGrant.objects.filter(effect="ask").delete()
    grant_create(**who, effect="allow", target_kind="tool", target="pay")
    grant_create(**who, effect="deny", target_kind="tool", target="pay", arguments=condition)
    said = ask("tools/call", name="pay", arguments={"amount": 11})
    assert said["isError"]
    assert said["_meta"]["groundwork/error_code"] == "denied"
    assert "paid 9" in ask("tools/call", name="pay", arguments={"amount": 9})["content"][0]["text"]
    assert with_pay == [9]


@pytest.mark.parametrize("arguments", [{"amount": "much"}, {}, {"amount": 1, "to": "me"}], ids=str)
def test_wrong_arguments_are_told_so_that_a_model_can_mend_them(
    ask: Send, with_pay: list[int], arguments: dict[str, Any]
) -> None:
    said = ask("tools/call", name="pay", arguments=arguments)
    assert said["isError"]
    assert "do not fit pay" in said["content"][0]["text"]
    assert with_pay == []


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_asked_call_waits_and_its_result_is_there_when_it_was_decided(
    cast: Cast, ask: Send, with_pay: list[int], lane_threads: Executor, decision: Any
) -> None:
    said = ask("tools/call", name="pay", arguments={"amount": 5})
    facts = said["structuredContent"]
    assert facts["status"] == "waiting_for_approval"
    assert facts["decide_at"] == f"http://testserver/t/{cast.tenant.slug}/tools/approvals/"
    assert facts["decide_by_rest_at"] == f"http://testserver/api/v1/runs/{facts['run']}/decisions"
    assert facts["decide_at"] in said["content"][0]["text"]
    assert str(facts["run"]) in said["content"][0]["text"]
    assert "approval_result" in said["content"][0]["text"]
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.get(pk=facts["run"])

    @async_to_sync
    async def worked() -> None:
        await _work(run, lane_threads)

    worked()
    waiting = ask("tools/call", name="approval_result", arguments={"run": run.pk})
    assert "still waits" in waiting["content"][0]["text"]
    assert with_pay == []
    with tenant_scope(cast.tenant.pk):
        call_decide(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            run=run,
            decision_id=PendingDecision.objects.get(run=run).pk,
            decision=Decision(decision, reason="Too much."),
        )
    worked()
    ended = ask("tools/call", name="approval_result", arguments={"run": run.pk})
    by_uri = json.loads(read(ask, facts["result_at"]))
    assert with_pay == ([5] if decision == "approve" else [])
    expected = "paid 5" if decision == "approve" else "Too much."
    assert expected in ended["content"][0]["text"]
    assert expected in by_uri["text"]
    assert ended.get("isError", False) is (decision == "reject")
    assert by_uri["status"] == "completed"


@pytest.mark.parametrize("run", [0, -1, "7", True, 2**63, None], ids=str)
def test_number_of_a_run_that_is_none_is_an_error_in_words(ask: Send, run: Any) -> None:
    said = ask("tools/call", name="approval_result", arguments={"run": run})
    assert said["message"] == "Give the number of the run."


# --- resources -------------------------------------------------------------------------------------


@pytest.fixture
def document(cast: Cast, collection: Collection) -> Document:
    """A document of two pages that search finds."""
    with tenant_scope(cast.tenant.pk):
        found = ingest(cast, collection, "lamps.md", LAMPS)
        first = Page.objects.get(document=found)
        Page.objects.create(
            tenant=cast.tenant, document=found, number=2, text="The end.", char_start=len(first.text)
        )
    return found


def test_documents_are_read_whole_by_page_and_by_passage(ask: Send, document: Document) -> None:
    address = f"groundwork://documents/{document.pk}"
    pages = [read(ask, f"{address}/pages/{n}") for n in (1, 2)]
    assert pages[0].strip() == LAMPS.decode().strip()
    assert read(ask, address) == "".join(pages)
    wrong = ("/pages/3", "/pages/x", f"/pages/{2**31}", "/pages/" + "9" * 400, "/", "0", "/../1")
    for uri in [address + w for w in wrong] + [
        "groundwork://documents/1e3",
        "groundwork://nothing",
        "file:///etc/passwd",
        "x" * 9000,
    ]:
        assert read(ask, uri)["data"]["code"] == "not_found", uri


def test_long_document_says_where_it_goes_on(
    ask: Send, document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"groundwork://documents/{document.pk}"
    first = read(ask, f"{address}/pages/1")
    monkeypatch.setattr(resources, "MAX_TEXT", len(first) + 3)
    assert read(ask, address).startswith(first)
    assert f"{address}/pages/2" in read(ask, address)
    monkeypatch.setattr(resources, "MAX_TEXT", 10)
    cut = read(ask, f"{address}/pages/1")
    assert cut.startswith(first[:10])
    assert "was cut after 10" in cut


def test_search_cites_and_its_query_must_be_there(
    ask: Send, document: Document, collection: Collection
) -> None:
    everywhere = json.loads(read(ask, "groundwork://search?query=LED%20lamps"))
    here = json.loads(read(ask, f"groundwork://collections/{collection.pk}/search?query=LED%20lamps"))
    assert everywhere == here
    assert here["query"] == "LED lamps"
    best = here["passages"][0]
    assert (best["document"], best["document_uri"]) == ("lamps.md", f"groundwork://documents/{document.pk}")
    assert json.loads(read(ask, best["uri"]))["text"] == best["text"]
    assert read(ask, "groundwork://search")["data"]["code"] == "query_invalid"
    assert read(ask, "groundwork://search?query=" + "x" * 5000)["data"]["code"] == "query_invalid"
    assert read(ask, "groundwork://collections/987654/search?query=x")["data"]["code"] == "not_found"


def test_lists_come_in_pages_that_hold_everything_once(
    cast: Cast, ask: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(3):
        make_library(cast, f"L{i}", f"d{i}.txt")
    make_collection(cast.tenant, "Empty")
    for module in (calls, resources):
        monkeypatch.setattr(module, "PAGE", 2)
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(4):
        page = ask("resources/list", **cursor)
        assert len(page["resources"]) <= 2
        seen += [r["name"] for r in page["resources"]]
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert seen == ["L0", "L1", "L2", "Empty", "d0.txt", "d1.txt", "d2.txt"]
    named: list[str] = []
    cursor = {}
    while True:
        page = ask("tools/list", **cursor)
        named += [t["name"] for t in page["tools"]]
        assert len(page["tools"]) <= 2
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert named == sorted(set(named))
    assert {"approval_result", "calculate", "search_documents"} <= set(named)
    assert len(ask("resources/templates/list")["resourceTemplates"]) == 7


# --- prompts ---------------------------------------------------------------------------------------


def test_prompts_teach_the_callers_own_tools_and_bring_passages(
    ask: Send, document: Document, collection: Collection
) -> None:
    assert names(ask("prompts/list"), "prompts") == {"use_tools", "answer_from_documents"}
    guide = ask("prompts/get", name="use_tools", arguments={"question": "What do lamps pay?"})
    assert "# Using tools" in guide["messages"][0]["content"]["text"]
    assert guide["messages"][1]["content"]["text"] == "What do lamps pay?"
    said = ask(
        "prompts/get",
        name="answer_from_documents",
        arguments={"question": "What do lamps pay?", "collection": collection.name.upper()},
    )
    *passages, question = said["messages"]
    assert any("two percent" in p["content"]["resource"]["text"] for p in passages)
    assert question["content"]["text"].startswith("What do lamps pay?")
    nameless = ask("prompts/get", name="nonsense")
    assert "There are: use_tools, answer_from_documents" in nameless["message"]
    assert ask("prompts/get", name="answer_from_documents")["data"]["code"] == "invalid"
    gone = ask(
        "prompts/get", name="answer_from_documents", arguments={"question": "x", "collection": "Nowhere"}
    )
    assert gone["data"]["code"] == "not_found"
