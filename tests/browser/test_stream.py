"""An answer on its way: whatever breaks, the page ends up as the server would draw it, no word doubled or lost."""

from __future__ import annotations

import os
import re
import signal
import time
import uuid
from typing import Any

import pytest
from playwright.sync_api import expect

from apps.collections.collection.services import collection_create
from apps.collections.documents.services import document_upload
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.assistants.services import assistant_create, version_publish
from apps.conversations.turns.services import conversation_ask
from apps.tools.permissions.services import grant_create
from runs.models import ACTIVE, Run
from tenancy.scope import tenant_scope
from tests.browser.conftest import Site
from tests.browser.portal import Portal, assert_like_fresh, words_of
from tests.cast import Cast
from tests.fake_provider import WORDS
from tests.patience import PATIENCE_S
from tests.servers import wait_for

LONG = "fake-search-words90-gap40"
SLOW = "fake-words120-gap50"
HELD = f"{LONG}-held"
"""Stops at half of its words until the model server is told to go on: however slow a page is, the answer isn't over."""
ENDLESS = "fake-words400-gap50-held"


@pytest.fixture
def asked(portal: Portal, cast: Cast) -> Portal:
    """A workspace with one ready document, watched, at the start page of the chat."""
    tenant, actor = cast.tenant, cast.actor("member")
    with tenant_scope(tenant.pk):
        collection = collection_create(tenant=tenant, actor=actor, name="Notices")
        text = b"# Notice\n\nThe notice period is thirty days from the first of the month.\n"
        document = document_upload(
            tenant=tenant, actor=actor, collection=collection, name="notice.md", chunks=[text]
        ).document

        def is_ready() -> bool:
            document.refresh_from_db()
            return document.status == "ready"

        wait_for(is_ready, what="the document")
    portal.watch()
    portal.open()
    return portal


def expected_words(count: int) -> list[str]:
    """Return what the model server sends as an answer of so many words, without its marker."""
    words = [WORDS[n % len(WORDS)] for n in range(count)]
    return words


def assert_whole(portal: Portal, count: int = 90) -> None:
    """Check that the last answer is exactly what the model said, with its source."""
    said = [word for word in words_of(portal) if word != "."]
    assert said == expected_words(count)
    expect(portal.answer.locator("button.cite")).to_have_count(1)
    expect(portal.turns.last.locator("details.tool")).to_have_count(1)
    assert_like_fresh(portal)


def assert_calm(portal: Portal) -> None:
    """Check what the watcher of this page saw: text only grew, no id was there twice."""
    seen = portal.watched()
    assert seen["shrunk"] == []
    assert seen["doubled"] == []


def test_answer_goes_on_when_the_page_is_reloaded_twice(asked: Portal, site: Site) -> None:
    asked.ask("What is the notice period?", HELD)
    for words in (5, 30):
        asked.wait_words(words)
        asked.page.reload()
        assert len(words_of(asked)) >= words
        expect(asked.page.locator("#turns [data-live]")).to_have_count(1)
    site.model_server.release()
    asked.wait_end()
    assert_calm(asked)
    assert_whole(asked)


def test_both_tabs_show_the_answer_when_a_second_one_opens_in_the_middle(asked: Portal, site: Site) -> None:
    asked.ask("What is the notice period?", HELD)
    asked.wait_words(20)
    second = Portal(asked.page.context.new_page(), asked.slug)
    second.watch()
    second.page.goto(asked.page.url)
    assert len(words_of(second)) >= 20
    expect(second.page.locator("#turns [data-live]")).to_have_count(1)
    site.model_server.release()
    second.wait_end()
    asked.wait_end()
    for tab in (asked, second):
        assert_calm(tab)
        assert_whole(tab)


def test_answer_goes_on_when_the_web_server_is_killed_and_started_again(asked: Portal, site: Site) -> None:
    asked.ask("What is the notice period?", HELD)
    asked.wait_words(15)
    site.stack.kill_web()
    try:
        expect(asked.turns.last.get_by_text("Reconnecting.")).to_be_visible()
        shown = len(words_of(asked))
        asked.box.fill("And then?")  # the composer does not mind
    finally:
        site.stack.start_web()
        site.model_server.release()
    asked.wait_end()
    assert shown >= 15
    expect(asked.box).to_have_value("And then?")
    assert_calm(asked)
    assert_whole(asked)


def test_answer_goes_on_when_the_line_is_lost_for_a_while(asked: Portal, site: Site) -> None:
    asked.ask("What is the notice period?", HELD)
    asked.wait_words(10)
    asked.page.context.set_offline(True)
    time.sleep(1)
    site.model_server.release()
    asked.page.context.set_offline(False)
    asked.wait_end()
    assert_calm(asked)
    assert_whole(asked)


def test_answer_is_whole_when_the_worker_is_killed_in_the_middle(asked: Portal, site: Site) -> None:
    asked.ask("What is the notice period?", HELD)
    asked.wait_words(20)
    assert site.stack.worker is not None
    os.killpg(site.stack.worker.pid, signal.SIGKILL)
    site.stack.worker.wait(PATIENCE_S)
    site.stack.start_worker()
    site.model_server.release()
    asked.wait_end()
    assert asked.watched()["doubled"] == []  # its text did shrink: the step was begun again
    assert_whole(asked)


