// The shell of every signed-in page: command palette, keyboard shortcuts, copy buttons, local filters,
// messages for failed htmx requests, and fallbacks for browsers without invoker commands.

const $ = (id) => document.getElementById(id);
const typing = (el) => el.closest("input, textarea, select, [contenteditable]") !== null;

/** Say something once, in a polite live region, without showing it. */
function announce(text) {
  const region = $("announce");
  if (!region) return;
  region.textContent = "";
  requestAnimationFrame(() => {
    region.textContent = text;
  });
}

/** Show a message that stays until it is dismissed; `node` is an element or plain text. */
function toast(node) {
  const box = $("toast");
  if (!box) return;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn ghost sm end";
  close.textContent = gettext("Dismiss");
  close.addEventListener("click", () => {
    box.hidden = true;
  });
  const body = document.createElement("p");
  body.append(node);
  box.replaceChildren(body, close);
  box.hidden = false;
}

/** The human part of an error answer: our error fragment if it is one, else a plain sentence. */
function errorText(ctx) {
  const status = ctx?.response?.status;
  const text = ctx?.text ?? "";
  if (text && !/^\s*<(!doctype|html)/i.test(text)) {
    const found = new DOMParser().parseFromString(text, "text/html").querySelector("[data-error]");
    if (found) return found.textContent.trim().replace(/\s+/g, " ");
  }
  if (status === 401) return gettext("You are signed out. Sign in again in another tab, then retry.");
  if (status === 403) return gettext("You do not have permission to do this.");
  if (status === 404) return gettext("This no longer exists. Reload the page.");
  if (status === 413) return gettext("That is too large to send.");
  if (status === 429) return gettext("Too many requests. Wait a moment, then retry.");
  if (status >= 500) {
    return interpolate(
      gettext("The server could not do this (%(status)s). Nothing was changed; retry in a moment."),
      { status },
    );
  }
  if (status) return interpolate(gettext("The server refused this (%(status)s)."), { status });
  return gettext("The server could not be reached. Check your connection, then retry.");
}
window.gw = Object.assign(window.gw ?? {}, { announce, toast, errorText });

for (const name of ["htmx:response:error", "htmx:error"]) {
  document.addEventListener(name, (e) => {
    const el = e.target;
    if (el.id === "composer" || el.hasAttribute?.("hx-sse:connect")) return; // they speak for themselves
    if (el.hasAttribute?.("data-quiet")) return; // asks again by itself
    toast(errorText(e.detail.ctx));
  });
}

// --- command palette: a combobox over a listbox that the server fills ---------------------------
const palette = $("palette");
const query = palette?.querySelector("input");
const list = $("palette-list");
const options = () => [...list.querySelectorAll("[role=option]")];
let shown = null; // the text that the list answers
let isEntered = false; // Enter came before the list answered what is typed: it counts when the list does

function select(option) {
  for (const o of options()) o.setAttribute("aria-selected", String(o === option));
  if (!option) return query.removeAttribute("aria-activedescendant");
  query.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}
function openPalette() {
  if (!palette || palette.open) return;
  palette.showModal();
}
function go(option) {
  isEntered = false;
  if (!option) return;
  palette.close();
  if (option.dataset.key && press(option.dataset.key)) return; // this page has the command itself
  if (option.dataset.href) location.assign(option.dataset.href);
}
if (palette) {
  // Opened by a button, by a key or by a link: one place notices.
  new MutationObserver(() => {
    isEntered = false;
    if (!palette.open) return;
    query.select();
    htmx.trigger(query, "palette:open");
  }).observe(palette, { attributes: true, attributeFilter: ["open"] });
  query.addEventListener("keydown", (e) => {
    if (e.isComposing) return;
    const all = options(), at = all.findIndex((o) => o.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && all.length) {
      e.preventDefault();
      select(all[(at + step + all.length) % all.length]);
    } else if (e.key === "Enter") {
      e.preventDefault();
      if (shown === query.value) go(all[at]);
      else isEntered = true;
    } else if (e.key === "Escape") {
      e.preventDefault();
      palette.close();
    } // a search field would only clear itself
  });
  list.addEventListener("click", (e) => go(e.target.closest("[role=option]")));
  query.addEventListener("input", () => (isEntered = false));
  query.addEventListener("htmx:config:request", (e) => (e.detail.ctx.asked = query.value));
  query.addEventListener("htmx:after:swap", (e) => {
    shown = e.detail.ctx.asked;
    select(options()[0]);
    if (isEntered && shown === query.value) go(options()[0]);
  });
  palette.querySelector("form").addEventListener("submit", (e) => e.preventDefault());
}

