// The bell, what the browser shows while nobody looks, and the worker of an installed portal. The side bar's list asks for
// all of it (conversations/_recent.html); the server hands each notice to one browser only (notices/services.py).

const page = document.body;
const KEY = "gw.notify"; // whose notices this browser shows: the id of the person who allowed it
const isPossible = "Notification" in window && isSecureContext;

/** Tell whether this browser shows the notices of the person who is signed in. */
function isOn() {
  try {
    return isPossible && Notification.permission === "granted" &&
      localStorage.getItem(KEY) === page.dataset.person;
  } catch {
    return false; // storage refused
  }
}

// --- the bell's list: read when it is opened -----------------------------------------------------
document.getElementById("notices-panel")?.addEventListener("toggle", (e) => {
  if (e.newState === "open") htmx.trigger(e.target, "gw:open");
});

// The button of what is marked as read is gone afterwards: who pressed it goes on at its line, or at the first one.
let marked = null;
document.addEventListener("submit", (e) => {
  const list = e.target.closest(".notices-list");
  if (list) marked = { list, pk: e.target.elements.notice?.value };
});
document.addEventListener("htmx:after:swap", () => {
  if (!marked || document.activeElement !== page) return;
  const { list, pk } = marked;
  list.querySelector(pk ? `[data-notice="${CSS.escape(pk)}"]` : "[data-notice]")?.focus();
  marked = null;
});

// The side bar's list may have been read just before, and would bring the bell's old number back.
document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  if (ctx.request.method === "POST" && ctx.target?.matches?.(".notices-list")) {
    document.dispatchEvent(new Event("gw:listed"));
  }
});

// --- what the browser shows ----------------------------------------------------------------------
document.addEventListener("htmx:config:request", (e) => {
  if (e.target.id !== "recent-a" || !isOn()) return;
  if (document.hidden || !document.hasFocus()) e.detail.ctx.request.headers["X-Notify"] = "1";
});

/** Show one notice outside of the page. */
async function show(link) {
  const { title, tag } = link.dataset, url = link.getAttribute("href");
  const options = { body: link.textContent, tag, data: { url }, icon: page.dataset.icon };
  const registration = await navigator.serviceWorker?.getRegistration();
  if (registration?.active) return registration.showNotification(title, options);
  const shown = new Notification(title, options);
  shown.addEventListener("click", () => {
    focus();
    location.assign(url);
  });
}
const claimed = document.getElementById("notify");
if (claimed) {
  new MutationObserver(() => {
    for (const link of claimed.querySelectorAll("a")) show(link);
    const again = Number(claimed.querySelector("[data-again]")?.dataset.again);
    if (again) setTimeout(() => document.dispatchEvent(new Event("gw:listed")), again * 1000);
  }).observe(claimed, { childList: true });
}
document.addEventListener("submit", async (e) => {
  if (!e.target.matches("[data-sign-out]")) return;
  const registration = await navigator.serviceWorker?.getRegistration();
  for (const shown of (await registration?.getNotifications()) ?? []) shown.close();
});

// --- the setting: this browser is asked when a person presses the button, and never before ------------
const setting = document.getElementById("browser-notices");
function draw() {
  const state = !isPossible
    ? "impossible"
    : Notification.permission === "denied"
    ? "denied"
    : isOn()
    ? "on"
    : "off";
  for (const part of setting.querySelectorAll("[data-state]")) part.hidden = part.dataset.state !== state;
}
if (setting) {
  setting.addEventListener("click", async (e) => {
    const change = e.target.closest("[data-notify]")?.dataset.notify;
    if (!change) return;
    const isAllowed = change === "on" && await Notification.requestPermission() === "granted";
    try {
      if (isAllowed) localStorage.setItem(KEY, page.dataset.person);
      else localStorage.removeItem(KEY);
    } catch { /* storage refused: it stays off */ }
    draw();
    setting.querySelector("[data-state]:not([hidden]) button")?.focus();
  });
  draw();
}

// --- the worker: offline page and shown notices; after the page, which doesn't wait for it ------------
if ("serviceWorker" in navigator && page.dataset.worker) {
  addEventListener("load", () => {
    navigator.serviceWorker.register(page.dataset.worker, { updateViaCache: "none" }).catch(() => {
      // refused by the browser's settings: the portal works without it
    });
  }, { once: true });
}
