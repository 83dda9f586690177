// The offline page comes back by itself: when the browser has a network again, and when the server answers again.

const FIRST_MS = 2000, MOST_MS = 30_000;
let wait = FIRST_MS;
let timer = 0;

/** Reload once the server answers; the address is still that of the page one wanted. */
async function look() {
  clearTimeout(timer);
  try {
    const answer = await fetch("/healthz", { cache: "no-store" });
    if (answer.ok) return location.reload();
  } catch { /* still away */ }
  wait = Math.min(wait * 1.5, MOST_MS);
  timer = setTimeout(look, wait);
}

const isAway = location.pathname !== document.body.dataset.own; // it stands for another page
document.getElementById("again").addEventListener("click", () => {
  if (isAway) location.reload();
  else location.assign("/");
});
if (isAway) {
  addEventListener("online", look);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) look();
  });
  timer = setTimeout(look, wait);
}