// --- keyboard shortcuts ------------------------------------------------------------------------
/** Do what the element marked data-key does: focus a field, open a file chooser, or click. */
function press(key) {
  const el = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!el) return false;
  if (el.matches("textarea, input:not([type=file])")) el.focus();
  else el.click();
  return true;
}
document.addEventListener("keydown", (e) => {
  if (e.isComposing || e.defaultPrevented) return;
  if ((e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey && e.key.toLowerCase() === "k") {
    e.preventDefault();
    return openPalette();
  }
  if (e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || document.querySelector("dialog[open]")) {
    return;
  }
  if (e.key === "?") {
    e.preventDefault();
    $("shortcuts")?.showModal();
  } else if (e.key.length === 1 && press(e.key)) e.preventDefault();
});

// --- a conversation of a list: one menu for all rows, filled from the button of one ---------------
const manage = $("conv-manage");
let menu = null;
let row = null; // the button whose conversation the menu and its dialogs are about
document.addEventListener("click", (e) => {
  const button = manage && e.target.closest("[data-conv]");
  if (button) {
    if (!menu) {
      const made = [...manage.content.cloneNode(true).children];
      document.body.append(...made);
      for (const dialog of made) htmx.process(dialog);
      menu = $("conv-menu");
    }
    row = button;
    for (const el of document.querySelectorAll("[data-conv-title]")) el.textContent = row.dataset.conv;
    const isPinned = "convPinned" in row.dataset;
    menu.querySelector("[name=is_pinned]").value = isPinned ? "" : "1";
    menu.querySelector("[data-conv-pin-label]").textContent = isPinned ? gettext("Unpin") : gettext("Pin");
    $("conv-rename-title").value = row.dataset.conv;
    for (const el of document.querySelectorAll("[data-conv-erase-link]")) el.href = row.dataset.convErase;
    for (const el of document.querySelectorAll("[data-conv-pk][name]")) el.value = row.dataset.convPk;
    const isArchived = "convArchived" in row.dataset;
    menu.querySelector("[name=do]").value = isArchived ? "unarchive" : "archive";
    menu.querySelector("[data-conv-archive-label]").textContent = isArchived
      ? gettext("Restore")
      : gettext("Archive");
    menu.showModal();
    const at = row.getBoundingClientRect(); // beneath the button, inside the window; a phone has it at the bottom
    const top = Math.min(at.bottom + 4, innerHeight - menu.offsetHeight - 8);
    menu.style.setProperty(
      "--left",
      `${Math.max(8, Math.min(at.left, innerWidth - menu.offsetWidth - 8))}px`,
    );
    menu.style.setProperty("--top", `${Math.max(8, top)}px`);
  }
  const next = e.target.closest("[data-conv-open]");
  if (!next) return;
  menu.close();
  const dialog = $(next.dataset.convOpen);
  dialog.showModal();
  for (const part of dialog.querySelectorAll("[data-lazy]")) htmx.trigger(part, "gw:open");
});
document.addEventListener("htmx:config:request", (e) => {
  if (e.target.closest?.("#conv-move [data-lazy]")) { // with the project that it is in
    e.detail.ctx.request.action += `?conversation=${row.dataset.convPk}`;
  }
  const what = e.target.dataset?.convForm;
  if (what) e.detail.ctx.request.action = row.dataset[`conv${what[0].toUpperCase()}${what.slice(1)}`];
});
document.addEventListener("htmx:finally:request", (e) => {
  const form = e.target, status = e.detail.ctx?.response?.status ?? 0;
  if (!form.dataset?.convForm || status < 200 || status >= 300) return;
  form.closest("dialog").close();
  announce(form.dataset.done);
  document.dispatchEvent(new Event("gw:listed")); // each list asks for itself
});

// --- a fold of the side bar: it stays as a person left it, and reads what it shows when it is open first -----------
for (const fold of document.querySelectorAll("[data-fold]")) {
  const key = `gw.fold.${fold.dataset.fold}`;
  fold.addEventListener("toggle", () => {
    if (fold.open) htmx.trigger(fold, "gw:unfold");
    try {
      localStorage.setItem(key, fold.open ? "1" : "");
    } catch { /* storage refused: it stays so as long as the page */ }
  });
  try {
    if (localStorage.getItem(key)) addEventListener("load", () => fold.open = true, { once: true });
  } catch { /* as above */ }
}

// --- notices: a page that nobody looks at says so when it asks, and the end of a page's own stream counts as looked at
// (notices.js has the rest) ------------------------------------------------------------------------
document.addEventListener("htmx:config:request", (e) => {
  if (document.hidden) e.detail.ctx.request.headers["X-Hidden"] = "1";
});
document.addEventListener("htmx:sse:close", (e) => {
  if (e.detail.reason === "message" && !e.target.closest("[data-run]")) {
    document.dispatchEvent(new Event("gw:listed"));
  }
});

// --- the reader's time zone, by whose midnights lists are grouped (web/reader_zone.py) ------------
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.split("; ").includes(`gw.zone=${zone}`)) {
  document.cookie = `gw.zone=${zone}; path=/; max-age=31536000; samesite=lax`;
  addEventListener("load", () => document.dispatchEvent(new Event("gw:listed")), { once: true });
}

