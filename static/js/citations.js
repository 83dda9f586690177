// Citations on a page of answers: a preview on hover and focus, the source panel on click.

const $ = (id) => document.getElementById(id);
const msgs = $("msgs");
const refs = $("refs"), pop = $("cite-pop");
const cardOf = (cite) => $(`src-${cite.dataset.cite}`); // data-cite = "<run>-<number>"
function preview(cite) {
  const card = cardOf(cite);
  if (!card) return;
  const title = document.createElement("b"),
    where = document.createElement("span"),
    quote = document.createElement("p");
  title.textContent = card.querySelector("[data-name]").textContent;
  where.className = "muted xs";
  where.textContent = card.querySelector("[data-where]").textContent;
  quote.textContent = card.querySelector(".quote").textContent;
  pop.replaceChildren(title, where, quote);
  pop.showPopover();
  const at = cite.getBoundingClientRect(), own = pop.getBoundingClientRect();
  const above = at.top - own.height - 8;
  pop.style.left = `${Math.max(12, Math.min(at.left - 20, innerWidth - own.width - 12))}px`;
  pop.style.top = `${above > 8 ? above : at.bottom + 8}px`;
}
const hide = () => {
  if (pop?.matches(":popover-open")) pop.hidePopover();
};
function pin(cite) {
  hide();
  const card = cardOf(cite);
  if (!card) return;
  for (const s of document.querySelectorAll(".srcset")) s.toggleAttribute("data-active", s.contains(card));
  for (const c of document.querySelectorAll("button.cite[aria-expanded=true]")) {
    c.removeAttribute("aria-expanded");
  }
  cite.setAttribute("aria-expanded", "true");
  openRefs();
  for (const other of card.parentElement.querySelectorAll("details[open]")) {
    if (other !== card) other.open = false;
  }
  card.open = true;
  card.scrollIntoView({ block: "start" });
}
// An opened source: its surroundings scroll to the passage, which stands in their middle.
refs.addEventListener("htmx:after:settle", (e) => {
  const mark = e.target.querySelector?.(".leaf mark"), leaf = mark?.closest(".leaf");
  if (leaf) leaf.scrollTop = Math.max(0, mark.offsetTop - 40);
});
function openRefs() {
  if (getComputedStyle(refs).display === "none") refs.showPopover();
}
document.addEventListener("click", (e) => {
  const cite = e.target.closest("button.cite[data-cite]");
  if (cite) return pin(cite);
  const all = e.target.closest("[data-show-sources]"); // "4 sources" under an answer
  if (!all) return;
  for (const s of document.querySelectorAll(".srcset")) {
    s.toggleAttribute("data-active", s.id === all.dataset.showSources);
  }
  openRefs();
});
for (
  const [show, away, still] of [["pointerover", "pointerout", ":hover"], [
    "focusin",
    "focusout",
    ":focus-visible",
  ]]
) {
  document.addEventListener(show, (e) => {
    const cite = e.target.closest?.("button.cite[data-cite]");
    if (!cite || e.pointerType === "touch") return;
    // Not at once: the focus also comes back while the sheet of sources closes, when nothing else may open.
    requestAnimationFrame(() => {
      if (cite.isConnected && cite.matches(still)) preview(cite);
    });
  });
  document.addEventListener(away, (e) => {
    if (e.target.closest?.("button.cite")) hide();
  });
}
msgs?.addEventListener("scroll", hide, { passive: true });
