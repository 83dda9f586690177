// Theme: "auto" (the system's), "light" or "dark", kept in localStorage; and what this browser can do, by which a page has
// some buttons or not (voice.js). Loaded in <head> without defer, so that both stand before the first paint; it is small for
// that reason.
(() => {
  const KEY = "gw.theme";
  const root = document.documentElement;
  const read = () => {
    try {
      return localStorage.getItem(KEY) || "auto";
    } catch {
      return "auto";
    } // storage may be refused
  };
  const apply = (choice) => {
    if (choice === "light" || choice === "dark") root.dataset.theme = choice;
    else delete root.dataset.theme;
    for (const b of document.querySelectorAll("[data-theme-choice]")) {
      b.setAttribute("aria-pressed", String(b.dataset.themeChoice === choice));
    }
  };
  apply(read());
  root.toggleAttribute("data-dictates", "SpeechRecognition" in window || "webkitSpeechRecognition" in window);
  root.toggleAttribute("data-speaks", "speechSynthesis" in window);
  document.addEventListener("DOMContentLoaded", () => apply(read()));
  document.addEventListener("click", (e) => {
    const button = e.target.closest("[data-theme-choice]");
    if (!button) return;
    const choice = button.dataset.themeChoice;
    try {
      localStorage.setItem(KEY, choice);
    } catch { /* the choice then lasts for this page only */ }
    apply(choice);
  });
  window.addEventListener("storage", (e) => {
    if (e.key === KEY) apply(read());
  });
})();
