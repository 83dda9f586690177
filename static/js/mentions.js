// What is typed in the message box as "/", "@" or "#": a list of prompts, of collections and documents, or of tools, which the
// server fills (conversations:suggest). What is chosen is put into the text or becomes a chip that limits this message. The
// menus of scope and tools have the same lists under a search field.

const $ = (id) => document.getElementById(id);
const form = $("composer"), box = form.elements.text, narrowed = $("narrowed"), panel = $("suggest");
const fillDialog = $("prompt-fill");
const WAIT_MS = 120;
const FIELDS = { collection: "only_collections", document: "only_documents", tool: "only_tools" };
const ICONS = { collection: "library", document: "file-text", tool: "wrench" };
const make = (tag, cls, text) => {
  const el = document.createElement(tag);
  if (cls) el.className = cls;
  if (text != null) el.textContent = text;
  return el;
};
const icon = (name) => {
  const holder = make("span");
  holder.innerHTML =
    `<svg class="i s" aria-hidden="true"><use href="${form.dataset.icons}#i-${name}"/></svg>`;
  return holder.firstElementChild;
};

// --- chips -------------------------------------------------------------------------------------------------------------
/** What is chosen, as _picked.html has it; `mark` says that its kind is shown too. */
function chip(field, { value, title, kind }, { isInForm, mark }) {
  const li = make("li", "chip"), name = make("span", "clip", title), sent = make("input");
  const remove = make("button");
  li.dataset.chip = value;
  name.dir = "auto";
  Object.assign(sent, { type: "hidden", name: field, value });
  if (!isInForm) sent.setAttribute("form", "composer");
  remove.type = "button";
  remove.dataset.chipRemove = "";
  remove.setAttribute("aria-label", interpolate(gettext("Remove %(name)s"), { name: title }));
  remove.append(icon("x"));
  if (mark) li.append(icon(ICONS[kind]));
  li.append(name, sent, remove);
  return li;
}
function take(li) {
  const all = [...li.parentElement.children], next = all[all.indexOf(li) + 1] ?? all[all.indexOf(li) - 1];
  const inMessage = li.parentElement === narrowed, menu = li.closest("form:not(#composer)");
  const title = li.querySelector(".clip").textContent;
  li.remove();
  gw.announce(interpolate(gettext("%(name)s removed"), { name: title }));
  (next?.querySelector("button") ?? (inMessage ? box : menu.querySelector("[data-pick]"))).focus();
  menu?.dispatchEvent(new Event("change", { bubbles: true }));
  if (menu) mark(menu.querySelector("[role=listbox]"));
}
document.addEventListener("click", (e) => {
  const button = e.target.closest("[data-chip-remove]");
  if (button) take(button.closest("[data-chip]"));
});
document.addEventListener("keydown", (e) => {
  const li = e.target.closest?.("[data-chip-remove]")?.closest("[data-chip]");
  if (!li) return;
  const step = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling" }[e.key];
  if (e.key === "Backspace" || e.key === "Delete") take(li);
  else if (step) li[step]?.querySelector("button").focus();
  else return;
  e.preventDefault();
});
/** Limit this message to one thing more. Documents and collections take each other's place: see the server's rule. */
function narrow(option) {
  const { kind, value, title } = option.dataset, field = FIELDS[kind];
  const other = { collection: FIELDS.document, document: FIELDS.collection }[kind];
  for (const input of narrowed.querySelectorAll("input")) {
    if (input.name === other || (input.name === field && input.value === value)) input.closest("li").remove();
  }
  narrowed.append(chip(field, { value, title, kind }, { isInForm: true, mark: true }));
  gw.announce(interpolate(gettext("This message is limited to %(name)s"), { name: title }));
}
box.addEventListener("gw:taken", (e) => { // a question that waited comes back with what it was limited to
  for (const dataset of e.detail) narrow({ dataset });
});
form.addEventListener("htmx:config:request", (e) => {
  if (e.target === form) e.detail.ctx.chips = [...narrowed.children];
});
form.addEventListener("htmx:finally:request", (e) => {
  const status = e.detail.ctx.response?.status ?? 0;
  if (e.target !== form || status < 200 || status >= 400) return;
  for (const li of e.detail.ctx.chips) li.remove(); // one chosen meanwhile is for the next question
});

