// Uploads with progress: drag and drop or a file chooser, several files, three at a time. XHR, because
// fetch reports no upload progress. The server's answer to a file is its finished
// table row; to an archive (202) it is a line that leads to its import.
//
// <form data-upload="URL" data-rows="#documents" data-queue="#uploads"> with one input[type=file][multiple].
//
// <form data-begin action="URL" data-queue="#uploads"> makes a collection first (POST to its action, _created.html), uploads
// into it, and goes to its page when all are there; with data-at-once as soon as files are chosen, else when it is
// sent. With both data-upload and data-at-once the collection is there, and data-then is its page.

const PARALLEL = 3;
const digits = (n, how) =>
  new Intl.NumberFormat(document.documentElement.lang, {
    useGrouping: false,
    numberingSystem: "latn",
    ...how,
  }).format(n);
const rounded = (n, places) => digits(n, { minimumFractionDigits: places, maximumFractionDigits: places });
const size = (n) =>
  n < 1024 ? `${n} B` : n < 1048576 ? `${rounded(n / 1024, 0)} KB` : `${rounded(n / 1048576, 1)} MB`;
const parsed = (html) => {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return holder.content;
};
const make = (tag, cls, text) => {
  const el = document.createElement(tag);
  if (cls) el.className = cls;
  if (text != null) el.textContent = text;
  return el;
};

// The page's stream may overtake the answer to an upload or to a button of a row. What it says of a row that isn't there yet
// waits for the row, and an older row doesn't take the place of a newer one.
const early = new Map();
const isOlder = (row, other) => Number(row.dataset.at) < Number(other.dataset.at);
document.addEventListener("htmx:sse:before:message", (e) => {
  if (!Uploads.running) return early.clear();
  const news = parsed(e.detail.message.data.replace(/(<\/?)hx-partial/g, "$1template"));
  for (const part of news.querySelectorAll("template")) {
    const row = part.content.firstElementChild;
    if (row?.matches("tr[data-at]") && !document.getElementById(row.id)) early.set(row.id, row);
  }
});
document.addEventListener("htmx:before:swap", (e) => {
  const row = e.target.closest?.("tr[data-at]"), news = row && parsed(e.detail.ctx.text).firstElementChild;
  if (news?.matches("tr[data-at]") && isOlder(news, row)) e.preventDefault();
});

class Uploads {
  static running = 0; // of all forms
  constructor(form) {
    this.form = form;
    this.queue = document.querySelector(form.dataset.queue);
    this.rows = form.dataset.rows ? document.querySelector(form.dataset.rows) : null;
    this.then = form.dataset.then ?? null; // where to go when all are uploaded
    this.waits = form.dataset.begin !== undefined; // for its collection
    if (this.waits) {
      form.addEventListener("submit", (e) => {
        if (!this.waiting.length) return; // an empty collection is an ordinary form
        e.preventDefault();
        this.#begin();
      });
    }
    this.waiting = [];
    this.running = 0;
    this.failed = 0;
    this.imported = 0;
    const input = form.querySelector("input[type=file]");
    input.addEventListener("change", () => {
      this.add([...input.files]);
      input.value = "";
    });
    // The whole page accepts a drop: a near miss must not make the browser leave for the file. Beside a message box, which
    // takes files too, the zone has the conversation's part of the page.
    let depth = 0;
    const zone = form.querySelector(".drop"), page = form.closest("#msgs") ?? window;
    const files = (e) => e.dataTransfer?.types.includes("Files");
    page.addEventListener("dragenter", (e) => {
      if (files(e)) {
        e.stopPropagation();
        depth++;
        zone.classList.add("over");
      }
    });
    page.addEventListener("dragleave", (e) => {
      e.stopPropagation();
      if (--depth <= 0) {
        depth = 0;
        zone.classList.remove("over");
      }
    });
    page.addEventListener("dragover", (e) => {
      if (!files(e)) return;
      e.stopPropagation();
      e.preventDefault();
    });
    page.addEventListener("drop", (e) => {
      if (!files(e)) return;
      e.stopPropagation();
      e.preventDefault();
      depth = 0;
      zone.classList.remove("over");
      this.add([...e.dataTransfer.files]);
    });
    addEventListener("beforeunload", (e) => {
      if (this.running) e.preventDefault();
    });
  }

