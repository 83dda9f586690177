"""A second person approves in the inbox, and the chat of who asked goes on by itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from apps.tools.limits.counting import calls_take
from apps.tools.limits.services import tool_limit_set
from apps.tools.permissions.services import grant_create
from apps.tools.policy.engine import Subject
from tenancy.scope import tenant_scope
from tests.browser.conftest import sign_in
from tests.browser.portal import READY_MS, Portal, paper
from tests.browser.test_accessibility import Looking
from tests.cast import Cast
from webhooks.services import delivery_failed, webhook_create, webhook_ping

MODEL = "fake-search-words40-gap15"
RULES = [f"Section {n}. The proof of origin of lot {n} is kept for {n + 3} years." for n in (1, 2)]


@pytest.fixture
def asked(portal: Portal, cast: Cast) -> Portal:
    """The member's chat, whose search waits for an admin."""
    grant_create(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        effect="ask",
        target_kind="tool",
        target="search_documents",
        approver_kind="role",
        approver="admin",
        note="Searches are looked at first.",
    )
    portal.create_collection("Entry rules")
    content = paper(title="Rules of entry", paragraphs=RULES)
    portal.upload({"name": "rules.pdf", "mimeType": "application/pdf", "buffer": content})
    portal.expect_ready("rules.pdf")
    portal.open()
    portal.ask("How long is the proof of origin of lot 2 kept?", MODEL)
    return portal


def test_chat_goes_on_when_a_second_person_has_approved_in_the_inbox(
    asked: Portal, new_page: Callable[..., Page], cast: Cast
) -> None:
    inbox = new_page()
    sign_in(inbox, cast.user("admin").email)
    inbox.goto(f"/t/{asked.slug}/tools/approvals/")
    card = asked.page.locator(".decide")
    expect(card).to_contain_text("is waiting for an admin or owner to approve it", timeout=READY_MS)
    expect(card.get_by_role("button")).to_have_count(0)
    call = inbox.locator(".inbox li")  # comes without a reload, whichever was first
    expect(call).to_have_count(1, timeout=READY_MS)
    expect(call).to_contain_text("search_documents")
    expect(inbox.locator("#approvals-waiting-a .count")).to_have_text("1 to decide")  # so does this
    # The stream draws the form that approves several; without its token the answer would be a 403.
    expect(inbox.locator("#approve-many input[name=csrfmiddlewaretoken]")).to_have_count(1)
    call.get_by_role("link").click()
    expect(inbox.get_by_role("heading", name="Allow search_documents to run?")).to_be_visible()
    box = inbox.get_by_label("Arguments")
    box.fill(box.input_value().replace("lot 2", "lot 1"))
    inbox.get_by_role("button", name="Approve").click()
    expect(inbox.get_by_text("search_documents is approved.")).to_be_visible()
    expect(inbox.get_by_text("Nothing needs your decision")).to_be_visible()
    asked.wait_end()
    expect(asked.answer).to_have_text(re.compile(r"(\S+\s+){10}"))
    decided = asked.page.locator(".decided li")
    expect(decided).to_contain_text(f"approved by {cast.user('admin')}")
    expect(decided.locator("ins")).to_contain_text("lot 1")
    expect(asked.page.locator(".decide")).to_have_count(0)


def test_pages_pass_axe_and_fit_the_window(asked: Portal, new_page: Callable[..., Page], cast: Cast) -> None:
    problems: list[str] = []
    expect(asked.page.locator(".decide")).to_have_count(1, timeout=READY_MS)
    _limits_and_webhooks(cast)
    base = f"/t/{asked.slug}"
    owner = Looking(new_page(bypass_csp=True), problems)
    sign_in(owner.page, cast.user("owner").email)
    owner.at({"approvals": f"{base}/tools/approvals/"})
    owner.page.locator(".inbox a").first.click()
    owner.page.wait_for_url(re.compile(r"/approvals/\d+/"))
    owner.here("approval")
    paths = ("tools/limits/", "tools/approvals/?box=decided", "settings/webhooks/")
    owner.at({re.sub(r"\W+", "-", path): f"{base}/{path}" for path in paths})
    owner.page.locator(".tbl a").first.click()
    owner.page.wait_for_url(re.compile(r"/webhooks/\d+/"))
    owner.here("webhook")
    member = Looking(new_page(bypass_csp=True), problems)
    sign_in(member.page, cast.user("member").email)
    member.at({"chat-waiting": asked.page.url, "approvals-waiting": f"{base}/tools/approvals/?box=waiting"})
    assert problems == []


def _limits_and_webhooks(cast: Cast) -> None:
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    limits: tuple[tuple[int, dict[str, Any]], ...] = (
        (40, {"kind": "member", "period": "day"}),
        (12, {"kind": "tenant", "period": "month", "target_kind": "tool", "target": "calculate"}),
        (500, {"kind": "tenant", "period": "minute", "target_kind": "group", "target": "files"}),
    )
    for calls, values in limits:
        tool_limit_set(**who, calls=calls, **values)
    with tenant_scope(cast.tenant.pk):
        for _ in range(12):
            calls_take(cast.tenant.pk, Subject("member", cast.user("member").pk, None), "calculate", [])
    hook, _ = webhook_create(
        **who,
        url="https://93.184.216.34/hooks/groundwork",
        events=["run.finished", "approval.needed"],
        description="Chat of the team",
    )
    failed = webhook_ping(**who, pk=hook.pk)
    with tenant_scope(cast.tenant.pk):
        delivery_failed(tenant_id=cast.tenant.pk, delivery_pk=failed.pk)
