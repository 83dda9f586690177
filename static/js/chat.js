// The conversation page: composer, optimistic send, drafts, following the growing text, citations.
// Sending itself is htmx (hx-post on #composer); this file adds what the markup cannot say.

const $ = (id) => document.getElementById(id);
const form = $("composer"),
  box = form.elements.text,
  msgs = $("msgs"),
  turns = $("turns"),
  problem = $("composer-error");
const touch = matchMedia("(pointer: coarse)");

// --- drafts: as typed. This browser has the newest until the server has taken it (hx-post on the textarea, and the last
// words when the page goes); a new conversation has no place on the server yet. -------------------
const DRAFT = `gw.draft.${form.dataset.draft}`, draftUrl = form.dataset.draftUrl;
const store = (text) => {
  try {
    if (text) localStorage.setItem(DRAFT, text);
    else localStorage.removeItem(DRAFT);
  } catch { /* storage refused: the draft lives in the page only */ }
};
let saving, kept = box.value;
try {
  box.value = localStorage.getItem(DRAFT) ?? box.value;
} catch { /* as above */ }
box.addEventListener("input", () => {
  clearTimeout(saving);
  saving = setTimeout(() => store(box.value), 200);
});
box.addEventListener("htmx:config:request", (e) => {
  kept = box.value;
  e.detail.ctx.request.body.set("client_id", idOf(kept));
});
box.addEventListener("htmx:finally:request", (e) => {
  const status = e.detail.ctx.response?.status ?? 0;
  if (status >= 200 && status < 400 && box.value === kept) store("");
});
addEventListener("pagehide", () => {
  clearTimeout(saving);
  const text = box.value || (sent.busy ? sent.text : "");
  if (text === kept) return; // the server has it, and perhaps a newer one from another browser soon
  store(text);
  if (!draftUrl) return;
  const body = new FormData();
  body.set("text", text);
  body.set("client_id", idOf(text));
  body.set("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
  navigator.sendBeacon(draftUrl, body);
});
/** Put text into the composer as if it was typed, above what is typed there already: nothing of either is lost. */
function fill(text) {
  box.value = box.value.trim() ? `${text.trimEnd()}\n\n${box.value}` : text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.focus();
}

// --- keys: Enter sends, Shift+Enter breaks the line; on touch, Enter breaks; never while an IME composes ---
box.addEventListener("keydown", (e) => {
  if (e.isComposing || e.keyCode === 229) return;
  if (e.key === "ArrowUp" && !box.value && !e.shiftKey && !live()) { // the last question, to edit it
    const edit = [...(turns?.querySelectorAll("[data-edit]") ?? [])].at(-1);
    if (edit) {
      e.preventDefault();
      edit.click();
    }
    return;
  }
  if (e.key !== "Enter" || e.shiftKey || touch.matches) return;
  e.preventDefault();
  if (!sent.busy) form.requestSubmit(); // while an answer is written the question waits in the queue
});
document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || e.defaultPrevented || e.isComposing) return;
  if (document.querySelector("dialog[open], [popover]:popover-open")) return; // Esc closes those first
  stop();
});
const live = () => turns?.querySelector("[data-live]");
function stop() { // of two answers under way, both
  for (const button of turns?.querySelectorAll("[data-live] [data-stop]") ?? []) button.click();
}
form.querySelector(".stop").addEventListener("click", stop);

// --- sending -----------------------------------------------------------------------------------
// One id per message, kept until the server has taken it: a retry after a lost answer is the same message.
const sent = { id: "", text: "", busy: false, bubble: null };
let typed = newId(); // of what is typed now: the server keeps no draft of what was asked, however late it comes
const idOf = (text) => sent.id && text.trim() === sent.text ? sent.id : typed;