  add(files) {
    for (const file of files) {
      const job = { file, row: this.#row(file) };
      this.waiting.push(job);
      if (this.waits) {
        job.row.act(gettext("Remove"), () => {
          this.waiting.splice(this.waiting.indexOf(job), 1);
          job.row.el.remove();
          this.#card();
        });
      }
    }
    this.#card();
    if (!this.waits) this.#next();
    else if (this.form.dataset.atOnce !== undefined && this.waiting.length) this.#begin();
  }

  /** Make the collection that the files go into. */
  async #begin() {
    if (this.begins) return;
    this.begins = true;
    const button = this.form.querySelector("[type=submit]");
    if (button) button.disabled = true;
    try {
      const answer = await fetch(this.form.action, {
        method: "POST",
        body: new FormData(this.form),
        headers: { "HX-Request": "true" },
      });
      const html = await answer.text();
      if (answer.status === 201) {
        const link = new DOMParser().parseFromString(html, "text/html").querySelector("[data-upload]");
        this.form.dataset.upload = link.dataset.upload;
        this.then = link.getAttribute("href");
        this.waits = false;
        return this.#next();
      }
      const fields = new DOMParser().parseFromString(html, "text/html").getElementById("fields");
      if (answer.status === 422 && fields && this.form.querySelector("#fields")) this.#refused(fields);
      else gw.toast(gw.errorText({ response: answer, text: html }));
    } catch {
      gw.toast(gw.errorText({}));
    } finally {
      this.begins = false;
      if (button) button.disabled = !this.waits;
    }
  }