// --- a listbox under a text field ------------------------------------------------------------------------------------
/** Mark the options of a menu that are chosen. */
function mark(list) {
  const picked = list.closest("form").querySelector("[data-picked]");
  for (const o of list.querySelectorAll("[role=option]")) {
    const is = picked.querySelector(`[data-chip="${CSS.escape(o.dataset.value)}"]`) !== null;
    o.toggleAttribute("data-chosen", is);
  }
}
class Choice {
  constructor(input, list, { choose, filled }) {
    Object.assign(this, { input, list, choose, filled, asked: 0, isStale: false, isEntered: false });
    list.addEventListener("mousedown", (e) => e.preventDefault()); // the field keeps the focus
    list.addEventListener("click", (e) => {
      const option = e.target.closest("[role=option]");
      if (option) this.choose(option);
    });
  }
  get options() {
    return [...this.list.querySelectorAll("[role=option]")];
  }
  get active() {
    return this.options.find((o) => o.getAttribute("aria-selected") === "true");
  }
  select(option) {
    for (const o of this.options) o.setAttribute("aria-selected", String(o === option));
    if (!option) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }
  ask(what, query, more = {}) {
    clearTimeout(this.waiting);
    const mine = ++this.asked;
    this.isStale = true;
    this.waiting = setTimeout(() => this.read(mine, what, query, more), WAIT_MS);
  }
  async read(mine, what, query, more) {
    const url = new URL(form.dataset.suggest, location.href);
    for (const [key, value] of Object.entries({ what, q: query, ...more })) url.searchParams.set(key, value);
    for (const [key, value] of new FormData(form)) { // what is chosen for a new conversation
      if (key === "collections" || key === "off") url.searchParams.append(key, value);
    }
    let html = "";
    try {
      const answer = await fetch(url);
      if (!answer.ok) throw new Error(String(answer.status));
      html = await answer.text();
    } catch {
      if (mine === this.asked) gw.announce(gettext("The list could not be read. Check your connection."));
    }
    if (mine !== this.asked) return;
    this.isStale = false;
    this.list.innerHTML = html; // our own fragment, which its template has escaped
    this.select(this.options[0]);
    this.filled(query);
    if (this.isEntered && this.active) this.choose(this.active);
    this.isEntered = false;
  }
  forget() {
    clearTimeout(this.waiting);
    this.asked++;
    this.isStale = this.isEntered = false;
  }
  /** Move or choose; true for a key that was for the list. */
  key(e) {
    const all = this.options, step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && all.length) this.select(all[(all.indexOf(this.active) + step + all.length) % all.length]);
    else if (e.key === "Enter" && this.isStale) this.isEntered = true; // it counts when the list answers what is typed
    else if (e.key === "Enter" && this.active) this.choose(this.active);
    else return false;
    e.preventDefault();
    e.stopPropagation();
    return true;
  }
}

// --- the message box -------------------------------------------------------------------------------------------------
let at = null; // what the list is about: {what, start, query}; null while it is closed
let dismissed = -1, nothing = null; // where Escape has closed it; what has no match
const choice = new Choice(box, $("suggest-list"), { choose: chosen, filled: shown });

