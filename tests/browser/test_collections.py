"""Uploads, live rows and the viewer."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import APIResponse, Page, Route, expect

from tests.browser.conftest import sign_in
from tests.browser.portal import Portal, paper
from tests.cast import Cast
from tests.collections.imports.support import make_zip
from tests.factories import make_collection
from tests.servers import wait_for

RULES = [
    f"Section {n}. An importer keeps the proof of origin of lot {n} for {n + 3} years after the entry. "
    f"The officer at port {n} may ask for it at any time during that period, in writing."
    for n in range(1, 9)
]


def file(name: str, content: bytes) -> Any:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": content}


def test_rows_of_both_tabs_follow_when_files_are_uploaded_side_by_side_and_twice_and_deleted(
    portal: Portal,
) -> None:
    page = portal.page
    stats = page.locator("#collection-stats")
    portal.create_collection("Shared view")
    portal.upload(
        file("rules.pdf", paper(title="Rules of entry", paragraphs=RULES)),
        file("notes.md", b"# Notes\n\nThe notice period is thirty days from the first of the month.\n"),
    )
    portal.expect_ready("rules.pdf", "notes.md")
    expect(stats).to_contain_text("Documents 2")
    beside = page.locator("#collection-links [aria-current]")
    expect(beside).to_contain_text("Shared view")
    expect(beside).to_contain_text("2 documents")
    live = page.locator("#documents").inner_text()
    page.reload()
    assert sorted(page.locator("#documents").inner_text().split("\n")) == sorted(live.split("\n"))

    same = b"# Same\n\nThe same words, twice over, count as one document.\n"
    portal.upload(file("same.md", same), file("same.md", same))
    expect(portal.row("same.md")).to_have_count(1)
    portal.expect_ready("same.md")
    portal.upload(file("same.md", same))
    expect(page.locator("#uploads li")).to_have_count(0)
    page.reload()
    expect(page.locator("#documents tr")).to_have_count(3)
    expect(stats).to_contain_text("Documents 3")

    other = Portal(page.context.new_page(), portal.slug)
    other.page.goto(page.url)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete same.md").click()
    for tab in (portal, other):
        expect(tab.row("same.md")).to_have_count(0)
    expect(stats).to_contain_text("Documents 2")


def test_stages_and_counts_move_without_a_reload_when_a_document_is_read(portal: Portal) -> None:
    portal.create_collection("Watched")
    portal.page.evaluate(
        """() => {
          window.seen = new Set();
          window.loaded = performance.timeOrigin;
          new MutationObserver(() => {
            const state = document.querySelector("#documents tr td:nth-child(2)");
            if (state) window.seen.add(state.innerText.replace(/\\s+/g, " ").trim());
          }).observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
        }"""
    )
    text = "\n\n".join(f"## Part {n}\n\n" + " ".join(RULES) for n in range(40))
    portal.upload(file("long.md", text.encode()))
    portal.expect_ready("long.md")
    seen: list[str] = portal.page.evaluate("[...window.seen]")
    stages = " ".join(seen)
    assert "Embedding" in stages, seen
    assert len(seen) >= 4, seen
    chunks = portal.row("long.md").locator("td").nth(3).inner_text()
    assert int(chunks.replace(",", "")) > 20
    expect(portal.page.locator("#collection-stats")).to_contain_text(f"Passages {chunks}")


NOTHING = b"---\n\n***\n"
"""A file without a word: what reads it may be better another time."""


def test_the_row_of_an_unread_file_tells_why_and_offers_what_can_help(portal: Portal) -> None:
    locked = paper(title="Locked", paragraphs=RULES, encrypt="secret")
    portal.create_collection("Trouble")
    for name, content, why in (("locked.pdf", locked, "password"), ("empty.txt", b"", "The file is empty")):
        portal.upload(file(name, content))
        row = portal.row(name)
        expect(row.get_by_text("Failed", exact=True)).to_be_visible()
        expect(row).to_contain_text(why)
        expect(row.get_by_role("button", name=f"Delete {name}")).to_be_visible()
        expect(row.get_by_role("button", name=f"Retry {name}")).to_have_count(0)
    portal.upload(file("nothing.md", NOTHING))
    row = portal.row("nothing.md")
    row.get_by_role("button", name="Retry nothing.md").click()
    expect(row.get_by_text("Failed", exact=True)).to_be_visible()
    expect(portal.page.locator("#collection-stats")).to_contain_text("Failed 3")


def test_row_is_of_now_when_the_stream_overtakes_the_answers(portal: Portal) -> None:
    """To an upload and to a button of the row."""
    page = portal.page
    late: list[tuple[Route, APIResponse]] = []
    stats = page.locator("#collection-stats")
    portal.create_collection("Overtaken")
    page.route("**/upload/", lambda route: late.append((route, route.fetch())), times=1)
    portal.upload(file("fast.md", b"# Fast\n\nRead before the upload is answered.\n"))
    expect(stats).to_contain_text("Passages 1")
    expect(page.locator("#documents tr")).to_have_count(0)
    late[0][0].fulfill(response=late[0][1])
    portal.expect_ready("fast.md")
    portal.upload(file("nothing.md", NOTHING))
    row = portal.row("nothing.md")
    expect(row.get_by_text("Failed", exact=True)).to_be_visible()
    before = row.get_attribute("data-at")
    page.route("**/retry/", lambda route: late.append((route, route.fetch())), times=1)
    row.get_by_role("button", name="Retry nothing.md").click()
    wait_for(lambda: page.evaluate("1") and len(late) > 1, "the answer to the button")
    expect(row).not_to_have_attribute("data-at", before or "")
    expect(row.get_by_text("Failed", exact=True)).to_be_visible()
    newest = row.get_attribute("data-at")
    with page.expect_response("**/retry/"):
        late[1][0].fulfill(response=late[1][1])
    expect(row).to_have_attribute("data-at", newest or "")
    expect(row.get_by_text("Failed", exact=True)).to_be_visible()


def test_upload_waits_for_a_retry_when_the_line_is_down(portal: Portal) -> None:
    portal.create_collection("Offline")
    portal.page.context.set_offline(True)
    portal.upload(file("late.md", b"# Late\n\nSent at the second try, and not lost.\n"))
    queue = portal.page.get_by_role("region", name="Uploads")
    expect(queue).to_contain_text("could not be reached")
    portal.page.context.set_offline(False)
    queue.get_by_role("button", name="Retry: late.md").click()
    portal.expect_ready("late.md")
    expect(portal.page.locator("#uploads li")).to_have_count(0)


def test_viewer_may_look_but_not_touch(new_page: Any, cast: Cast) -> None:
    made = make_collection(cast.tenant, "For all")
    page: Page = new_page()
    sign_in(page, cast.user("viewer").email)
    page.goto(f"/t/{cast.tenant.slug}/collections/{made.pk}/")
    expect(page.get_by_role("heading", name="For all")).to_be_visible()
    expect(page.locator("form[data-upload]")).to_have_count(0)
    expect(page.get_by_text("No one has added a document")).to_be_visible()


def test_pages_turn_and_the_passage_is_marked_when_a_search_hit_is_opened(portal: Portal) -> None:
    portal.create_collection("Viewer")
    portal.upload(file("rules.pdf", paper(title="Rules of entry", paragraphs=RULES)))
    portal.expect_ready("rules.pdf")
    portal.page.get_by_role("link", name="Search test").click()
    box = portal.page.get_by_role("searchbox").last
    box.fill("proof of origin of lot 7")
    box.press("Enter")
    expect(portal.page.locator(".chunk").first).to_be_visible()
    portal.page.locator(".chunk a").first.click()
    portal.page.wait_for_url(lambda url: "chunk=" in url)
    image = portal.page.locator(".sheet image, .sheet img")
    expect(image).to_be_visible()
    wait_for(
        lambda: portal.page.evaluate(
            "performance.getEntriesByType('resource').some((r) => r.name.endsWith('/image/') && r.responseStatus === 200)"
        ),
        what="the page image",
    )
    assert portal.page.locator(".marks rect").count() >= 1
    portal.page.get_by_role("link", name="Text", exact=True).click()
    expect(portal.page.locator("#passage")).to_contain_text("proof of origin")


def test_import_runs_live_to_its_end_and_lists_what_became_no_document(portal: Portal) -> None:
    portal.create_collection("Imported")
    page = portal.page
    page.goto(f"{page.url}imports/")
    expect(page.get_by_text("Nothing has been imported into this collection yet.")).to_be_visible()
    archive = make_zip(
        {
            "guide/rules.md": ("# Rules\n\n" + " ".join(RULES)).encode(),
            "guide/notes.md": b"# Notes\n\nThe notice period is thirty days.\n",
            "guide/.secret": b"hidden",
            "logo.png": b"\x89PNG\r\n\x1a\n",
        }
    )
    page.get_by_label("Archive").set_input_files(file("guide.zip", archive))
    page.get_by_role("button", name="Start import").click()
    state = page.locator("#import-state")
    expect(state.get_by_text("Completed", exact=True)).to_be_visible()
    expect(state.get_by_role("status")).to_contain_text("2 new")
    expect(state).not_to_have_attribute("hx-trigger", "every 1s")
    expect(state.get_by_role("row", name="guide/.secret")).to_contain_text("hidden")
    expect(state.get_by_role("row", name="logo.png")).to_contain_text("no text")
    page.get_by_role("link", name="All imports").click()
    expect(page.get_by_role("row", name="guide.zip")).to_contain_text("Completed")
    page.get_by_role("link", name="Documents", exact=True).click()
    portal.expect_ready("rules.md", "notes.md")


def test_file_is_found_in_the_tree_and_by_search(portal: Portal) -> None:
    portal.create_collection("Tree")
    page = portal.page
    portal.upload(file("notes.md", b"# Notes\n\nThe notice period is thirty days.\n"))
    portal.expect_ready("notes.md")
    page.get_by_role("link", name="Files", exact=True).click()
    page.get_by_label("Search in files").fill("notice")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_text("1 match in 1 file")).to_be_visible()
    page.get_by_role("link", name="notes.md").click()
    expect(page.get_by_role("region", name="Text of notes.md")).to_contain_text("thirty days")
    page.get_by_role("link", name="root", exact=True).click()
    page.get_by_role("link", name="Structure", exact=True).click()
    expect(page.get_by_text("1 file", exact=True)).to_be_visible()
    page.get_by_role("link", name="Files").last.click()
    page.get_by_role("link", name="Git", exact=True).click()
    expect(page.get_by_text("This collection has no repository")).to_be_visible()
    expect(page.get_by_role("link", name="Import a repository")).to_be_visible()
