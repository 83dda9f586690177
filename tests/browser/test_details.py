"""The details of the chat that people notice (docs/portal.md), several in one walk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from apps.collections.collection.services import collection_create
from apps.collections.documents.services import document_upload
from apps.collections.models import Document
from apps.conversations.assistants.examples import example_read
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.services import assistant_create, version_publish
from apps.tools.permissions.services import grant_create
from tenancy.scope import tenant_scope
from tests.browser.conftest import MODELS, Site, sign_in
from tests.browser.portal import READY_MS, Portal, assert_like_fresh
from tests.cast import Cast
from tests.servers import wait_for

SHORT = "fake-search-words40-gap15"
LONG = "fake-words600-gap10"
SAID = "fake-said"
NOTICE = b"# Notice of entry\n\nThe notice period is thirty days from the first of the month.\n"
STEPS = [
    {"action": "search_documents", "description": "Find the notice period"},
    {"action": "calculate", "description": "Reckon the last day"},
    {"action": "search_documents", "description": "Look for exceptions"},
]
CALLS: list[dict[str, Any]] = [
    {"name": "plan", "arguments": {"reasoning": "First the rule, then the day.", "steps": STEPS}},
    {"name": "search_documents", "arguments": {"query": "notice period"}},
    {"name": "calculate", "arguments": {"expression": "1+30"}},
    {"name": "search_documents", "arguments": {"query": "exceptions"}},
]
BOTTOM = "() => { const m = document.getElementById('msgs'); return m.scrollHeight - m.clientHeight - m.scrollTop; }"
TOP = "() => document.getElementById('msgs').scrollTop"


@pytest.fixture
def noticed(portal: Portal, cast: Cast) -> Portal:
    """A workspace with one ready document, at the start page of the chat."""
    document_ready(cast, "Notices", "notice.md", NOTICE)
    portal.open()
    return portal


def document_ready(cast: Cast, collection: str, name: str, content: bytes, kind: str = "") -> None:
    tenant, actor = cast.tenant, cast.actor("member")
    with tenant_scope(tenant.pk):
        made = collection_create(tenant=tenant, actor=actor, name=collection)
        document: Any = document_upload(
            tenant=tenant, actor=actor, collection=made, name=name, chunks=[content]
        ).document

        def is_ready() -> bool:
            document.refresh_from_db()
            return bool(document.status == "ready")

        wait_for(is_ready, what="the document")
        if kind:
            Document.objects.filter(pk=document.pk).update(document_type=kind)


@pytest.fixture
def says(site: Site) -> Iterator[Callable[..., None]]:
    """Tell model servers what to say, until the test is over."""
    replies = site.model_server.replies

    def tell(model: str, reply: Callable[[dict[str, Any]], Any]) -> None:
        replies[model] = reply

    yield tell
    replies.clear()


def by_turns(calls: list[dict[str, Any]], then: str | None = None) -> Callable[..., Any]:
    """Make one call after the other, then say ``then``, or as many words as the model's name tells."""

    def reply(body: dict[str, Any]) -> list[dict[str, Any]] | str | None:
        done = sum(message["role"] == "tool" for message in body["messages"])
        return [calls[done]] if body.get("tools") and done < len(calls) else then

    return reply


def test_question_is_sent_at_once_and_the_reader_moves_the_page_alone(noticed: Portal) -> None:
    """Details 1, 2 and 4."""
    page = noticed.page
    page.set_viewport_size({"width": 700, "height": 480})
    noticed.ask("What is the notice period?", SHORT)
    noticed.wait_end()
    noticed.choose_model(f"compatible/{LONG}")
    held: list[Route] = []
    page.route("**/turns/", lambda route: held.append(route), times=1)
    noticed.box.fill("Tell me everything")
    noticed.box.press("Enter")
    sending = page.locator(".user.pending")
    expect(sending).to_contain_text("Tell me everything")
    expect(sending).to_contain_text("Sending")
    expect(noticed.box).to_have_value("")
    wait_for(
        lambda: page.evaluate("true") and held, what="the post, which the browser sends after it has shown it"
    )
    held[0].continue_()
    expect(sending).to_have_count(0)

    def top_of_question() -> float:
        at: float = noticed.turns.last.locator(".user").evaluate(
            "(el) => el.getBoundingClientRect().top - document.getElementById('msgs').getBoundingClientRect().top"
        )
        return at

    noticed.wait_words(150)  # more than fits beneath the question
    assert 0 <= top_of_question() < 60
    jump = page.get_by_role("button", name="Jump to latest")
    expect(jump).to_be_visible()
    jump.click()
    noticed.wait_words(220)
    wait_for(lambda: page.evaluate(BOTTOM) < 5, what="the end of the page, which grows")
    page.locator("#msgs").hover()
    page.mouse.wheel(0, -120)
    expect(jump).to_be_visible()
    noticed.wait_words(260)
    before = page.evaluate(TOP)
    noticed.wait_words(320)
    assert page.evaluate(TOP) == before
    page.keyboard.press("Escape")
    noticed.wait_end()
    assert_like_fresh(noticed)


