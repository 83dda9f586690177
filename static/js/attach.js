// Files in the message box: chosen, dropped or pasted; uploaded one after the other with progress, shown as chips that say
// how far their reading is (_attachment.html), and taken back with an undo. XHR, because fetch reports no upload progress.

const $ = (id) => document.getElementById(id);
const form = $("composer"), box = form.elements.text, list = $("attached"), input = $("attach-files");
const LONG_PASTE = 6000; // characters of pasted text that are a file rather than a question
const UNDO_MS = 8000;
const begun = form.elements.conversation; // a new conversation begins with its first file
const make = (tag, cls, text) => {
  const el = document.createElement(tag);
  if (cls) el.className = cls;
  if (text != null) el.textContent = text;
  return el;
};
const icon = (name, cls = "i") => {
  const holder = make("span");
  holder.innerHTML =
    `<svg class="${cls}" aria-hidden="true"><use href="${form.dataset.icons}#i-${name}"/></svg>`;
  return holder.firstElementChild;
};
const button = (text, label, fn, name) => {
  const b = make("button", name ? "btn ghost icon sm" : "btn ghost sm", name ? null : text);
  b.type = "button";
  b.setAttribute("aria-label", label);
  if (name) b.append(icon(name, "i s"));
  b.addEventListener("click", fn);
  return b;
};
const csrf = () => JSON.parse(document.body.getAttribute("hx-headers:inherited"))["X-CSRFToken"];

// --- uploading: one at a time, so that the first file begins the conversation and the others join it ----------------
const waiting = [], pasted = new Map(); // text by the id of its chip
let running = null, sendAfter = false;

function add(files, { pasted = "" } = {}) {
  for (const file of files) {
    const el = make("li", "att"),
      what = make("span", "what"),
      line = make("span", "xs muted", gettext("Waiting"));
    what.append(make("span", "clip med", file.name), line);
    el.append(icon("loader-circle", "i spin t-acc"), what);
    const job = { file, el, what, line, pasted };
    el.append(
      button("", interpolate(gettext("Cancel %(name)s"), { name: file.name }), () => cancel(job), "x"),
    );
    list.append(el);
    waiting.push(job);
  }
  next();
}

function cancel(job) {
  if (running === job) return job.xhr.abort();
  const at = waiting.indexOf(job);
  if (at >= 0) waiting.splice(at, 1);
  job.el.remove();
}

function next() {
  if (running) return;
  running = waiting.shift() ?? null;
  if (!running) {
    if (sendAfter && !list.querySelector("[data-not-sent]")) form.requestSubmit();
    sendAfter = false;
    return;
  }
  const job = running, xhr = job.xhr = new XMLHttpRequest(), body = new FormData();
  body.append("file", job.file, job.file.name);
  if (begun && !begun.value) {
    for (const name of ["model", "assistant", "project"]) {
      if (form.elements[name]?.value) body.append(name, form.elements[name].value);
    }
    for (const pk of new FormData(form).getAll("collections")) body.append("collections", pk);
  }
  const bar = make("progress");
  bar.max = 1;
  bar.value = 0;
  bar.setAttribute("aria-label", interpolate(gettext("Uploading %(name)s"), { name: job.file.name }));
  job.line.replaceWith(bar);
  job.line = bar;
  xhr.upload.onprogress = (e) => {
    if (e.lengthComputable) bar.value = e.loaded / e.total;
  };
  const done = (then) => {
    running = null;
    then();
    next();
  };
  xhr.onload = () =>
    done(() => {
      if (xhr.status < 300) return place(job, xhr.responseText);
      fail(job, gw.errorText({ response: { status: xhr.status }, text: xhr.responseText }));
    });
  xhr.onerror = () => done(() => fail(job, gw.errorText({})));
  xhr.onabort = () => done(() => job.el.remove());
  xhr.open(
    "POST",
    begun?.value
      ? form.dataset.attach.replace(/attachments\/$/, `${begun.value}/attachments/`)
      : form.dataset.attach,
  );
  xhr.setRequestHeader("X-CSRFToken", csrf());
  xhr.setRequestHeader("HX-Request", "true");
  xhr.send(body);
}

/** Put the server's chip in place of the upload. */
function place(job, html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const chip = holder.content.firstElementChild;
  if (begun) begun.value = chip.dataset.conversation;
  if (job.pasted) pasted.set(chip.id, job.pasted);
  job.el.replaceWith(chip);
  htmx.process(chip);
  gw.announce(interpolate(gettext("%(name)s is attached"), { name: job.file.name }));
}

function fail(job, reason) {
  job.el.classList.add("bad");
  job.el.dataset.notSent = "";
  const line = make("span", "xs t-bad", interpolate(gettext("Not attached: %(reason)s"), { reason })),
    old = job.el.querySelector(":scope > svg");
  job.line.replaceWith(line);
  job.line = line;
  old.replaceWith(icon("circle-x", "i t-bad"));
  for (const b of job.el.querySelectorAll("button")) b.remove();
  job.el.append(
    button(gettext("Retry"), interpolate(gettext("Attach %(name)s again"), { name: job.file.name }), () => {
      job.el.remove();
      add([job.file], job);
    }),
    button("", interpolate(gettext("Dismiss %(name)s"), { name: job.file.name }), () => job.el.remove(), "x"),
  );
  gw.announce(interpolate(gettext("%(name)s was not attached: %(reason)s"), { name: job.file.name, reason }));
}