// --- small helpers bound by attribute ------------------------------------------------------------
document.addEventListener("click", async (e) => {
  const button = e.target.closest("[data-copy]");
  if (!button) return;
  const from = $(button.dataset.copy);
  const text = from.value ?? from.textContent.trim();
  try {
    await navigator.clipboard.writeText(text);
    announce(gettext("Copied"));
    button.dataset.done = "";
  } catch { // no clipboard permission (plain http): leave the text selected for the reader's own copy
    getSelection().selectAllChildren(from);
    toast(gettext("The browser blocked copying. The text is selected: press Ctrl+C."));
  }
});
/** Put the source of each formula in its place. */
function sources(root) {
  for (const formula of root.querySelectorAll("math")) {
    const source = formula.querySelector("annotation");
    if (source) formula.replaceWith(source.textContent);
  }
}
// A selection with formulas is copied with their sources.
document.addEventListener("copy", (e) => {
  const chosen = getSelection();
  if (chosen.isCollapsed || e.target.closest?.("input, textarea")) return;
  const holder = document.createElement("div");
  for (let n = 0; n < chosen.rangeCount; n++) holder.append(chosen.getRangeAt(n).cloneContents());
  if (!holder.querySelector("math annotation")) return;
  sources(holder);
  for (const end of holder.querySelectorAll("p, li, tr, h1, h2, h3, h4, pre, br")) end.append("\n");
  e.clipboardData.setData("text/plain", holder.textContent.trim());
  e.preventDefault();
});
// One switch for the code of every page: long lines wrap, or scroll.
{
  const KEY = "gw.wrap", page = document.documentElement;
  try {
    page.toggleAttribute("data-wrap", localStorage.getItem(KEY) === "1");
  } catch {
    // storage refused: the choice lasts as long as the page
  }
  document.addEventListener("click", (e) => {
    if (!e.target.closest("[data-wrap-lines]")) return;
    const on = page.toggleAttribute("data-wrap");
    announce(on ? gettext("Long lines wrap") : gettext("Long lines scroll"));
    try {
      localStorage.setItem(KEY, on ? "1" : "0");
    } catch {
      // as above
    }
  });
}
// A button before code or a table copies it: a table as tab-separated values, without the marks of sources.
document.addEventListener("click", async (e) => {
  const button = e.target.closest("[data-copy-next]");
  if (!button) return;
  const from = button.nextElementSibling;
  const cell = (c) => {
    const copy = c.cloneNode(true);
    for (const mark of copy.querySelectorAll(".cite, .nosrc-note")) mark.remove();
    sources(copy);
    return copy.textContent.trim().replace(/\s+/g, " ");
  };
  const text = from.matches("table")
    ? [...from.rows].map((row) => [...row.cells].map(cell).join("\t")).join("\n")
    : from.textContent;
  try {
    await navigator.clipboard.writeText(text);
    announce(gettext("Copied"));
    button.dataset.done = "";
    setTimeout(() => delete button.dataset.done, 2000);
  } catch {
    getSelection().selectAllChildren(from);
    toast(gettext("The browser blocked copying. The text is selected: press Ctrl+C."));
  }
});
// <input data-filter="#list"> hides the list's links whose text does not contain the input.
document.addEventListener("input", (e) => {
  const target = e.target.dataset?.filter && document.querySelector(e.target.dataset.filter);
  if (!target) return;
  const needle = e.target.value.trim().toLowerCase();
  for (const item of target.children) item.hidden = !item.textContent.toLowerCase().includes(needle);
});
// <select data-submit> sends its form when it changes.
document.addEventListener("change", (e) => {
  if (e.target.matches("[data-submit]")) e.target.form.requestSubmit();
});

// --- where we are, in a bar that is wider than a phone ------------------------------------------
for (const here of document.querySelectorAll(".settings > .nav [aria-current], .tabs [aria-current]")) {
  const bar = here.parentElement;
  const at = here.getBoundingClientRect(), all = bar.getBoundingClientRect();
  if (document.dir === "rtl") bar.scrollLeft -= Math.max(0, all.left - at.left + 12);
  else bar.scrollLeft += Math.max(0, at.right - all.right + 12);
}

// --- fallbacks ---------------------------------------------------------------------------------
if (!("commandForElement" in HTMLButtonElement.prototype)) {
  document.addEventListener("click", (e) => {
    const button = e.target.closest("button[commandfor]");
    const target = button && $(button.getAttribute("commandfor"));
    if (!target) return;
    const command = button.getAttribute("command");
    if (command === "show-modal") target.showModal();
    else if (command === "close") target.close();
  });
}
if (!("closedBy" in HTMLDialogElement.prototype)) {
  document.addEventListener("click", (e) => {
    if (e.target.matches("dialog[closedby=any]")) e.target.close(); // a click on the backdrop
  });
}

// --- a form that was refused comes back at the top of a page that may be long: lead to what it says ---
const refused = document.querySelector("main [aria-invalid=true]");
if (refused) {
  const folded = refused.closest("details");
  if (folded) folded.open = true;
  refused.focus();
}
