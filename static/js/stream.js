// Live answers and live documents over hx-sse. The server sends states, not steps: every frame may be
// replayed, so a reload, a second tab or a restarted server never doubles or loses anything.

const GONE = [401, 403, 404, 410]; // answers that will not get better by asking again
const keyOf = (el) => parseInt(el.id.match(/(\d+)$/)?.[1] ?? "0", 10);

// Swap style "blocks": children are inserted or morphed by id and kept in the order of the number that
// ends their id. "blocks keep:N" also drops children numbered N and up (a heading can merge two blocks).
let morph;
htmx.registerExtension("blocks", {
  init(api) {
    morph = api.morph;
  },
  handle_swap(style, target, fragment, spec) {
    if (style !== "blocks") return false;
    const touched = [];
    for (const el of [...fragment.children]) {
      const old = el.id && document.getElementById(el.id);
      if (old) {
        const failed = el.matches("details[data-failed]") && !old.matches("[data-failed]");
        const wrap = document.createDocumentFragment(), id = el.id;
        wrap.append(el);
        morph(old, wrap, false);
        const now = document.getElementById(id); // another element, where the two are of different kinds
        if (failed) now.open = true; // an error shows itself; otherwise the reader decides what is open
        touched.push(now);
      } else {
        const next = [...target.children].find((c) => keyOf(c) > keyOf(el));
        target.insertBefore(el, next ?? null);
        touched.push(el);
      }
    }
    if (spec.keep != null) {
      for (const c of [...target.children]) if (keyOf(c) >= Number(spec.keep)) c.remove();
    }
    return touched;
  },
});

const articleOf = (el) => el.closest?.("[data-run]");

// Remember the newest event shown; drop frames older than that.
document.addEventListener("htmx:sse:before:message", (e) => {
  const art = articleOf(e.target), { id, event } = e.detail.message;
  if (!art || event) return;
  const seq = Number(id || 0);
  if (seq && seq < Number(art.dataset.seq)) return e.preventDefault();
  if (seq) art.dataset.seq = String(seq);
});

// A broken line is a quiet state, not an error: the answer keeps running on the server.
document.addEventListener("htmx:sse:before:connection", (e) => {
  if (e.detail.connection.attempt > 0) articleOf(e.target)?.setAttribute("data-lost", "");
});
document.addEventListener(
  "htmx:sse:after:connection",
  (e) => articleOf(e.target)?.removeAttribute("data-lost"),
);
document.addEventListener("htmx:sse:error", (e) => {
  if (GONE.includes(e.detail.status)) return giveUp(e.target);
  articleOf(e.target)?.setAttribute("data-lost", "");
});
document.addEventListener("htmx:sse:close", (e) => {
  if (e.detail.reason !== "message") return;
  const art = articleOf(e.target);
  if (!art) return;
  art.removeAttribute("data-live");
  art.removeAttribute("data-lost");
  for (const mark of document.querySelectorAll(".recent [aria-current] .pulse")) mark.remove(); // the rest is told by conversations:recent
  gw.announce(gettext("Answer ready"));
  document.dispatchEvent(new CustomEvent("gw:answered", { detail: { article: art } }));
});

/** End a stream for good: the reader is signed out, or the thing is gone. */
function giveUp(el) {
  const art = articleOf(el);
  el.remove();
  if (!art) return;
  art.removeAttribute("data-live");
  art.removeAttribute("data-lost");
  gw.toast(gettext("This answer can no longer be followed here. Reload the page to see its status."));
}

// hx-sse retries a stream that broke, but never one whose first request failed: arm it again, with backoff.
const tries = new WeakMap();
function rearm(e) {
  const el = e.target;
  if (!el.hasAttribute?.("hx-sse:connect") || el._htmx?.sse) return;
  if (GONE.includes(e.detail.ctx?.response?.status)) return giveUp(el);
  articleOf(el)?.setAttribute("data-lost", "");
  const n = tries.get(el) ?? 0;
  tries.set(el, n + 1);
  setTimeout(() => el.isConnected && htmx.process(el, true), Math.min(500 * 2 ** n, 15000));
}
document.addEventListener("htmx:error", rearm);
document.addEventListener("htmx:response:error", rearm);
