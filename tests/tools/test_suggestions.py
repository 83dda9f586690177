"""Tools that fit a question: by their words first, and of equal ones the one that has worked."""

from __future__ import annotations

from typing import Any

import pytest

from apps.conversations import tools as conversation_tools
from apps.tools.models import ToolEntry, ToolGrant
from apps.tools.suggestions import tools_suggest
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


def suggested(
    cast: Cast, question: str = "Which invoice has number 7?", **values: Any
) -> list[str]:
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
        ToolGrant.objects.create(tenant=cast.tenant, effect="deny", target_kind="tool", target="invoice_find")  # fmt: skip
        ToolEntry.objects.create(tenant=cast.tenant, name="invoice_search", is_enabled=False)
    assert not {"invoice_find", "invoice_search"} & set(suggested(cast))


def test_nothing_fits_a_question_without_a_known_word(cast: Cast) -> None:
    assert suggested(cast, "zzqx qqvw") == []
    assert suggested(cast, "") == []
