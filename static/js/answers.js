// What stands under an answer: a proposed question is asked at a click.
document.addEventListener("click", (e) => {
  const button = e.target.closest("[data-follow-up]");
  const form = document.getElementById("composer");
  if (!button || !form) return;
  const box = form.elements.text, typed = box.value.trim();
  box.value = typed ? `${box.value.trimEnd()}\n${button.dataset.followUp}` : button.dataset.followUp;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.focus();
  if (!typed) form.requestSubmit(); // a draft is not sent along unasked
});