form.addEventListener("htmx:config:request", (e) => {
  if (e.target !== form) return;
  const text = box.value.trim();
  if (!text || sent.busy) return e.preventDefault();
  sent.id = idOf(text);
  if (sent.id === typed) typed = newId();
  Object.assign(sent, { text, busy: true, bubble: null });
  problem.replaceChildren();
  box.value = "";
  kept = "";
  e.detail.ctx.request.body.set("client_id", sent.id);
  e.detail.ctx.request.body.set("text", text);
});
/** A version 4 UUID, also where crypto.randomUUID is missing (plain http off loopback). */
function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = (b[6] & 0x0f) | 0x40;
  b[8] = (b[8] & 0x3f) | 0x80;
  return [...b].map((x, i) => ([4, 6, 8, 10].includes(i) ? "-" : "") + x.toString(16).padStart(2, "0")).join(
    "",
  );
}
form.addEventListener("htmx:before:request", (e) => {
  if (e.target !== form) return;
  if (live()) return; // it waits above the composer, see _queue.html
  $("hello")?.setAttribute("hidden", "");
  sent.bubble = document.createElement("div");
  sent.bubble.className = "turn";
  sent.bubble.id = "turn-9999999999999"; // sorts last until the stored turn takes its place
  const user = document.createElement("div"), line = document.createElement("span");
  user.className = "user pending";
  user.textContent = sent.text;
  line.className = "row xs muted";
  line.innerHTML = `<svg class="i s spin" aria-hidden="true"><use href="${form.dataset.spinner}"/></svg>`;
  line.append(gettext("Sending"));
  user.append(line);
  sent.bubble.append(user);
  turns.append(sent.bubble);
  anchor(sent.bubble);
});
form.addEventListener("htmx:before:swap", (e) => {
  if (e.target !== form || (e.detail.ctx.response?.status ?? 0) >= 400) return;
  sent.bubble?.remove(); // in the same task as the swap, so that nothing jumps
  sent.accepted = true;
});
form.addEventListener("htmx:finally:request", (e) => {
  if (e.target !== form) return;
  const ctx = e.detail.ctx, status = ctx.response?.status ?? 0;
  sent.busy = false;
  if (status >= 200 && status < 400) {
    const waits = !sent.bubble;
    Object.assign(sent, { id: "", text: "", bubble: null });
    store(box.value);
    if (second?.value === ctx.request.body.get("compare_with")) second.value = ""; // each comparison is asked for
    if (waits) return gw.announce(gettext("Your question is next"));
    const last = turns.lastElementChild;
    if (last) anchor(last);
    for (const s of document.querySelectorAll(".srcset[data-active]")) s.removeAttribute("data-active");
    return;
  }
  sent.bubble?.remove();
  fill(sent.text);
  store(box.value);
  if (!turns.childElementCount) $("hello")?.removeAttribute("hidden");
  const alert = document.createElement("div"),
    text = document.createElement("p"),
    retry = document.createElement("button");
  alert.className = "alert bad";
  alert.setAttribute("role", "alert");
  text.className = "grow";
  const why = gw.errorText(ctx), told = [...document.querySelectorAll("#budget-notices p")];
  text.textContent = told.some((p) => p.textContent.includes(why))
    ? gettext("Not sent.")
    : interpolate(gettext("Not sent. %(why)s"), { why });
  retry.type = "submit";
  retry.className = "btn sm";
  retry.setAttribute("form", "composer");
  retry.textContent = gettext("Retry");
  alert.append(text, retry);
  problem.replaceChildren(alert);
  box.focus();
});
const starters = [...document.querySelectorAll("[data-start]")];
for (const b of starters) {
  b.addEventListener("click", () => {
    if (starters.some((s) => s.dataset.start === box.value)) box.value = ""; // another one was only tried
    fill(b.dataset.start);
  });
}
document.addEventListener("click", (e) => {
  if (!e.target.closest("[data-ask-again]")) return; // a failed answer: another model, then ask again
  form.elements.model?.focus();
  form.elements.model?.showPicker?.();
});

// What the page shows last goes with whatever may bring turns: a question that waits here may have been asked meanwhile.
document.addEventListener("htmx:config:request", (e) => {
  if (!turns || (e.target !== form && !e.target.closest?.("#queue"))) return;
  const shown = [...turns.children].filter((turn) => turn !== sent.bubble).at(-1);
  e.detail.ctx.request.body.set("after", shown ? shown.id.replace("turn-", "") : "0");
});