// --- choosing, dropping, pasting -------------------------------------------------------------------------------------
input.addEventListener("change", () => {
  add([...input.files]);
  input.value = "";
  box.focus();
});
let depth = 0;
const files = (e) => e.dataTransfer?.types.includes("Files");
addEventListener("dragenter", (e) => {
  if (files(e)) {
    depth++;
    form.classList.add("over");
  }
});
addEventListener("dragleave", () => {
  if (--depth <= 0) {
    depth = 0;
    form.classList.remove("over");
  }
});
addEventListener("dragover", (e) => {
  if (files(e)) e.preventDefault();
}); // a near miss must not leave for the file
addEventListener("drop", (e) => {
  if (!files(e)) return;
  e.preventDefault();
  depth = 0;
  form.classList.remove("over");
  add([...e.dataTransfer.files]);
});
box.addEventListener("paste", (e) => {
  const given = [...(e.clipboardData?.files ?? [])];
  if (given.length) {
    e.preventDefault();
    return add(given);
  }
  const text = e.clipboardData?.getData("text/plain") ?? "";
  if (text.length < LONG_PASTE) return;
  e.preventDefault();
  add([new File([text], gettext("Pasted text.txt"), { type: "text/plain" })], { pasted: text });
});
addEventListener("beforeunload", (e) => {
  if (running) e.preventDefault();
});
function fill(text) {
  box.value = box.value ? `${box.value}\n${text}` : text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.focus();
}

// --- taking back: at once on the page, for good when the undo is over, the question is sent or the page goes -----------
list.addEventListener("click", (e) => {
  const chip = e.target.closest("[data-att-remove]")?.closest(".att");
  if (!chip) return;
  const name = chip.dataset.name,
    field = chip.querySelector("input[name=attachments]"),
    kept = [...chip.childNodes];
  field.disabled = true;
  chip.classList.add("gone");
  const what = make("span", "what"),
    undo = button(gettext("Undo"), interpolate(gettext("Keep %(name)s"), { name }), () => {
      clearTimeout(timer);
      chip.classList.remove("gone");
      chip.replaceChildren(...kept);
      field.disabled = false;
      box.focus();
    });
  what.append(make("span", "clip med", name), make("span", "xs muted", gettext("Removed")));
  chip.replaceChildren(what, undo);
  undo.focus();
  gw.announce(interpolate(gettext("%(name)s is removed"), { name }));
  const timer = setTimeout(() => drop(chip), UNDO_MS);
});
for (const name of ["htmx:before:request", "htmx:before:swap"]) {
  list.addEventListener(name, (e) => {
    if (e.target.matches(".att.gone")) e.preventDefault();
  }); // the undo stays
}
function drop(chip) {
  if (!chip.isConnected) return;
  chip.remove();
  fetch(chip.dataset.remove, {
    method: "POST",
    keepalive: true,
    headers: { "X-CSRFToken": csrf(), "HX-Request": "true" },
  })
    .then((r) => {
      if (!r.ok && r.status !== 404) {
        gw.toast(
          interpolate(gettext("%(name)s could not be removed. Reload the page."), {
            name: chip.dataset.name,
          }),
        );
      }
    })
    .catch(() =>
      gw.toast(
        interpolate(gettext("%(name)s could not be removed. Check your connection and reload the page."), {
          name: chip.dataset.name,
        }),
      )
    );
}
const settle = () => {
  for (const chip of list.querySelectorAll(".gone")) drop(chip);
};
addEventListener("pagehide", settle);

// --- sending: after the uploads, with the chips' ids; they leave the box when the server has taken the question ---------
form.addEventListener("htmx:config:request", (e) => {
  if (e.target !== form) return;
  if (!running && !waiting.length) {
    settle();
    e.detail.ctx.files = [...list.querySelectorAll("[name=attachments]")].map((field) =>
      field.closest(".att").id
    );
    return;
  }
  e.preventDefault();
  e.stopImmediatePropagation();
  sendAfter = true;
  gw.announce(gettext("Your question is sent when the files are uploaded"));
}, true);
form.addEventListener("htmx:finally:request", (e) => {
  if (e.target !== form) return;
  const status = e.detail.ctx.response?.status ?? 0;
  if (status >= 200 && status < 400) {
    for (const id of e.detail.ctx.files) list.querySelector(`#${id}`)?.remove(); // one that came meanwhile stays
  }
});

// --- what the chosen model can look at, and what the scope chip says -----------------------------------------------------
function sight() {
  const model = form.elements.model?.selectedOptions?.[0];
  const sees = (model ? model.dataset.sees : form.dataset.sees ?? "").split(" ");
  for (const chip of list.querySelectorAll(".att[data-kind]")) {
    chip.toggleAttribute("data-unseen", chip.dataset.kind !== "text" && !sees.includes(chip.dataset.kind));
  }
  for (const [id, text] of pasted) { // again after each news of the chip
    const chip = $(id), end = chip?.querySelector("[data-att-remove]");
    if (!end || chip.querySelector("[data-as-text]")) continue;
    const back = button(
      gettext("As text"),
      interpolate(gettext("Put %(name)s back as text"), { name: chip.dataset.name }),
      () => {
        drop(chip);
        fill(text);
      },
    );
    back.dataset.asText = "";
    end.before(back);
  }
  const names = new Set(
    [...document.querySelectorAll("#turns .att[data-name], #attached .att[data-name]:not(.gone)")].map((c) =>
      c.dataset.name
    ),
  );
  const label = $("scope-files"), all = $("scope-attached");
  label.hidden = all.hidden = !names.size;
  label.textContent = interpolate(ngettext("+ %(count)s file", "+ %(count)s files", names.size), {
    count: names.size,
  });
  all.querySelector("ul").replaceChildren(...[...names].map((name) => make("li", "clip", name)));
}
form.elements.model?.addEventListener("change", sight);
for (const el of [list, $("turns")]) {
  new MutationObserver(sight).observe(el, {
    childList: true,
    subtree: true,
    attributeFilter: ["data-unseen", "data-kind", "class"],
  });
}
sight();