def test_plan_lives_while_it_is_carried_out_and_waits_for_a_word(
    noticed: Portal, cast: Cast, says: Callable[..., None]
) -> None:
    """Details 13 and 14, and the plan: its steps change their state on the page, a reload changes nothing."""
    for model in MODELS:
        says(model, by_turns(CALLS))
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("owner")}
    grant_create(**who, effect="ask", target_kind="tool", target="calculate", note="Days count.")
    with tenant_scope(cast.tenant.pk):
        made = assistant_create(**who, name="Planner", spec=VersionSpec(mode="planned"))
        version_publish(**who, assistant=made, number=1)
    noticed.open("chat/?assistant=planner")
    noticed.watch()
    noticed.ask("Until when may I object?")
    page, turn = noticed.page, noticed.turns.last
    plan = turn.locator(".plan")
    steps = plan.locator("li")
    for _ in range(2):  # as it came, and after a reload
        card = turn.locator(".decide")
        expect(card).to_contain_text("Allow calculate to run?", timeout=READY_MS)
        expect(card).to_contain_text("Days count.")
        expect(plan).to_have_attribute("open", "")
        expect(plan.locator("summary")).to_contain_text("Reckon the last day")
        for step, state in zip(steps.all(), ("Done:", "Waiting for a decision:", "To do:"), strict=True):
            expect(step).to_contain_text(state)
        calls = turn.locator("details.tool")
        expect(calls).to_have_count(2)
        expect(calls.first).to_contain_text("Done:")
        expect(calls.first).to_contain_text("1 passage")
        expect(calls.first.locator("summary .num")).to_have_text(re.compile(r"\d m?s$"))
        expect(calls.first).not_to_have_attribute("open", "")
        expect(calls.last).to_contain_text("Waiting for a decision:")
        side = page.locator("#recent-a a")
        expect(side).to_contain_text("Waiting for a decision", timeout=READY_MS)
        page.reload()
    expect(turn.locator(".decide")).to_have_count(1)
    page.get_by_role("button", name="Approve").press("Enter")
    noticed.wait_end()
    expect(plan.locator("summary")).to_contain_text("3 of 3 steps done")
    for step in steps.all():
        expect(step).to_contain_text("Done:")
    expect(turn.locator(".decided")).to_contain_text("approved")
    calls.last.locator("summary").click()
    expect(calls.nth(1).locator(".io")).to_be_hidden()
    assert noticed.watched()["doubled"] == []
    assert_like_fresh(noticed)


def test_answer_is_copied_whole_and_in_parts_and_a_source_is_seen_before_it_is_opened(
    noticed: Portal, says: Callable[..., None]
) -> None:
    """Details 9, 10 and 17."""
    page = noticed.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def reply(body: dict[str, Any]) -> str | list[dict[str, Any]]:
        found = re.findall(r"\bc\d+\b", json.dumps([m for m in body["messages"] if m["role"] == "tool"]))
        if not found:
            return [{"name": "search_documents", "arguments": {"query": "notice period"}}]
        return (
            f"**Thirty days** is the notice period [{found[0]}].\n\n| Case | Days |\n|---|--:|\n| Usual [{found[0]}] | $30$ |\n\n"
            "```python\nlast = first + 30\n```\n\nSo it is\n$$\nd = 30\n$$"
        )

    says(SAID, reply)
    noticed.ask("What is the notice period?", SAID)
    noticed.wait_end()

    def copied() -> str:
        text: str = page.evaluate("navigator.clipboard.readText()")
        return text

    for name, what in (("table", "Case\tDays\nUsual\t$30$"), ("code", "last = first + 30\n")):
        button = noticed.answer.get_by_role("button", name=f"Copy this {name}")
        button.focus()
        button.press("Enter")
        expect(button).to_have_attribute("data-done", "")
        assert copied() == what
    page.get_by_role("button", name="Copy the answer with its sources").click()
    expect(page.locator("#announce")).to_have_text("Answer copied")
    whole = copied()
    assert whole.startswith("**Thirty days** is the notice period [1].")
    assert "Sources:" in whole
    assert "- [1] notice.md (Notices" in whole
    expect(noticed.answer.locator("math[display=block]")).to_be_visible()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.blk:has(math[display])'))")
    page.keyboard.press("ControlOrMeta+c")
    assert copied() == "$$\nd = 30\n$$"
    page.evaluate("getSelection().removeAllRanges()")
    noticed.answer.get_by_role("button", name="Wrap lines").click()
    expect(page.locator("html")).to_have_attribute("data-wrap", "")

    marker, preview = noticed.answer.locator("button.cite").first, page.locator("#cite-pop")
    marker.hover()
    expect(preview).to_contain_text("notice.md")
    expect(preview).to_contain_text("The notice period is thirty days")
    page.locator("#conversation-title").hover()
    expect(preview).to_be_hidden()
    page.keyboard.press("Tab")  # from now on the keyboard moves the focus
    marker.focus()
    expect(preview).to_be_visible()
    marker.press("Enter")
    expect(page.locator("details.src[open] .leaf mark")).to_be_in_viewport()
    expect(noticed.answer).to_be_in_viewport()  # beside the chat
    assert_like_fresh(noticed)


