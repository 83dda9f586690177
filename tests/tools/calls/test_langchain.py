"""``system=langchain``: the same tools and the same calls through langchain-core, with the same answer."""

from __future__ import annotations

import builtins
import json
import threading
from typing import Any

import pytest
from django.test import Client

from apps.conversations.toolset import bundle as conversation_tools
from runs.models import ToolCall
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.patience import PATIENCE_S
from toolloop.tools import ToolError, Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)
CALLS = 4
meeting = threading.Barrier(CALLS)


@tool(blocking=True)
def meet(number: int) -> str:
    """Wait until all others have come.

    Args:
        number: whose turn it is.
    """
    meeting.wait(timeout=PATIENCE_S)  # broken, and so an error, unless all of them run at the same time
    return f"met {number}"


@tool
async def fail() -> str:
    """Fail."""
    raise ToolError("It cannot be done.")


@pytest.fixture
def client(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Client:
    meeting.reset()
    monkeypatch.setattr(conversation_tools, "TOOLSET", Toolset([*conversation_tools.TOOLSET, meet, fail]))
    made = Client(headers={"x-tenant": cast.tenant.slug})
    made.force_login(cast.user("member"), backend="django.contrib.auth.backends.ModelBackend")
    return made


def execute(client: Client, query: str, *calls: tuple[str, Any]) -> Any:
    made = [
        {
            "id": f"c{i}",
            "type": "function",
            "function": {"name": n, "arguments": a if isinstance(a, str) else json.dumps(a)},
        }
        for i, (n, a) in enumerate(calls)
    ]
    return client.post(f"/api/v1/tools/execute{query}", {"tool_calls": made}, content_type="application/json")


@pytest.mark.parametrize("query", ["", "?system=native", "?system=langchain", "?use_langchain=true"])
def test_calls_of_one_request_run_at_the_same_time(client: Client, cast: Cast, query: str) -> None:
    said = execute(client, query, *[("meet", {"number": n}) for n in range(CALLS)]).json()
    assert [m["content"] for m in said["messages"]] == [f"met {n}" for n in range(CALLS)]
    with tenant_scope(cast.tenant.pk):
        assert ToolCall.objects.filter(run=said["run"], status="succeeded").count() == CALLS


def test_both_systems_give_the_same_answer(client: Client) -> None:
    calls: Any = [
        ("calculate", {"expression": "6*7"}),
        ("calculate", {"expression": "6*"}),
        ("calculate", {}),
        ("fail", {}),
        ("calculate", "{"),
        ("list_documents", {}),
        ("nothing", {}),
        ("search_documents", {"query": "x", "nonsense": 1}),
    ]
    native, theirs, spelled = (
        execute(client, query, *calls).json()
        for query in ("?system=native", "?system=langchain", "?use_langchain=true")
    )
    assert native["messages"] == theirs["messages"] == spelled["messages"]
    assert {m["error_code"] for m in native["messages"]} >= {
        "",
        "invalid_arguments",
        "tool_error",
        "unknown_tool",
    }


def test_both_systems_list_the_same_tools(client: Client) -> None:
    native, theirs = (client.get(f"/api/v1/tools?system={s}").json() for s in ("native", "langchain"))
    assert native["tools"]
    assert native == theirs
    assert client.get("/api/v1/tools?use_langchain=true").json() == native


@pytest.mark.parametrize(
    "query", ["?system=other", "?use_langchain=perhaps", "?system=native&use_langchain=true"]
)
def test_wrong_system_is_refused(client: Client, query: str) -> None:
    for response in (client.get(f"/api/v1/tools{query}"), execute(client, query, ("fail", {}))):
        assert response.status_code == 400
        assert response.json()["details"]["fields"]


def test_server_without_langchain_says_how_to_get_it(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("langchain"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for response in (
        client.get("/api/v1/tools?system=langchain"),
        execute(client, "?use_langchain=true", ("fail", {})),
    ):
        assert response.status_code == 400
        assert response.json()["code"] == "langchain_missing"
        assert "pip install -r requirements/langchain.txt" in response.json()["message"]
    assert execute(client, "", ("fail", {})).status_code == 200
    with tenant_scope(cast.tenant.pk):
        assert ToolCall.objects.count() == 1
