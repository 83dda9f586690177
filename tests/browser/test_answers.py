"""An answer with a plan and a form: its panel, what is said about it, its trace, and asking on at a click."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from playwright.sync_api import Page, expect

from apps.conversations.answering.closing import turn_close
from apps.conversations.assistants import services as assistants_services
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.models import Conversation, Turn
from apps.conversations.turns import conversations
from runs.models import Run, RunStatus, RunStep, ToolCall
from tenancy.scope import tenant_scope
from tests.browser.conftest import sign_in
from tests.browser.test_accessibility import ALL_LOOKS, LOOKS, examine
from tests.cast import Cast
from tests.conversations.support import make_library

STEPS = [
    {"action": "search_documents", "description": "Find the duty on cars", "inputs": {}},
    {"action": "check_agency", "description": "Ask which agencies are concerned", "inputs": {}},
    {"action": "search_documents", "description": "Find how long papers are kept", "inputs": {}},
]


def answered(cast: Cast) -> Conversation:
    """Return a conversation whose one answer was planned and has a form."""
    library = make_library(cast, "Trade", "Duties 2026.pdf")
    first, second, _ = (chunk.pk for chunk in library.chunks)
    value = {
        "schema_version": "1.0",
        "answer": f"Cars of heading 8703 pay **2.5 percent** [c{first}]. The notice period is 45 days [c{second}].",
        "hts_codes": ["8703.23", "8703.24.01"],
        "agencies": [
            {"agency": "CBP", "needs": f"Entry summary [c{second}]"},
            {"agency": "EPA", "needs": "Declaration 3520-1"},
        ],
        "citations": [f"c{first}", f"c{second}", "c999999"],
        "confidence": "medium",
        "follow_up_questions": ["What do trucks pay?", "How long are quotes kept?"],
    }
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    with tenant_scope(cast.tenant.pk), transaction.atomic():
        who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}
        spec = VersionSpec(
            mode="planned", model="extractive", output="schema", output_schema=schema, output_name="t"
        )
        clerk = assistants_services.assistant_create(**who, name="Clerk", spec=spec)
        version = assistants_services.version_publish(**who, assistant=clerk, number=1).published
        conversation = conversations.conversation_create(**who)
        run = Run.objects.create(
            tenant=cast.tenant,
            user=cast.user("member"),
            kind="conversation",
            model="anthropic/claude-sonnet-5",
            status=RunStatus.COMPLETED,
            answer=json.dumps(value),
            usage={"input_total": 5120, "output_total": 611, "requests": 4},
        )
        turn = Turn.objects.create(
            tenant=cast.tenant,
            conversation=conversation,
            run=run,
            index=0,
            assistant_version=version,
            client_id="6f0e6c9c-64a5-4c35-a0c3-6a1d2f8f7b12",
        )
        turn.messages.create(tenant=cast.tenant, author="user", text="What do cars pay?")
        Conversation.objects.filter(pk=conversation.pk).update(head=turn, title="Duty on cars")
        rows = [
            {
                "chunk_id": c.pk,
                "document_id": c.document_id,
                "document": library.document.name,
                "collection": "Trade",
                "page": c.page_start,
                "char_start": c.char_start,
                "text": c.text,
                "score": 0.9,
                "vector_rank": 1,
                "lexical_rank": 2,
            }
            for c in library.chunks
        ]
        made: list[tuple[str, str, Any, Any]] = [
            (
                "plan",
                "succeeded",
                {"reasoning": "The duty first, then who is concerned.", "steps": STEPS},
                None,
            ),
            (
                "search_documents",
                "succeeded",
                {"query": "duty on cars"},
                {"summary": "3 passages", "results": rows},
            ),
            ("check_agency", "failed", {"code": "8703"}, None),
            (
                "search_documents",
                "succeeded",
                {"query": "keeping papers"},
                {"summary": "3 passages", "results": rows},
            ),
        ]
        for step, (name, status, arguments, payload) in enumerate(made):
            RunStep.objects.create(
                tenant=cast.tenant, run=run, index=step, turn={"model": "claude-sonnet-5", "stop": "tools"}
            )
            ToolCall.objects.create(
                tenant=cast.tenant,
                run=run,
                step=step,
                call_id=f"call_{step}",
                name=name,
                status=status,
                arguments=arguments,
                payload=payload,
                content="It is out of order." if payload is None else "found",
                duration_ms=400 + step,
            )
        turn_close(run)
    return conversation


@pytest.mark.parametrize("look", LOOKS)
def test_panel_plan_and_trace_are_readable(new_page: Callable[..., Page], cast: Cast, look: str) -> None:
    problems: list[str] = []
    conversation = answered(cast)
    page = new_page(bypass_csp=True, **ALL_LOOKS[look])
    sign_in(page, cast.user("member").email)
    page.goto(f"/t/{cast.tenant.slug}/chat/{conversation.pk}/")
    article = page.locator(".asst")
    expect(article.get_by_role("heading", name="HTS codes")).to_be_visible()
    expect(article.get_by_text("8703.24.01")).to_be_visible()
    expect(article.get_by_text("Confidence: medium")).to_be_visible()
    expect(article.locator(".nosrc[id]")).to_have_count(2)
    expect(article.locator("td .nosrc").first).to_be_visible()
    expect(article.locator(".unbacked > summary")).to_contain_text(
        "2 of 3 sentences are not backed by a source"
    )
    expect(article).not_to_contain_text("schema_version")
    page.locator(".plan > summary").click()
    expect(article.get_by_text("Ask which agencies are concerned")).to_be_visible()
    expect(page.locator(".plan li").nth(1)).to_contain_text("Failed:")
    examine(page, "answer", look, problems)
    article.get_by_role("button", name="Trace").click()
    trace = page.locator("#refs-trace")
    expect(trace.get_by_role("heading", name="What do cars pay?")).to_be_visible()
    expect(trace).to_contain_text("5,120 in")
    trace.locator(".tcall > summary").nth(1).click()
    expect(trace.get_by_role("columnheader", name="Passage")).to_be_visible()
    examine(page, "answer-trace", look, problems)
    assert problems == []


def test_follow_up_is_asked_at_a_click_and_a_draft_is_kept(new_page: Callable[..., Page], cast: Cast) -> None:
    conversation = answered(cast)
    page = new_page()
    sign_in(page, cast.user("member").email)
    page.goto(f"/t/{cast.tenant.slug}/chat/{conversation.pk}/")
    box = page.get_by_label("Message")
    box.fill("My own words")
    page.get_by_role("button", name="How long are quotes kept?").click()
    expect(box).to_have_value("My own words\nHow long are quotes kept?")
    box.fill("")
    page.get_by_role("button", name="What do trucks pay?").click()
    expect(page.locator(".user").last).to_have_text(re.compile("What do trucks pay\\?"))