def test_answer_without_a_source_says_so_and_what_is_used_is_chosen_in_the_composer(
    noticed: Portal, cast: Cast, says: Callable[..., None], site: Site
) -> None:
    """Details 11, 12 and 18."""
    page = noticed.page
    letter = b"# Letter\n\nDear sir, the lamps came late.\n\nEach letter must be signed by the owner of the goods.\n"
    document_ready(cast, "Letters", "letter.md", letter)
    says(
        SAID,
        by_turns([{"name": "search_documents", "arguments": {"query": "duty on lamps"}}], "I cannot say."),
    )

    def offered() -> set[str]:
        asked = [e for e in site.model_server.log if e["model"] == SAID and e["tools"]]
        return set(asked[-1]["tools"])

    noticed.open()
    starts = page.locator("[data-start]")
    expect(starts).to_have_text(["By whom must each letter be signed?"])
    page.get_by_role("button", name="Tools", exact=True).click()
    tools = page.locator("#tools-menu")
    tools.get_by_role("option", name="Calculator").click()
    page.keyboard.press("Escape")
    expect(page.locator("#tools-label")).to_have_text("Tools, 1 off")
    page.get_by_role("button", name="Search in").click()
    menu = page.locator("#scope-menu")
    menu.get_by_role("option", name="Letters").click()
    page.keyboard.press("Escape")
    noticed.ask("What is the duty?", SAID)
    noticed.wait_end()
    assert {"search_documents", "calculate"} & offered() == {"search_documents"}
    notes = noticed.turns.last.locator(".notes")
    expect(notes).to_contain_text("Not from your documents: this answer cites no passage.")
    notes.get_by_role("button", name="Search elsewhere").click()
    with page.expect_response("**/scope/"):
        menu.get_by_role("button", name="Remove Letters").click()
    page.keyboard.press("Escape")
    expect(page.locator("#scope-label")).to_have_text("All collections")
    page.get_by_role("button", name="Tools, 1 off").click()
    held: list[Route] = []
    remove = tools.get_by_role("button", name="Remove Calculator")
    expect(remove).to_be_visible()  # the list has come, by the same address
    page.route("**/tools/", lambda route: held.append(route), times=1)
    with page.expect_request("**/tools/"):
        remove.click()
    page.keyboard.press("Escape")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    page.get_by_role("button", name="Regenerate").click()
    page.evaluate("1")  # the requests of the click are told before
    assert asked == [], "it waits for what was chosen before it"
    held[0].continue_()
    expect(page.locator("#tools-label")).to_have_text("Tools")
    expect(page.get_by_role("group", name="Versions of this question")).to_contain_text("Version 2 of 2")
    noticed.wait_end()
    assert "calculate" in offered()
    assert_like_fresh(noticed)


def test_list_shows_what_goes_on_without_a_reload(
    noticed: Portal, cast: Cast, says: Callable[..., None]
) -> None:
    """The list and the side bar: running, waiting for a decision, failed, answered; and titles (detail 20)."""
    grant_create(
        tenant=cast.tenant,
        actor=cast.actor("owner"),
        effect="ask",
        target_kind="tool",
        target="search_documents",
    )
    listed = noticed.page.context.new_page()
    waiting = noticed.page
    noticed.ask("Wait for me", SHORT)
    expect(waiting.locator(".decide")).to_have_count(1, timeout=READY_MS)
    listed.goto(f"/t/{noticed.slug}/chat/all/")
    rows, side = listed.locator("#convs li"), listed.locator("#recent-a a")
    listed.evaluate("window.kept = true")
    for place in (rows, side):
        expect(place.filter(has_text="Wait for me")).to_contain_text("Waiting for a decision")
    other = Portal(waiting.context.new_page(), noticed.slug)
    other.open()
    other.ask("Fail at once", "fake-fail500")
    for place in (rows, side):
        expect(place.filter(has_text="Fail at once")).to_contain_text(
            "The last answer failed", timeout=READY_MS
        )
    other.open()
    may_end = Event()
    says(SAID, lambda body: "All of it." if may_end.wait(60) else 500)
    other.ask("Tell me everything", SAID)
    for place in (rows, side):
        line = place.filter(has_text="Tell me everything")
        expect(line.get_by_label("Answering")).to_be_visible(timeout=READY_MS)
    may_end.set()
    other.wait_end()
    waiting.get_by_role("button", name="Approve").click()
    noticed.wait_end()
    for place in (rows, side):
        expect(place.filter(has_text="Waiting for a decision")).to_have_count(0, timeout=READY_MS)
        expect(place.get_by_label("Answering")).to_have_count(0, timeout=READY_MS)
    assert listed.evaluate("window.kept")


