// Speaking instead of typing, and listening instead of reading, by the browser's own speech: dictation into the message box,
// and an answer read aloud. What is heard goes from the browser to its maker's service, perhaps; never to this server.

const $ = (id) => document.getElementById(id);
const form = $("composer"), box = form?.elements.text;
const pageLanguage = document.documentElement.lang || "en";

/** The reader's own variant of a language ("en-GB" of "en"), as browsers know it; else the language as it is. */
function variantOf(language) {
  const same = (tag) => tag.toLowerCase().split("-")[0] === language.toLowerCase().split("-")[0];
  return language.includes("-") ? language : navigator.languages?.find(same) ?? language;
}

// --- dictation -----------------------------------------------------------------------------------------------------------
const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;
const KEY = "gw.dictation";
const dictate = $("dictate"), notice = $("dictate-notice"), heard = $("heard"), problem = $("composer-error");
const PROBLEMS = {
  "not-allowed": () =>
    gettext(
      "The browser does not allow the microphone here. Allow it for this site next to the address, then try again.",
    ),
  "service-not-allowed": () =>
    gettext("This browser does not offer speech recognition. Type your question instead."),
  "audio-capture": () => gettext("No microphone was found. Connect one, then try again."),
  "network": () =>
    gettext("The browser's speech recognition could not be reached. Check your connection, then try again."),
  "language-not-supported": () =>
    interpolate(
      gettext("This browser does not recognize speech in %(language)s. Type your question instead."),
      {
        language: new Intl.DisplayNames(pageLanguage, { type: "language" }).of(pageLanguage),
      },
    ),
  "no-speech": () => gettext("Nothing was heard. Check the microphone, then try again."),
};
let listening = null;

function listen() {
  const mine = new Recognition();
  Object.assign(mine, { lang: variantOf(pageLanguage), continuous: true, interimResults: true });
  let taken = 0; // results that are in the message box
  mine.addEventListener("result", (e) => {
    if (mine !== listening) return;
    const results = [...e.results];
    while (results[taken]?.isFinal) type(results[taken++][0].transcript);
    heard.lastElementChild.textContent = results.slice(taken).map((r) => r[0].transcript).join("");
  });
  mine.addEventListener("error", (e) => {
    if (mine !== listening || e.error === "aborted") return;
    failed(e.error);
  });
  mine.addEventListener("end", () => mine === listening && shown(null));
  try {
    mine.start();
  } catch { // it has begun somewhere else
    return failed("service-not-allowed");
  }
  if (!box.selectionEnd) box.setSelectionRange(box.value.length, box.value.length); // nobody has put the cursor anywhere
  problem.replaceChildren();
  shown(mine);
  gw.announce(gettext("Listening. Press Escape to stop."));
}
/** Say above the message box why nothing is heard, until the next attempt. */
function failed(error) {
  const alert = document.createElement("p");
  alert.className = "alert bad";
  alert.setAttribute("role", "alert");
  alert.textContent = (PROBLEMS[error] ?? PROBLEMS["service-not-allowed"])();
  problem.replaceChildren(alert);
}
/** Show whether somebody is listened to. */
function shown(recognition) {
  listening = recognition;
  dictate.setAttribute("aria-pressed", String(recognition !== null));
  heard.hidden = recognition === null;
  heard.lastElementChild.textContent = "";
}
/** Stop; what is heard but not certain yet comes too, unless the question has gone. */
function stop({ isGone } = {}) {
  const mine = listening;
  if (!mine) return;
  const rest = isGone ? "" : heard.lastElementChild.textContent;
  shown(null);
  mine.abort();
  if (rest) type(rest);
  gw.announce(gettext("Dictation stopped"));
}
/** Put words where the cursor is, apart from those around. */
function type(words) {
  const { selectionStart: from, selectionEnd: to, value } = box;
  const before = value.slice(0, from), after = value.slice(to);
  let text = words.trim();
  if (!text) return;
  if (before && !/[\s([{]$/.test(before)) text = ` ${text}`;
  if (after && !/^[\s.,;:!?)\]}]/.test(after)) text += " ";
  box.setRangeText(text, from, to, "end");
  box.dispatchEvent(new Event("input", { bubbles: true }));
}
function isTold() {
  try {
    return localStorage.getItem(KEY) === "1";
  } catch {
    return false; // storage refused: it is said each time
  }
}
if (Recognition && dictate) {
  dictate.addEventListener("click", () => {
    if (listening) stop();
    else if (isTold()) listen();
    else notice.showModal();
    box.focus();
  });
  notice.addEventListener("close", () => {
    if (notice.returnValue !== "start") return;
    try {
      localStorage.setItem(KEY, "1");
    } catch { /* as above */ }
    notice.returnValue = "";
    box.focus();
    listen();
  });
  form.addEventListener("htmx:before:request", (e) => {
    if (e.target === form) stop({ isGone: true });
  });
  document.addEventListener("visibilitychange", () => document.hidden && stop());
}

// --- reading aloud -------------------------------------------------------------------------------------------------------
const LONGEST = 220; // characters of a piece: some voices end in the middle of more
const speech = window.speechSynthesis;
let reading = null; // {run, pieces, at}

