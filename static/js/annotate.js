// Grading with the keyboard: 1 to 5 grade the criterion that waits, arrows move between criteria, Enter saves, S skips.
// U (undo) is pressed by the shell. Without this file the form works by mouse and Tab.

const form = document.getElementById("grading");
const criteria = form ? [...form.querySelectorAll("[data-criterion]")] : [];
let current = 0;

/** Make a criterion the one that the next digit grades. */
function show(place) {
  current = Math.max(0, Math.min(criteria.length - 1, place));
  criteria.forEach((one, at) => one.toggleAttribute("data-current", at === current));
  criteria[current]?.scrollIntoView({ block: "nearest" });
}
const ungraded = () => criteria.findIndex((one) => !one.querySelector("input:checked"));
const writing = (el) => el.matches("textarea, input:not([type=radio])");

if (criteria.length) {
  show(Math.max(0, ungraded()));
  form.addEventListener("change", (e) => {
    const at = criteria.indexOf(e.target.closest("[data-criterion]"));
    if (at >= 0) show(at);
  });
  document.addEventListener("keydown", (e) => {
    if (e.isComposing || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    if (e.key === "Escape" && writing(e.target)) return e.target.blur();
    if (writing(e.target)) return;
    const input = /^[1-5]$/.test(e.key) && criteria[current].querySelector(`input[value="${e.key}"]`);
    if (input) {
      input.checked = true;
      const next = ungraded();
      show(next < 0 ? current : next);
      window.gw?.announce(
        next < 0
          ? gettext("All graded. Press Enter to save.")
          : criteria[current].querySelector("legend b").textContent,
      );
    } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      if (e.target.matches("input[type=radio]")) return; // the arrows move within the levels there
      show(current + (e.key === "ArrowDown" ? 1 : -1));
    } else if (e.key === "Enter" && !e.target.closest("a, button, summary")) {
      form.querySelector("[data-key=enter]").click();
    } else if (e.key.toLowerCase() === "s") {
      form.querySelector("[data-key=s]").click();
    } else if (e.key.toLowerCase() === "u" && e.target.matches("input[type=radio]")) {
      form.querySelector("[data-key=u]")?.click(); // the shell leaves keys in fields alone
    } else return;
    e.preventDefault();
  });
}
