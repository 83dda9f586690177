// The worker of the portal: shows the offline page while the server can't be reached, and what notices.js has it show.
// Above this is KEPT: the name of the cache, the offline page with its files, the icon (web/views/web_app.py).
// It stores those files and nothing else: no answer to a page of the portal ever goes into a cache.

addEventListener("install", (e) => {
  const keep = async () => {
    const cache = await caches.open(KEPT.cache);
    const asked = [KEPT.page, ...KEPT.files].map((url) =>
      new Request(url, { cache: "reload", credentials: "omit" })
    );
    await cache.addAll(asked);
    await skipWaiting(); // it serves no page but one: nothing of the old version is in use
  };
  e.waitUntil(keep());
});

addEventListener("activate", (e) => {
  const takeOver = async () => {
    for (const name of await caches.keys()) {
      if (name !== KEPT.cache) await caches.delete(name);
    }
    await registration.navigationPreload?.enable(); // a page is asked for while this worker still starts
    await clients.claim();
  };
  e.waitUntil(takeOver());
});

/** A page from the server as it is now, or the offline page. */
async function page(e) {
  try {
    return (await e.preloadResponse) ?? (await fetch(e.request));
  } catch {
    return (await caches.match(KEPT.page)) ?? Response.error();
  }
}

addEventListener("fetch", (e) => {
  const { request } = e;
  const url = new URL(request.url);
  if (request.mode === "navigate" && request.method === "GET") e.respondWith(page(e));
  else if (url.origin === location.origin && KEPT.files.includes(url.pathname)) {
    e.respondWith(fetch(request).catch(async () => (await caches.match(request)) ?? Response.error()));
  }
});

// A notification leads to its place: in a window that is open if there is one.
addEventListener("notificationclick", (e) => {
  e.notification.close();
  const open = async () => {
    const url = new URL(e.notification.data.url, location.origin).href;
    const windows = await clients.matchAll({ type: "window" });
    const there = windows.find((w) => w.url.split("#")[0] === url.split("#")[0]);
    if (there) return there.focus();
    return clients.openWindow(url);
  };
  e.waitUntil(open());
});
