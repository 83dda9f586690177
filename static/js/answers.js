// What stands under an answer: a proposed question is asked at a click.
document.addEventListener("click", (e) => {
  const button = e.target.closest("[data-follow-up]");
  const form = document.getElementById("composer");
  if (!button || !form) return;
  const box = form.elements.text, typed = box.value.trim();
  box.value = typed ? `${box.value.trimEnd()}\n${button.dataset.followUp}` : button.dataset.followUp;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.focus();
  if (!typed) form.requestSubmit(); // a draft is not sent along unasked
});

// The side panel shows the sources or the trace of one answer.
const refs = document.getElementById("refs");
function pane(id) {
  for (const button of refs.querySelectorAll("[data-pane]")) {
    button.setAttribute("aria-pressed", String(button.dataset.pane === id));
    document.getElementById(button.dataset.pane).hidden = button.dataset.pane !== id;
  }
}
if (refs) {
  document.addEventListener("click", (e) => {
    const tab = e.target.closest("[data-pane]");
    if (tab) {
      // Both tabs are of one answer: the one chosen, else the last.
      const set = document.querySelector(".srcset[data-active], #refs-list > .srcset:last-child");
      const trace = document.querySelector(`#r${set?.id.replace("sources-", "")} [data-show-trace]`);
      if (tab.dataset.pane === "refs-trace" && trace) return trace.click();
      return pane(tab.dataset.pane);
    }
    if (e.target.closest("[data-show-trace]")) {
      const own = `sources-${e.target.closest("[data-run]").dataset.run}`;
      for (const s of document.querySelectorAll(".srcset")) s.toggleAttribute("data-active", s.id === own);
      pane("refs-trace");
      if (getComputedStyle(refs).display === "none") refs.showPopover();
    } else if (e.target.closest("[data-show-sources], button.cite[data-cite]")) pane("refs-list");
  }, true); // before the panel is opened at a source
}
