"""The page of a tool: a call tried from its form, checked, run, parked; what it shows to whom."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.conversations.toolset import bundle as conversation_tools
from apps.tools.catalog.selectors import Choice, catalog_facets, catalog_narrow, catalog_read
from apps.tools.catalog.services import entry_set
from apps.tools.permissions.services import grant_create
from apps.tools.playground.results import MAX_SHOWN, result_view
from runs.models import ToolCall
from tenancy.scope import tenant_scope
from tests.cast import Cast
from toolloop.tools import Tool, Toolset, tool

pytestmark = pytest.mark.django_db(transaction=True)
made: list[Any] = []


@tool(side_effects=True)
def send_letter(to: list[str], urgent: bool = False) -> dict[str, Any]:
    """Send a letter.

    Args:
        to: who gets it.
        urgent: whether it goes by express.
    """
    made.append((to, urgent))
    return {"sent": len(to), "urgent": urgent}


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    made.clear()
    monkeypatch.setattr(conversation_tools, "TOOLSET", Toolset([*conversation_tools.TOOLSET, send_letter]))


def client_of(cast: Cast, role: str) -> Client:
    client = Client(headers={"HX-Request": "true"})
    client.force_login(cast.user(role), "django.contrib.auth.backends.ModelBackend")
    return client


def send(cast: Cast, role: str = "member", tool: str = "calculate", **values: str) -> str:
    url = reverse("tools:tool-try", args=[cast.tenant.slug, tool])
    response = client_of(cast, role).post(url, values)
    assert response.status_code == 200
    return str(response.content.decode())


def test_call_is_checked_without_being_run(cast: Cast) -> None:
    assert "This call would run." in send(cast, **{"do": "check", "/expression": "6*7"})
    assert "wait for approval" in send(
        cast, tool="send_letter", **{"do": "check", "/to#": "1", "/to/0": "Ada"}
    )
    with tenant_scope(cast.tenant.pk):
        grant_create(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            effect="deny",
            target_kind="tool",
            target="calculate",
            subject_kind="role",
            subject="viewer",
        )
        assert not ToolCall.objects.exists()
    assert "would be denied" in send(cast, "viewer", **{"do": "check", "/expression": "6*7"})
    assert "would be denied" in send(
        cast, "admin", **{"do": "check", "/expression": "6*7", "subject": "role:viewer"}
    )
    assert made == []


def test_call_runs_and_its_result_is_shown(cast: Cast) -> None:
    assert "42" in send(cast, **{"do": "run", "/expression": "6*7"})
    with tenant_scope(cast.tenant.pk):
        grant_create(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            effect="allow",
            target_kind="tool",
            target="send_letter",
            subject_kind="member",
            subject=str(cast.member.user_id),
        )
    asked = send(
        cast,
        tool="send_letter",
        **{"do": "run", "/to#": "2", "/to/0": "Ada", "/to/1": "Alan", "/urgent": "true"},
    )
    assert (
        "The call is waiting" in asked
    )  # the workspace asks about what changes something, and ask beats allow
    assert made == []


def test_problem_stands_at_its_input_and_nothing_runs(cast: Cast) -> None:
    page = send(cast, tool="send_letter", **{"do": "run", "/to#": "2", "/to/0": "Ada", "/to/1": ""})
    assert page.count("This field is required.") == 1
    assert 'aria-invalid="true"' in page
    with tenant_scope(cast.tenant.pk):
        assert not ToolCall.objects.exists()


def test_form_and_json_change_into_each_other(cast: Cast) -> None:
    text = send(cast, tool="send_letter", **{"do": "json", "/to#": "1", "/to/0": "Ada"})
    assert "&quot;Ada&quot;" in text
    back = send(
        cast,
        tool="send_letter",
        do="form",
        mode="json",
        json=json.dumps({"to": ["Ada", "Alan"], "urgent": True}),
    )
    assert 'name="/to/1"' in back
    assert "Alan" in back
    assert "valid JSON:" in send(cast, do="run", mode="json", json="{")
    assert "one JSON object" in send(cast, do="run", mode="json", json="[]")
    assert "unknown" in send(cast, do="run", mode="json", json='{"expression": "1", "nothing": 1}')
    assert "42" in send(cast, do="run", mode="json", json='{"expression": "6*7"}')
    more = send(cast, tool="send_letter", **{"do": "add:/to", "/to#": "1", "/to/0": "Ada"})
    assert 'name="/to/1"' in more
    assert "This field is required" not in more


def test_page_tells_managers_who_may_call_it_and_others_not(cast: Cast) -> None:
    url = reverse("tools:tool", args=[cast.tenant.slug, "calculate"])
    first = client_of(cast, "admin").get(url).content.decode()
    assert "Who can call it" in first
    assert "This field is required" not in first
    page = client_of(cast, "member").get(url).content.decode()
    assert "Who can call it" not in page
    assert "Your recent calls" in page
    assert (
        client_of(cast, "member").get(reverse("tools:tool", args=[cast.tenant.slug, "none"])).status_code
        == 404
    )


def test_recent_calls_of_others_are_not_shown(cast: Cast) -> None:
    send(cast, "owner", **{"do": "run", "/expression": "6*7"})
    url = reverse("tools:tool", args=[cast.tenant.slug, "calculate"])
    assert "Not called yet" in client_of(cast, "member").get(url).content.decode()
    assert cast.user("owner").email in client_of(cast, "admin").get(url).content.decode()


def test_catalog_is_searched_and_narrowed(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        entry_set(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            name="calculate",
            title="Sums",
            tags=["maths"],
            is_enabled=False,
        )
        tools = catalog_read(actor=cast.actor("member"))
    names = lambda **choice: [t.name for t in catalog_narrow(tools, Choice(**choice))]  # noqa: E731
    assert names(q="sums")[0] == "calculate"
    assert names(q="LETTER send") == ["send_letter"]
    assert names(tag="maths") == names(state="off") == ["calculate"]
    for narrowed in (names(calls="changes"), names(effect="ask")):
        assert "send_letter" in narrowed
        assert "search_documents" not in narrowed
    assert set(names(source="collections")) >= {"search_documents", "send_letter"}
    assert names(q="nothing at all") == []
    assert catalog_facets(tools).tags["maths"] == 1


def test_catalog_of_500_tools_asks_and_takes_as_little(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    many = [
        Tool(f"tool_{n}", f"Do the {n}th thing.", {"type": "object", "properties": {}}, lambda: "")
        for n in range(500)
    ]
    monkeypatch.setattr(conversation_tools, "TOOLSET", Toolset(many))
    client = client_of(cast, "owner")
    url = reverse("tools:catalog", args=[cast.tenant.slug])
    with django_assert_max_num_queries(12):
        page = client.get(url, {"q": "tool_"}).content.decode()
    assert "1 to 50 of 500" in page


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ('{"a": 1, "b": "x"}', "pairs"),
        ('[{"a": 1}, {"a": 2, "b": 3}]', "table"),
        ('{"a": {"b": 1}}', "text"),
        ("[]", "text"),
        ("plain words", "text"),
        ('"quoted"', "text"),
        ("x" * (MAX_SHOWN + 1), "text"),
    ],
    ids=["object", "rows", "nested", "empty", "words", "string", "long"],
)
def test_result_is_shown_as_what_it_is(content: str, kind: str) -> None:
    view = result_view(content)
    assert view.kind == kind
    assert len(view.text) <= MAX_SHOWN
    assert view.is_cut == (len(content) > MAX_SHOWN)
