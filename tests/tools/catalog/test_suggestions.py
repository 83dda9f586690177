"""Tools that fit a question: by their words first, and of equal ones the one that has worked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.conversations.toolset import bundle as conversation_tools
from apps.tools.catalog.suggestions import tools_suggest
from apps.tools.models import ToolEntry, ToolGrant
from runs.models import Run, ToolCall
from tenancy.scope import tenant_scope
from tests.cast import Cast
from toolloop.tools import Toolset, tool

pytestmark = pytest.mark.django_db


@tool
async def invoice_find(number: str) -> str:
    """Find an invoice by its number.

    Args:
        number: of the invoice.
    """
    return ""


@tool
async def invoice_search(number: str) -> str:
    """Find an invoice by its number.

    Args:
        number: of the invoice.
    """
    return ""


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    toolset = Toolset([*conversation_tools.TOOLSET, invoice_find, invoice_search])
    monkeypatch.setattr(conversation_tools, "TOOLSET", toolset)


def called(cast: Cast, name: str, status: str, times: int) -> None:
    with tenant_scope(cast.tenant.pk):
        run = Run.objects.create(tenant=cast.tenant, kind="t", model="m", status="completed")
        for number in range(times):
            ToolCall.objects.create(
                tenant=cast.tenant, run=run, step=number, call_id="c", name=name, status=status
            )


def suggested(cast: Cast, question: str = "Which invoice has number 7?", **values: Any) -> list[str]:
    with tenant_scope(cast.tenant.pk):
        found = tools_suggest(actor=cast.actor("member"), question=question, **values)
        return [one.tool.name for one in found]


def test_words_decide_and_history_breaks_the_tie(cast: Cast) -> None:
    called(cast, "invoice_find", "failed", 20)
    called(cast, "invoice_search", "succeeded", 20)
    called(cast, "invoice_search", "denied", 100)
    assert suggested(cast)[:2] == ["invoice_search", "invoice_find"]
    with tenant_scope(cast.tenant.pk):
        best = tools_suggest(actor=cast.actor("member"), question="invoice", limit=1)
    assert [one.why for one in best] == ["20 of 20 calls in the last 90 days succeeded"]
    assert suggested(cast, "What is 6*7? calculate")[0] == "calculate"


def test_what_one_may_not_call_is_not_suggested(cast: Cast) -> None:
    with tenant_scope(cast.tenant.pk):
        ToolGrant.objects.create(tenant=cast.tenant, effect="deny", target_kind="tool", target="invoice_find")
        ToolEntry.objects.create(tenant=cast.tenant, name="invoice_search", is_enabled=False)
    assert not {"invoice_find", "invoice_search"} & set(suggested(cast))


def test_nothing_fits_a_question_without_a_known_word(cast: Cast) -> None:
    assert suggested(cast, "zzqx qqvw") == []
    assert suggested(cast, "") == []


def page(cast: Cast, client: Client, role: str = "member", **query: str) -> str:
    client.force_login(cast.user(role))
    answer = client.get(reverse("tools:catalog", args=[cast.tenant.slug]), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_search_box_answers_a_sentence_with_what_may_fit(cast: Cast, client: Client) -> None:
    called(cast, "invoice_search", "succeeded", 20)
    shown = page(cast, client, q="which invoice has number 7?")
    assert "Close matches" in shown
    assert shown.index("invoice_search") < shown.index("invoice_find")
    assert "20 of 20 calls in the last 90 days succeeded" in shown
    assert "Close matches" not in page(cast, client, q="invoice")  # tools have that word
    assert "No matching tools" in page(cast, client, q="zzqx qqvw")
    narrowed = page(cast, client, q="which invoice has number 7?", calls="changes")
    assert "invoice_search" not in narrowed


def test_program_asks_for_suggestions(cast: Cast, client: Client) -> None:
    client.force_login(cast.user("member"))
    address = f"/api/v1/tools/suggestions?tenant={cast.tenant.slug}"
    client.defaults["HTTP_X_TENANT"] = cast.tenant.slug
    answer = client.get(address, {"question": "find an invoice", "limit": "1"})
    assert answer.status_code == 200, answer.content
    (one,) = answer.json()["results"]
    assert one["name"] in ("invoice_find", "invoice_search")
    assert one["effect"] == "allow"
    assert (one["calls"], one["succeeded"]) == (0, 0)
    wrongs = ({"question": ""}, {"question": "x" * 2_001}, {"question": "x", "limit": "0"})
    for wrong in wrongs:
        assert client.get(address, wrong).status_code == 400
    assert client.get(address).status_code == 400


def test_database_reads_do_not_grow_with_tools(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(tools: int) -> int:
        made = [replace(invoice_find, name=f"invoice_{n}") for n in range(tools)]
        monkeypatch.setattr(conversation_tools, "TOOLSET", Toolset(made))
        with CaptureQueriesContext(connection) as queries:
            suggested(cast)
        return len(queries)

    reads(1)  # the job that is asked for once is not counted
    assert reads(40) <= reads(5) + 2
