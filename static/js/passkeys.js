// Passkeys (WebAuthn). <form data-passkey="get" | "create" data-challenge="URL"> has a hidden input "credential" and
// submits itself once the browser has made or shown a passkey. A form with "hidden", and what is marked
// data-passkey-only, appear where passkeys work; what is marked data-passkey-missing, where they don't. A refusal
// is said in its [data-passkey-problem].

const WORKS = window.isSecureContext && "PublicKeyCredential" in window &&
  !/^(\d+\.){3}\d+$|^\[/.test(location.hostname);

const bytes = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const text = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll(
    "=",
    "",
  );

const known = (list) => list?.map((one) => ({ ...one, id: bytes(one.id) }));

async function create(options) {
  options.challenge = bytes(options.challenge);
  options.user.id = bytes(options.user.id);
  options.excludeCredentials = known(options.excludeCredentials);
  const made = await navigator.credentials.create({ publicKey: options });
  return {
    id: made.id,
    rawId: text(made.rawId),
    type: made.type,
    response: {
      clientDataJSON: text(made.response.clientDataJSON),
      attestationObject: text(made.response.attestationObject),
    },
    clientExtensionResults: { credProps: made.getClientExtensionResults().credProps },
  };
}

async function get(options) {
  options.challenge = bytes(options.challenge);
  options.allowCredentials = known(options.allowCredentials);
  const shown = await navigator.credentials.get({ publicKey: options });
  const { userHandle } = shown.response;
  return {
    id: shown.id,
    rawId: text(shown.rawId),
    type: shown.type,
    response: {
      clientDataJSON: text(shown.response.clientDataJSON),
      authenticatorData: text(shown.response.authenticatorData),
      signature: text(shown.response.signature),
      ...(userHandle?.byteLength ? { userHandle: text(userHandle) } : {}),
    },
    clientExtensionResults: {},
  };
}

function words(error) {
  if (error.name === "InvalidStateError") {
    return gettext("This device already has a passkey for your account.");
  }
  if (error.name === "NotAllowedError") {
    return gettext("No passkey was used: it was canceled, or took too long. Try again.");
  }
  if (error.name === "SecurityError") {
    return gettext("Passkeys don't work at this address. Ask the operator.");
  }
  return error.message || gettext("That passkey didn't work. Try again.");
}

async function begin(form) {
  const answer = await fetch(form.dataset.challenge, {
    method: "POST",
    headers: { Accept: "application/json", "X-CSRFToken": form.elements.csrfmiddlewaretoken.value },
  });
  if (answer.redirected) {
    location.reload(); // the password is asked for again
    return null;
  }
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.message);
  return said;
}

async function submit(form) {
  const button = form.querySelector("button[type=submit]");
  const problem = form.querySelector("[data-passkey-problem]");
  problem.hidden = true;
  button.disabled = true;
  try {
    const options = await begin(form);
    if (!options) return;
    const credential = await (form.dataset.passkey === "create" ? create : get)(options);
    form.elements.credential.value = JSON.stringify(credential);
    form.submit();
  } catch (error) {
    problem.textContent = words(error);
    problem.hidden = false;
    button.disabled = false;
  }
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    submit(form);
  });
  form.hidden = !WORKS;
}
for (const el of document.querySelectorAll("[data-passkey-only]")) el.hidden = !WORKS;
for (const el of document.querySelectorAll("[data-passkey-missing]")) el.hidden = WORKS;