def test_touch_has_keys_and_panels_of_its_own(
    noticed: Portal, new_page: Callable[..., Page], cast: Cast
) -> None:
    """Details 6, 9 and 10 on a phone."""
    phone = new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    sign_in(phone, cast.user("member").email)
    portal = Portal(phone, noticed.slug)
    portal.open()
    portal.choose_model(f"compatible/{SHORT}")
    portal.box.fill("What is")
    portal.box.press("Enter")
    portal.box.press_sequentially("the notice period?")
    expect(portal.box).to_have_value("What is\nthe notice period?")
    phone.get_by_role("button", name="Send", exact=True).tap()
    phone.wait_for_url(re.compile(r"/chat/\d+/"))
    portal.wait_end()
    portal.answer.locator("button.cite").tap()
    sheet = phone.locator("#refs")
    expect(sheet.locator("details.src[open] .leaf mark")).to_be_in_viewport()
    phone.get_by_role("button", name="Close sources").tap()
    expect(sheet).to_be_hidden()
    phone.get_by_role("button", name="Open navigation").tap()
    phone.locator("#drawer").get_by_role("link", name="Collections").tap()
    phone.wait_for_url("**/collections/")


def test_example_is_added_at_a_click_and_answers(
    portal: Portal, new_page: Callable[..., Page], cast: Cast, says: Callable[..., None]
) -> None:
    document_ready(
        cast,
        "Schedules",
        "schedule.md",
        b"# Chapter 85\n\n8539.50.00 Light-emitting diode lamps. General rate 2%.\n",
        "hts_schedule",
    )
    example = example_read("trade_compliance")
    steps = [{"action": "lookup_hts_code", "description": "Find the tariff line of lamps"}]
    calls = [
        {"name": "plan", "arguments": {"reasoning": "The line first.", "steps": steps}},
        {"name": "lookup_hts_code", "arguments": {"code": "8539.50.00"}},
    ]

    def reply(body: dict[str, Any]) -> str | list[dict[str, Any]]:
        told = [m for m in body["messages"] if m["role"] == "tool"]
        if len(told) < len(calls):
            return [calls[len(told)]]
        ids = re.findall(r"\bc\d+\b", json.dumps(told))
        value: dict[str, Any] = {name: [] for name in example["spec"]["output_schema"]["required"]}
        line = {"code": "8539.50.00", "description": "LED lamps", "general_rate": "2%", "reason": "LED"}
        return json.dumps(
            {**value, **blank(example), "answer": f"LED lamps pay 2% [{ids[0]}].", "hts_codes": [line]}
        )

    for model in MODELS:
        says(model, reply)
    owner = new_page()
    sign_in(owner, cast.user("owner").email)
    owner.goto(f"/t/{cast.tenant.slug}/assistants/")
    owner.get_by_role("button", name="Add Trade compliance").click()
    expect(owner.get_by_text("“Trade compliance” is added and published.")).to_be_visible()
    portal.open()
    portal.page.get_by_role("link", name="Trade compliance").click()
    portal.ask("What is the duty on LED lamps from Vietnam?")
    portal.wait_end()
    turn = portal.turns.last
    expect(turn.locator(".plan summary")).to_contain_text("1 of 1 step done")
    expect(turn.get_by_role("heading", name="HTS codes")).to_be_visible()
    expect(turn.get_by_text("8539.50.00").first).to_be_visible()
    expect(turn.locator("button.cite").first).to_be_visible()
    expect(turn.get_by_role("alert")).to_have_count(0)
    portal.open("assistants/")
    expect(portal.page.get_by_role("button", name="Add Trade compliance")).to_have_count(0)


def blank(example: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the example's form that are no lists, with something in them."""
    kinds = {"string": "1.0", "boolean": False, "number": 1, "integer": 1}
    fields = example["spec"]["output_schema"]["properties"].items()
    return {
        name: field["enum"][0] if "enum" in field else kinds[field["type"]]
        for name, field in fields
        if field["type"] in kinds
    }