def test_model_that_breaks_off_is_asked_again_when_the_connection_is_cut(asked: Portal) -> None:
    asked.ask("What is the notice period?", "fake-search-words60-gap10-cut")
    asked.wait_end()
    expect(asked.turns.last.get_by_role("alert")).to_contain_text("Code")
    assert asked.watched()["doubled"] == []
    assert_like_fresh(asked)


def in_its_mode(body: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Plan two searches, search in a program, or search, as the tools at hand ask for it; then answer as the model's name says."""
    offered = {tool["function"]["name"] for tool in body.get("tools") or ()}
    done = sum(message["role"] == "tool" for message in body["messages"])
    search = {"name": "search_documents", "arguments": {"query": "notice period"}}
    if "plan" in offered:
        step = {"action": "search_documents", "description": "Find the notice period"}
        plan = {"name": "plan", "arguments": {"reasoning": "Two looks.", "steps": [step, step]}}
        return [plan if not done else search] if done < 3 else None
    if "execute_tools" in offered:
        program = 'print(search_documents(query="notice period"))'
        return None if done else [{"name": "execute_tools", "arguments": {"code": program}}]
    return None if done else [search]


def test_page_of_every_mode_is_whole_when_line_web_server_and_worker_are_lost(
    asked: Portal, site: Site, cast: Cast
) -> None:
    """What differs between modes (a plan, calls inside of a program) comes back as everything else; four tabs for four modes."""
    site.model_server.replies[SLOW] = in_its_mode
    who: Any = {"tenant": cast.tenant, "actor": cast.actor("member")}
    grant_create(
        tenant=cast.tenant, actor=cast.actor("owner"), effect="allow", target_kind="group", target="code_mode"
    )
    tabs: dict[str, Portal] = {}
    with pytest.MonkeyPatch.context() as env, tenant_scope(cast.tenant.pk):
        # This process knows the models of the running one by this; it asks none of them.
        env.setenv("GROUNDWORK_COMPATIBLE_BASE_URL", "http://127.0.0.1:9/v1")
        env.setenv("GROUNDWORK_COMPATIBLE_MODELS", SLOW)
        for mode in ("quick", "planned", "tools", "code"):
            spec = VersionSpec(mode=mode, model=f"compatible/{SLOW}")
            row = assistant_create(**who, name=mode, spec=spec)
            version_publish(**who, assistant=row, number=1)
            turn = conversation_ask(
                **who, text="What is the notice period?", client_id=uuid.uuid4(), assistant=row.slug
            )
            tabs[mode] = Portal(asked.page.context.new_page(), asked.slug)
            tabs[mode].watch()
            tabs[mode].open(f"chat/{turn.conversation_id}/")
    for tab in tabs.values():
        tab.wait_words(5)
    asked.page.context.set_offline(True)
    assert site.stack.worker is not None
    os.killpg(site.stack.worker.pid, signal.SIGKILL)
    site.stack.worker.wait(PATIENCE_S)
    site.stack.kill_web()
    site.stack.start_web()
    asked.page.context.set_offline(False)
    site.stack.start_worker()
    with tenant_scope(cast.tenant.pk):
        under_way = Run.objects.filter(status__in=ACTIVE)
        wait_for(lambda: not under_way.exists(), "the answers to be taken up and to end")
    for mode, tab in tabs.items():
        tab.wait_end()
        assert tab.watched()["doubled"] == [], mode
        assert [word for word in words_of(tab) if word != "."] == expected_words(120), mode
        assert_like_fresh(tab)
    expect(tabs["planned"].turns.last.locator(".plan")).to_contain_text("2 of 2 steps done")
    expect(tabs["planned"].turns.last.locator("details.tool")).to_have_count(2)
    expect(tabs["code"].turns.last.locator("details.tool").first).to_contain_text("execute_tools")
    del site.model_server.replies[SLOW]


def _stopped(portal: Portal, site: Site, how: Any) -> None:
    portal.ask("Tell me everything.", ENDLESS)
    portal.wait_words(10)
    calls = [entry for entry in site.model_server.log if entry["model"] == ENDLESS]
    how()
    portal.wait_end()
    expect(portal.turns.last.get_by_text("Stopped", exact=True)).to_be_visible()
    wait_for(lambda: calls[-1]["closed_early"], "the provider's connection to be closed")
    said = words_of(portal)
    assert 10 <= len(said) < 400  # benchmarks/streams.py measures how soon it ends
    assert said == expected_words(len(said))
    assert_calm(portal)
    assert_like_fresh(portal)


def test_text_so_far_is_kept_when_the_answer_is_stopped_by_its_button(asked: Portal, site: Site) -> None:
    _stopped(asked, site, lambda: asked.page.get_by_role("button", name="Stop answering").click())


def test_next_answer_streams_whole_when_the_one_before_was_stopped_by_escape(
    asked: Portal, site: Site
) -> None:
    _stopped(asked, site, lambda: asked.page.keyboard.press("Escape"))
    asked.ask("What is the notice period?", "fake-search-words40-gap15")
    asked.wait_end()
    expect(asked.turns).to_have_count(2)
    assert_calm(asked)
    assert_whole(asked, 40)
    expect(asked.page.locator("[aria-label=Answering]")).to_have_count(0)
    assert re.search(r"/chat/\d+/$", asked.page.url)