// --- a question that waits goes back into the composer; the share dialog reads its links when it opens ---
document.addEventListener("htmx:config:request", (e) => { // the list may be another one when the server has answered
  const back = e.target.closest?.("[data-take-back]");
  if (back) e.detail.ctx.taken = { ...back.dataset };
});
document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  const status = ctx.response?.status ?? 0;
  if (!ctx.taken || status < 200 || status >= 400) return; // it was asked meanwhile, or waits on
  fill(ctx.taken.takeBack);
  box.dispatchEvent(new CustomEvent("gw:taken", { detail: JSON.parse(ctx.taken.named) }));
});
const share = $("share");
if (share) {
  new MutationObserver(() => {
    if (share.open) htmx.trigger($("shares"), "gw:shares");
  })
    .observe(share, { attributes: true, attributeFilter: ["open"] });
}

// --- branches: buttons that ask name the question once, so that a retry is the same question -------
document.addEventListener("htmx:config:request", (e) => {
  const asks = e.target.closest?.("[data-asks]");
  if (!asks) return;
  asks.gwId ??= newId();
  e.detail.ctx.request.body.set("client_id", asks.gwId);
  e.detail.ctx.request.body.set("model", form.elements.model?.value ?? "");
});
document.addEventListener("keydown", (e) => {
  const edit = e.target.closest?.("[data-edit-form]");
  if (!edit || e.isComposing || e.keyCode === 229) return;
  if (e.key === "Escape") {
    e.preventDefault();
    endEdit(edit);
  } else if (e.key === "Enter" && !e.shiftKey && !touch.matches && e.target.matches("textarea")) {
    e.preventDefault();
    edit.requestSubmit();
  }
});
document.addEventListener("click", (e) => {
  const edit = e.target.closest("[data-cancel-edit]")?.closest("[data-edit-form]");
  if (edit) endEdit(edit);
});
function endEdit(edit) {
  const button = edit.closest(".ask").querySelector("[data-edit]");
  edit.remove();
  button.focus();
}
if (turns) {
  new MutationObserver((changes) => {
    for (const node of changes.flatMap((c) => [...c.addedNodes])) {
      if (node.matches?.("[data-edit-form]")) {
        for (const other of turns.querySelectorAll("[data-edit-form]")) if (other !== node) other.remove();
        const text = node.elements.text;
        text.focus();
        text.setSelectionRange(text.value.length, text.value.length);
      } else if (node.matches?.(".turn") && node.querySelector("[data-live]")) anchor(node);
    }
  }).observe(turns, { childList: true, subtree: true });
}

// --- two models: the second is another one than the first; who keeps an answer goes on asking ---------
const second = form.elements.compare_with;
function others() {
  for (const option of second.options) option.disabled = option.value === form.elements.model.value;
  if (second.selectedOptions[0].disabled) second.value = "";
}
if (second) {
  form.elements.model.addEventListener("change", others);
  others();
}
document.addEventListener("htmx:before:swap", (e) => { // the button is gone afterwards, and nothing has the focus
  if (!e.target.matches?.("[data-keeps]") || (e.detail.ctx.response?.status ?? 0) >= 400) return;
  gw.announce(gettext("Kept. Your next question follows this answer."));
  if (!touch.matches) box.focus();
});

// --- what kind of answer to expect, from the chosen model ----------------------------------------
function hint() {
  const extractive = form.elements.model?.selectedOptions[0]?.hasAttribute("data-extractive") ?? false;
  for (const el of document.querySelectorAll("[data-hint]")) {
    el.hidden = (el.dataset.hint === "extractive") !== extractive;
  }
}
form.elements.model?.addEventListener("change", hint);
hint();

// --- following: only while at the end; any upward move of the reader ends it at once -----------
const jump = $("jump");
let follow = true, ours = -1;
const gap = () => msgs.scrollHeight - msgs.clientHeight - msgs.scrollTop;
function scrollTo(top) {
  msgs.scrollTop = top;
  ours = msgs.scrollTop;
  last = ours;
}
function toEnd() {
  scrollTo(msgs.scrollHeight);
}
let anchored = null; // the turn that the next frame begins with
/** Put a turn's question at the top and leave it there: a long answer is read from its start. Just before the next frame:
 * where a turn stands takes a layout of the page, and a request that is about to leave does not wait for that. */