  /** Show what the server says of the fields; the zone and the files that wait stay. */
  #refused(fields) {
    const own = this.form.querySelector("#fields"), zone = own.querySelector(".drop");
    fields.querySelector(".drop").replaceWith(zone);
    own.replaceWith(fields);
    fields.querySelector("[aria-invalid=true]")?.focus();
  }

  #next() {
    while (this.running < PARALLEL && this.waiting.length) this.#send(this.waiting.shift());
    this.#card();
    if (this.then && !this.running && !this.waiting.length && !this.failed) location.assign(this.then);
  }

  #send(job) {
    const { file, row } = job;
    const xhr = new XMLHttpRequest(), body = new FormData();
    body.append("file", file, file.name);
    this.running++;
    Uploads.running++;
    row.state(gettext("Uploading"), 0);
    row.act(gettext("Cancel"), () => xhr.abort());
    xhr.upload.onprogress = (e) => {
      if (e.lengthComputable) row.state(gettext("Uploading"), e.loaded / e.total);
    };
    xhr.upload.onload = () => row.state(gettext("Checking"), 1);
    const done = (then) => {
      this.running--;
      Uploads.running--;
      then();
      this.#next();
    };
    xhr.onload = () =>
      done(() => {
        if (xhr.status < 300 && this.then) row.el.remove();
        else if (xhr.status === 202) {
          this.imported++;
          row.came(xhr.responseText, () => {
            this.imported--;
            this.#card();
          });
        } else if (xhr.status < 300) {
          row.el.remove();
          this.#insert(xhr.responseText);
        } else this.#fail(job, gw.errorText({ response: { status: xhr.status }, text: xhr.responseText }));
      });
    xhr.onerror = () => done(() => this.#fail(job, gw.errorText({})));
    xhr.onabort = () => done(() => row.el.remove());
    xhr.open("POST", this.form.dataset.upload);
    xhr.setRequestHeader(
      "X-CSRFToken",
      JSON.parse(document.body.getAttribute("hx-headers:inherited"))["X-CSRFToken"],
    );
    xhr.setRequestHeader("HX-Request", "true");
    xhr.send(body);
  }

  /** Put the server's row on top, or over the same document's row (a duplicate answers with its row). */
  #insert(html) {
    let row = parsed(html).firstElementChild;
    if (!row) return;
    const old = document.getElementById(row.id), came = early.get(row.id);
    if (came && !isOlder(came, row)) row = came;
    if (old && isOlder(row, old)) return;
    if (old) old.replaceWith(row);
    else this.rows.prepend(row);
    document.querySelector("[data-empty]")?.remove();
    this.rows.closest("[hidden]")?.removeAttribute("hidden");
    htmx.process(row);
  }

  #fail(job, reason) {
    this.failed++;
    job.row.fail(reason, () => {
      this.failed--;
      this.waiting.push(job);
      this.#next();
    }, () => {
      this.failed--;
      this.#next();
    });
    gw.announce(
      interpolate(gettext("%(name)s was not uploaded: %(reason)s"), { name: job.file.name, reason }),
    );
  }

  #card() {
    const card = this.queue.closest("section"),
      title = card.querySelector("h2"),
      n = this.running + this.waiting.length;
    card.hidden = !this.queue.childElementCount;
    const counted = this.waits
      ? ngettext("To upload: %(count)s file", "To upload: %(count)s files", n)
      : ngettext("Uploading %(count)s file", "Uploading %(count)s files", n);
    title.textContent = n
      ? interpolate(counted, { count: n })
      : this.failed
      ? interpolate(ngettext("%(count)s not uploaded", "%(count)s not uploaded", this.failed), {
        count: this.failed,
      })
      : gettext("Archives are imported");
  }

  #row(file) {
    const el = make("li", "up"),
      mark = make("span", "muted"),
      name = make("span", "clip"),
      bar = make("span", "bar stack"),
      act = make("span", "act");
    const icon = this.queue.dataset.icon;
    mark.innerHTML = `<svg class="i" aria-hidden="true"><use href="${icon}"/></svg>`;
    name.append(make("span", "med sm", file.name), " ", make("span", "muted xs", size(file.size)));
    bar.dataset.gap = "";
    el.append(mark, name, bar, act);
    this.queue.append(el);
    const progress = make("progress"),
      line = make("span", "row xs muted"),
      word = make("span", "grow", gettext("Waiting")),
      share = make("span", "num");
    progress.max = 1;
    progress.value = 0;
    progress.setAttribute("aria-label", interpolate(gettext("Uploading %(name)s"), { name: file.name }));
    line.append(word, share);
    const button = (text, fn) => {
      const b = make("button", "btn sm", text);
      b.type = "button";
      b.setAttribute(
        "aria-label",
        interpolate(gettext("%(action)s: %(name)s"), { action: text, name: file.name }),
      );
      b.addEventListener("click", fn);
      return b;
    };
    const row = {
      el,
      state(text, value) {
        bar.replaceChildren(progress, line);
        word.textContent = text;
        progress.value = value;
        share.textContent = value > 0 && value < 1
          ? digits(Math.floor(value * 100) / 100, { style: "percent" })
          : "";
      },
      act(text, fn) {
        act.replaceChildren(button(text, fn));
      },
      came(html, dismiss) {
        const holder = document.createElement("template");
        holder.innerHTML = html;
        bar.replaceChildren(holder.content);
        const gone = button(gettext("Dismiss"), () => {
          el.remove();
          dismiss();
        });
        gone.classList.add("ghost");
        act.replaceChildren(gone);
        gw.announce(interpolate(gettext("%(name)s is being imported"), { name: file.name }));
      },
      fail(reason, retry, dismiss) {
        bar.replaceChildren(make("span", "reason", reason));
        const gone = button(gettext("Dismiss"), () => {
          el.remove();
          dismiss();
        });
        gone.classList.add("ghost");
        act.replaceChildren(button(gettext("Retry"), retry), gone);
      },
    };
    row.state(gettext("Waiting"), 0);
    return row;
  }
}

for (const form of document.querySelectorAll("form[data-upload], form[data-begin]")) new Uploads(form);
