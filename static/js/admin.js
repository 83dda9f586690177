/* Names for what the admin's own scripts build without one, so that a screen reader can tell the fields apart. */
"use strict";
(() => {
  const nameAll = () => {
    for (const box of document.querySelectorAll(".select2-selection[role=combobox]")) {
      const select = box.closest(".select2-container")?.previousElementSibling;
      const label = select?.id && document.querySelector(`label[for="${select.id}"]`);
      if (!label) continue;
      label.id ||= `${select.id}_label`;
      const chosen = box.querySelector(".select2-selection__rendered");
      // Nobody can type in it: it is the value of the combobox, not a text box without a name inside of one.
      chosen?.removeAttribute("role");
      chosen?.removeAttribute("aria-readonly");
      box.setAttribute("aria-labelledby", `${label.id} ${chosen?.id ?? ""}`.trim());
    }
    // A moment is two fields under one name; the words before them are bare text.
    for (
      const part of document.querySelectorAll(".datetime :is(.vDateField, .vTimeField):not([aria-label])")
    ) {
      const name = part.closest(".flex-container")?.querySelector("label")?.textContent ?? "";
      const which = part.previousSibling?.textContent ?? "";
      part.setAttribute("aria-label", `${name} ${which}`.replace(/[\s:]+/g, " ").trim());
    }
    for (const hint of document.querySelectorAll("span.help-tooltip[aria-label]:not([role])")) {
      hint.setAttribute("role", "img");
    }
    // Over columns of boxes and links, which name themselves: a head that says nothing is none.
    for (const head of document.querySelectorAll("th:empty:not([role])")) head.setAttribute("role", "cell");
  };
  window.django?.jQuery?.(nameAll); // comes after the admin's own call, which may be before or after the page's load
  addEventListener("load", nameAll);
  document.addEventListener("formset:added", () => setTimeout(nameAll)); // after the admin's own listener
})();
