/* Names for what the admin's own scripts build without one, so that a screen reader can tell the fields apart. */
"use strict";
(() => {
  const nameAll = () => {
    for (const box of document.querySelectorAll(".select2-selection[role=combobox]")) {
      const select = box.closest(".select2-container")?.previousElementSibling;
      const label = select?.id && document.querySelector(`label[for="${select.id}"]`);
      if (!label) continue;
      label.id ||= `${select.id}_label`;
      const chosen = box.querySelector(".select2-selection__rendered")?.id ?? "";
      box.setAttribute("aria-labelledby", `${label.id} ${chosen}`.trim());
    }
    for (const hint of document.querySelectorAll("span.help-tooltip[aria-label]:not([role])")) hint.setAttribute("role", "img");
  };
  addEventListener("load", nameAll);
  document.addEventListener("formset:added", () => setTimeout(nameAll)); // after the admin's own listener
})();
