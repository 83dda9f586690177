"""A file is given by button, by drag and by paste, read while the question waits, and cited."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Route, expect

from tenancy.scope import tenant_scope
from tenancy.services import model_entry_set
from tests.browser.conftest import Site
from tests.browser.portal import ANSWER_MS, READY_MS, Portal, assert_like_fresh
from tests.browser.shots import shot
from tests.cast import Cast
from tests.toolloop.test_media import wav

NOTE = "The delivery to Porto costs 417 euros. It takes nine days by sea."
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf500f00038601805a347d6b0000000049454e44ae426082"
)
DROP = """(name) => {
  const given = new DataTransfer();
  given.items.add(new File([name + " holds 12 crates of lamps for the harbour."], name, {type: "text/plain"}));
  for (const kind of ["dragenter", "dragover", "drop"]) {
    document.getElementById("composer").dispatchEvent(new DragEvent(kind, {dataTransfer: given, bubbles: true, cancelable: true}));
  }
}"""
WHOLE = """() => {
  const files = document.getElementById("scope-files"), chip = files.closest(".chip");
  return files.scrollWidth <= files.clientWidth + 1
    && files.getBoundingClientRect().right <= chip.getBoundingClientRect().right;
}"""
PASTE = """(text) => {
  const given = new DataTransfer();
  given.setData("text/plain", text);
  document.querySelector("#composer textarea").dispatchEvent(new ClipboardEvent("paste", {clipboardData: given, bubbles: true, cancelable: true}));
}"""


PLAYED = """(audio) => new Promise((done) => {
  audio.muted = true;
  audio.addEventListener("ended", () => done(audio.duration));
  audio.addEventListener("error", () => done(audio.error.message));
  audio.play().catch((problem) => done(String(problem)));
})"""


def note(name: str = "delivery.txt", text: str = NOTE) -> Any:
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


def test_file_given_by_button_is_read_and_cited(portal: Portal) -> None:
    page = portal.page
    portal.open()
    portal.choose_model("extractive")
    page.get_by_label("Attach files").set_input_files([note()])
    chips = page.locator("#attached .att")
    expect(chips.get_by_text("delivery.txt")).to_be_visible()
    expect(page.locator("#scope-files")).to_have_text("+ 1 file")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(WHOLE), "the number of files is cut on the phone"
    page.set_viewport_size({"width": 1440, "height": 900})
    # Asked at once: the answer waits for the reading by itself.
    portal.ask("What does the delivery to Porto cost?")
    portal.wait_end()
    expect(portal.answer).to_contain_text("417 euros", timeout=ANSWER_MS)
    expect(portal.turns.last.locator(".atts .att")).to_have_text(re.compile("delivery.txt"))
    expect(chips).to_have_count(0)
    portal.answer.locator(".cite").first.click()
    source = page.locator(".src[open]")
    expect(source.locator("mark")).to_contain_text("417 euros", timeout=READY_MS)
    expect(source).to_contain_text("Attached files")
    page.reload()
    expect(portal.answer.locator(".cite").first).to_be_visible()
    assert_like_fresh(portal)
    # It goes with the questions that follow; the page of the passage opens from the source.
    held: list[Route] = []
    page.route("**/turns/", lambda route: held.append(route), times=1)
    portal.box.fill("How long does the delivery take?")
    with page.expect_request("**/turns/"):
        portal.box.press("Enter")
    page.get_by_label("Attach files").set_input_files([note("next.txt", "Lamps come by rail.")])
    portal.box.press_sequentially("#calc")
    expect(page.get_by_role("option").first).to_contain_text("Calculator")
    portal.box.press("Enter")
    expect(page.locator("#attached .att[data-state=ready]")).to_have_count(1)
    held[0].continue_()
    expect(portal.turns).to_have_count(2)
    portal.wait_end()
    expect(portal.answer).to_contain_text("nine days")
    expect(chips).to_contain_text(["next.txt"])  # what came meanwhile is for the next question
    expect(page.locator("#narrowed li")).to_have_text(["Calculator"])
    portal.answer.locator(".cite").first.click()
    page.locator(".src[open]").get_by_role("link", name=re.compile("Open")).last.click()
    expect(page.locator("#passage, .chunk.on").first).to_contain_text("nine days")


def test_files_dropped_and_pasted_can_be_taken_back(portal: Portal) -> None:
    page = portal.page
    portal.open()
    portal.choose_model("extractive")
    page.evaluate(DROP, "lots.txt")
    page.evaluate(DROP, "other.txt")
    chips = page.locator("#attached .att[data-att]")
    expect(chips).to_have_count(2, timeout=READY_MS)
    expect(page.locator("#attached .att[data-state=ready]")).to_have_count(2, timeout=READY_MS)
    # Taken back, kept after all, taken back for good when the question is sent.
    other = page.locator("#attached .att", has_text="other.txt")
    other.get_by_role("button", name="Remove other.txt").click()
    expect(page.locator("#scope-files")).to_have_text("+ 1 file")
    other.get_by_role("button", name="Keep other.txt").click()
    expect(page.locator("#scope-files")).to_have_text("+ 2 files")
    other.get_by_role("button", name="Remove other.txt").click()
    page.evaluate(PASTE, "Pasted words about rates and dates. " * 200)
    pasted = page.locator("#attached .att", has_text="Pasted text.txt")
    pasted.get_by_role("button", name="as text").click()
    expect(portal.box).to_have_value(re.compile("Pasted words"))
    # A picture is refused before it is sent, for this model looks at nothing.
    stamp: Any = {"name": "stamp.png", "mimeType": "image/png", "buffer": PIXEL}
    page.get_by_label("Attach files").set_input_files([stamp])
    picture = page.locator("#attached .att", has_text="stamp.png")
    expect(picture.get_by_text("cannot look at this")).to_be_visible(timeout=READY_MS)
    portal.box.fill("How many crates does lots.txt hold?")
    portal.box.press("Enter")
    expect(page.locator("#composer-error")).to_contain_text("can only read text")
    picture.get_by_role("button", name="Remove stamp.png").click()
    portal.ask("How many crates does lots.txt hold?")
    portal.wait_end()
    expect(portal.answer).to_contain_text("12 crates")
    expect(portal.turns.last.locator(".atts .att")).to_have_count(1)


def test_sound_is_played_where_it_is_given_and_goes_to_a_model_that_hears(
    portal: Portal, site: Site, cast: Cast
) -> None:
    page = portal.page
    with tenant_scope(cast.tenant.pk):
        model_entry_set(
            tenant=cast.tenant,
            actor=cast.actor("owner"),
            name="compatible/fake-said",
            capabilities={"audio_input": True},
        )
    heard: list[Any] = []

    def said(body: dict[str, Any]) -> str:
        heard.append(body["messages"])
        return "A short silence."

    site.model_server.replies["fake-said"] = said
    portal.open()
    portal.choose_model("extractive")
    recording: Any = {"name": "call.wav", "mimeType": "audio/wav", "buffer": wav(1)}
    page.get_by_label("Attach files").set_input_files([recording])
    chip = page.locator("#attached .att", has_text="call.wav")
    player = chip.locator("audio")
    expect(player).to_be_visible(timeout=READY_MS)
    expect(chip.get_by_text("cannot listen to this")).to_be_visible()
    portal.box.fill("What is said?")
    portal.box.press("Enter")
    expect(page.locator("#composer-error")).to_contain_text("Choose one that can (fake-said")
    shot(page, "sound-refused")
    portal.choose_model("fake-said")
    expect(chip.get_by_text("cannot listen to this")).to_be_hidden()
    assert player.evaluate(PLAYED) == 1.0
    shot(page, "sound-composer")
    portal.ask("What is said?")
    portal.wait_end()
    expect(portal.answer).to_contain_text("A short silence.")
    sent = portal.turns.last.locator(".atts .att", has_text="call.wav")
    assert sent.locator("audio").evaluate(PLAYED) == 1.0
    parts = [p for m in heard[0] if isinstance(m["content"], list) for p in m["content"]]
    assert [p["input_audio"]["format"] for p in parts if p["type"] == "input_audio"] == ["wav"]
    page.reload()
    expect(sent.locator("audio")).to_be_visible()
    shot(page, "sound-message")