/** What is typed before the caret that opens a list: "/" at the start of the message, "@" or "#" at the start of a word. */
function typed() {
  if (box.selectionStart !== box.selectionEnd) return null;
  const before = box.value.slice(0, box.selectionStart);
  const prompt = /^\/([^\n]{0,60})$/u.exec(before);
  if (prompt) return { what: "prompts", start: 0, query: prompt[1] };
  const named = /(?:^|[\s(])([@#])((?:[^\s@#][^\n@#]{0,59})?)$/u.exec(before);
  if (!named) return null;
  const start = before.length - named[2].length - 1;
  return { what: named[1] === "@" ? "mentions" : "tools", start, query: named[2] };
}
function look() {
  const found = typed();
  if (!found) dismissed = -1;
  if (!found || found.start === dismissed || isHopeless(found)) return close();
  if (at && at.what === found.what && at.start === found.start && at.query === found.query) return;
  at = found;
  choice.ask(found.what, found.query);
}
/** More letters find no more: a message about "#1" or "@ home" goes on undisturbed. */
function isHopeless({ what, start, query }) {
  return nothing !== null && nothing.what === what && nothing.start === start &&
    query.startsWith(nothing.query);
}
function shown() {
  if (!at) return;
  const found = choice.options.filter((o) => o.dataset.kind !== "link").length;
  if (!found && at.query) {
    nothing = at;
    return close();
  }
  nothing = null;
  if (panel.hidden) {
    panel.hidden = false;
    // A text box of several lines must not be a combobox; it may have a popup, and an option that is active.
    box.setAttribute("aria-haspopup", "listbox");
    box.setAttribute("aria-autocomplete", "list");
    box.setAttribute("aria-controls", "suggest-list");
  }
  gw.announce(
    interpolate(ngettext("%(count)s suggestion", "%(count)s suggestions", found), { count: found }),
  );
}
function close() {
  choice.forget();
  at = null;
  if (panel.hidden) return;
  panel.hidden = true;
  for (const name of ["aria-haspopup", "aria-autocomplete", "aria-controls"]) {
    box.removeAttribute(name);
  }
  box.removeAttribute("aria-activedescendant");
}
function chosen(option) {
  const { kind, value, title, text, variables } = option.dataset;
  const { start, end } = { start: at.start, end: at.end ?? box.selectionStart };
  close();
  if (kind === "link") return location.assign(value);
  if (kind === "prompt") return usePrompt({ title, text, names: JSON.parse(variables) }, start, end);
  replace("", start, end);
  narrow(option);
}
/** Put text in place of a part of the message, as if it was typed, so that it is kept as a draft. */
function replace(text, start, end) {
  box.setRangeText(text, start, end, "end");
  dismissed = start; // a prompt may begin with a slash itself
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.focus();
}
box.addEventListener("input", look);
box.addEventListener("click", look);
box.addEventListener("keyup", (e) => {
  if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(e.key)) look();
});
box.addEventListener("blur", () => close());
// Before the box's own keys, which send.
form.addEventListener("keydown", (e) => {
  if (e.target !== box || e.isComposing || e.keyCode === 229) return;
  if (e.key === "Backspace" && !box.selectionStart && !box.selectionEnd && narrowed.lastElementChild) {
    e.preventDefault();
    return narrowed.lastElementChild.querySelector("button").focus();
  }
  if (panel.hidden) return;
  if (e.key === "Escape") {
    dismissed = at.start;
    close();
    e.preventDefault();
    e.stopPropagation();
  } else if (!e.shiftKey) choice.key(e);
}, true);
$("prompts-open").addEventListener("click", () => {
  box.focus();
  if (!box.value) {
    return box.setRangeText("/", 0, 0, "end"), box.dispatchEvent(new Event("input", { bubbles: true }));
  }
  at = { what: "prompts", start: box.selectionStart, end: box.selectionEnd, query: "" };
  choice.ask("prompts", "");
});

// --- prompts with variables --------------------------------------------------------------------------------------------
let using = null; // {text, names, start, end} while the form is open
function usePrompt({ title, text, names }, start, end) {
  if (!names.length) return replace(text, start, end);
  using = { text, names, start, end };
  $("prompt-fill-h").textContent = title;
  const fields = names.map((name, index) => {
    const field = make("div", "f"), label = make("label", "", name), input = make("input");
    Object.assign(input, { id: `prompt-fill-${index}`, autocomplete: "off", dir: "auto", autofocus: !index });
    label.htmlFor = input.id;
    field.append(label, input);
    return field;
  });
  fillDialog.querySelector("[data-fields]").replaceChildren(...fields);
  fillDialog.showModal();
}
fillDialog.querySelector("form").addEventListener("submit", () => {
  const values = [...fillDialog.querySelectorAll("[data-fields] input")].map((input) => input.value);
  const { text, names, start, end } = using;
  // In one pass, so that braces in what was filled in stay what they are. Names are letters, digits, spaces and "-".
  const filled = text.replace(
    new RegExp(`\\{(${names.join("|")})\\}`, "gu"),
    (_whole, name) => values[names.indexOf(name)],
  );
  using = { filled, start, end };
});
fillDialog.addEventListener("close", () => {
  const done = using;
  using = null;
  if (done?.filled == null) return box.focus();
  replace(done.filled, done.start, done.end);
});
const used = $("prompt-used");
if (used) {
  const { title, text, variables } = used.dataset, url = new URL(location.href);
  url.searchParams.delete("prompt"); // a reload keeps what was made of it
  history.replaceState(history.state, "", url);
  if (box.value.trim()) box.value = `${box.value.trimEnd()}\n\n`; // a draft stays
  usePrompt({ title, text, names: JSON.parse(variables) }, box.value.length, box.value.length);
}

// --- the menus of scope and tools ----------------------------------------------------------------------------------------
function menu(input) {
  const own = input.closest("form"), list = $(input.getAttribute("aria-controls")), what = input.dataset.pick;
  const picked = own.querySelector("[data-picked]"),
    isLocal = own.matches("[data-scope-local], [data-tools-local]");
  const pick = new Choice(input, list, {
    filled: () => mark(list),
    choose: (option) => {
      const there = picked.querySelector(`[data-chip="${CSS.escape(option.dataset.value)}"]`);
      if (there) there.remove();
      else picked.append(chip(picked.dataset.picked, option.dataset, { isInForm: !isLocal }));
      const { title } = option.dataset;
      gw.announce(
        interpolate(there ? gettext("%(name)s removed") : gettext("%(name)s added"), { name: title }),
      );
      mark(list);
      own.dispatchEvent(new Event("change", { bubbles: true }));
    },
  });
  input.addEventListener("input", () => pick.ask(what, input.value, { menu: 1 }));
  input.addEventListener("change", (e) => e.stopPropagation()); // a search is no choice
  input.addEventListener("keydown", (e) => {
    if (!e.isComposing && e.keyCode !== 229) pick.key(e);
  });
  own.addEventListener("submit", (e) => e.preventDefault());
  if (list.childElementCount) {
    pick.select(pick.options[0]);
    mark(list);
  }
  return () => pick.ask(what, input.value, { menu: 1 });
}
for (const popover of document.querySelectorAll(".scope-menu")) {
  let open = null;
  const begin = () => {
    const input = popover.querySelector("[data-pick]");
    if (!input || "ready" in input.dataset) return;
    input.dataset.ready = "";
    open = menu(input);
    if (popover.matches(":popover-open")) {
      input.focus();
      if (!popover.querySelector("[role=option]")) open();
    }
  };
  begin();
  new MutationObserver(begin).observe(popover, { childList: true, subtree: true }); // the tools come when they are asked for
  popover.addEventListener("toggle", (e) => {
    if (e.newState === "open" && popover.id === "scope-menu") open?.();
  });
}