/** What is said of an answer: its sentences, without marks of sources; code and formulas are named and not read. */
function piecesOf(article, language) {
  const copy = article.querySelector(".blocks").cloneNode(true);
  for (const el of copy.querySelectorAll(".cite, .nosrc-note, button, [hidden], svg, input")) el.remove();
  for (const code of copy.querySelectorAll(".copyable.code, pre")) {
    if (!copy.contains(code)) continue; // in a box that is replaced already
    const of = code.querySelector(".code-of")?.textContent.trim();
    const named = of ? interpolate(gettext("Code: %(language)s."), { language: of }) : gettext("Code.");
    code.replaceWith(paragraph(named));
  }
  for (const formula of copy.querySelectorAll("math")) {
    const isBlock = formula.getAttribute("display") === "block";
    formula.replaceWith(isBlock ? paragraph(gettext("Formula.")) : ` ${pgettext("read aloud", "formula")} `);
  }
  for (const row of copy.querySelectorAll("tr")) {
    row.replaceWith(paragraph([...row.cells].map((c) => c.textContent.trim()).filter(Boolean).join(", ")));
  }
  const cut = new Intl.Segmenter(language, { granularity: "sentence" });
  const pieces = [];
  for (const lines of linesOf(copy)) {
    for (const { segment } of cut.segment(lines)) pieces.push(...shortened(segment.trim()));
  }
  return pieces.filter((piece) => /[\p{L}\p{N}]/u.test(piece));
}
function paragraph(text) {
  const p = document.createElement("p");
  p.textContent = text;
  return p;
}
/** The texts of what stands on lines of its own, in order. */
function linesOf(root) {
  for (
    const el of root.querySelectorAll("p, li, h1, h2, h3, h4, h5, h6, tr, td, th, blockquote, br, hr, div")
  ) {
    el.before("\n");
    el.after("\n");
  }
  return root.textContent.split(/\n+/).map((line) =>
    line.replace(/\s+/g, " ").replace(/ ([.,;:!?])/g, "$1").trim()
  )
    .filter(Boolean);
}
function shortened(sentence) {
  const found = [];
  while (sentence.length > LONGEST) {
    const head = sentence.slice(0, LONGEST);
    const at = Math.max(
      head.lastIndexOf(", "),
      head.lastIndexOf("; "),
      head.lastIndexOf("、"),
      head.lastIndexOf("，"),
    );
    const end = at > 40 ? at + 1 : head.lastIndexOf(" ") > 40 ? head.lastIndexOf(" ") : LONGEST;
    found.push(sentence.slice(0, end));
    sentence = sentence.slice(end).trim();
  }
  return [...found, sentence];
}
/** The best voice for a language: of the reader's own variant, then the browser's first choice. */
function voiceOf(language) {
  const wanted = variantOf(language).toLowerCase(), stem = language.toLowerCase().split("-")[0];
  const tag = (voice) => voice.lang.toLowerCase().replace("_", "-");
  const of = speech.getVoices().filter((voice) => tag(voice).split("-")[0] === stem);
  return of.find((voice) => tag(voice) === wanted) ?? of.find((voice) => voice.default) ?? of[0] ?? null;
}
function read(button) {
  const article = button.closest("[data-run]"), language = button.dataset.readAloud || pageLanguage;
  const mine = { run: article.dataset.run, pieces: piecesOf(article, language), at: 0 };
  if (!mine.pieces.length) return;
  reading = mine;
  marked();
  const next = () => {
    if (mine !== reading) return;
    if (mine.at >= mine.pieces.length) return quiet();
    const said = new SpeechSynthesisUtterance(mine.pieces[mine.at++]);
    said.lang = variantOf(language);
    said.voice = voiceOf(language);
    said.addEventListener("end", next);
    said.addEventListener("error", (e) => {
      if (mine !== reading || e.error === "interrupted" || e.error === "canceled") return;
      quiet();
      gw.toast(gettext("The browser could not read this aloud. It may have no voice for this language."));
    });
    mine.said = said; // some browsers forget an utterance that nobody holds, and its end with it
    speech.speak(said);
  };
  speech.cancel(); // what another page may have left
  next();
}
function quiet() {
  reading = null;
  speech.cancel();
  marked();
}
/** Show on each button whether its answer is read; an answer's foot may be drawn again meanwhile. */
function marked() {
  for (const button of document.querySelectorAll("[data-read-aloud]")) {
    const is = button.closest("[data-run]")?.dataset.run === reading?.run;
    button.setAttribute("aria-pressed", String(is));
  }
}
if (speech) {
  document.addEventListener("click", (e) => {
    const button = e.target.closest("[data-read-aloud]");
    if (!button) return;
    const isMine = button.closest("[data-run]").dataset.run === reading?.run;
    if (reading) quiet();
    if (!isMine) read(button);
  });
  document.addEventListener("htmx:after:swap", () => reading && marked());
  addEventListener("pagehide", () => reading && quiet());
}

// Escape ends the voice first, whichever it is; an answer under way is stopped by the next one.
document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || e.isComposing || !(listening || reading)) return;
  if (document.querySelector("dialog[open], [popover]:popover-open")) return;
  e.preventDefault();
  if (listening) stop();
  else quiet();
}, true);
