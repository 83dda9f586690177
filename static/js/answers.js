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
    if (tab) return pane(tab.dataset.pane);
    if (e.target.closest("[data-show-trace]")) {
      pane("refs-trace");
      if (getComputedStyle(refs).display === "none") refs.showPopover();
    } else if (e.target.closest("[data-show-sources], button.cite[data-cite]")) pane("refs-list");
  }, true); // before the panel is opened at a source
}