function anchor(turn) {
  follow = false;
  if (!anchored) {
    requestAnimationFrame(() => {
      const at = anchored;
      anchored = null;
      if (!at.isConnected) return;
      scrollTo(at.offsetTop - 24);
      seen();
    });
  }
  anchored = turn;
}
function seen() {
  if (jump) jump.hidden = gap() < 80;
}
let last = 0;
if (msgs) {
  msgs.addEventListener("scroll", () => {
    const top = msgs.scrollTop;
    if (Math.abs(top - ours) > 1) { // not our own doing: the reader's hand
      if (top < last - 1) follow = false;
      else if (gap() < 24) follow = true;
    }
    last = top;
    seen();
  }, { passive: true });
  for (const name of ["wheel", "touchmove"]) {
    msgs.addEventListener(name, (e) => {
      if (!(e.deltaY > 0)) follow = false;
      ours = -1;
    }, { passive: true });
  }
  new ResizeObserver(() => {
    if (follow) toEnd();
    seen();
  }).observe(turns);
  jump?.addEventListener("click", () => {
    follow = true;
    toEnd();
    seen();
  });
  // An answer under way, and the only one there is, is read from its question; a longer conversation opens at its end.
  const newest = turns.lastElementChild;
  if (newest && (newest.querySelector("[data-live]") || turns.childElementCount === 1)) anchor(newest);
  else toEnd();
}

// --- copy an answer: its Markdown with its sources, as the server has it ------------------------
document.addEventListener("click", async (e) => {
  const button = e.target.closest("[data-copy-answer]");
  if (!button) return;
  const text = fetch(button.dataset.copyAnswer).then((answer) => {
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.blob();
  }).then((blob) => blob.text());
  text.catch(() => {}); // told below, once
  try { // the promise itself: a browser that has waited for it would have forgotten the click
    await navigator.clipboard.write([
      new ClipboardItem({ "text/plain": text.then((t) => new Blob([t], { type: "text/plain" })) }),
    ]);
    gw.announce(gettext("Answer copied"));
  } catch {
    gw.toast(gettext("The answer could not be copied: the server did not answer, or the browser refused."));
  }
});

// --- the menus of scope and tools open above their buttons ---------------------------------------
const unchosen = form.elements.project ? $("scope-label").textContent : gettext("All collections"); // a project has its own
for (const menu of document.querySelectorAll(".scope-menu")) {
  menu.addEventListener("toggle", (e) => {
    if (e.newState !== "open") return;
    const at = form.querySelector(`[popovertarget=${menu.id}]`).getBoundingClientRect();
    menu.style.left = `${Math.max(12, Math.min(at.left, innerWidth - menu.offsetWidth - 12))}px`;
    menu.style.bottom = `${innerHeight - at.top + 8}px`; // it grows upwards when its list comes
  });
  menu.addEventListener("change", () => { // no conversation yet to tell: the labels say what goes with the question
    if (menu.querySelector("[data-scope-local]")) {
      const names = [...menu.querySelectorAll("[data-chip] > .clip")].map((name) => name.textContent);
      $("scope-label").textContent = names.length > 1
        ? interpolate(ngettext("%(name)s, %(count)s more", "%(name)s, %(count)s more", names.length - 1), {
          name: names[0],
          count: names.length - 1,
        })
        : names[0] ?? unchosen;
    } else if (menu.querySelector("[data-tools-local]")) {
      const off = menu.querySelectorAll("[name=off]").length;
      $("tools-label").textContent = off
        ? interpolate(ngettext("Tools, %(count)s off", "Tools, %(count)s off", off), { count: off })
        : gettext("Tools");
    }
  });
}

// --- voice: most never use it, so its script is fetched by the first press, which is then its own ---------------------------
const voice = document.querySelector("script[data-voice]").dataset.voice;
async function voiceBegin(e) {
  const button = e.target.closest("#dictate, [data-read-aloud]");
  if (!button) return;
  document.removeEventListener("click", voiceBegin);
  try {
    await import(voice);
  } catch (error) {
    document.addEventListener("click", voiceBegin); // the connection was gone: the next press tries again
    throw error;
  }
  button.click();
}
document.addEventListener("click", voiceBegin);
