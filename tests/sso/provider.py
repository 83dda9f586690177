"""An OpenID provider on a real loopback socket, which also lies when it is told to."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

DOMAIN = "acme.example"
CLIENT, SECRET = "groundwork", "s3cret/with:marks"


class Key:
    """A signing key with its public form."""

    def __init__(self, kid: str, *, curve: bool = False, bits: int = 2048) -> None:
        self.kid, self.algorithm = kid, "ES256" if curve else "RS256"
        if curve:
            self.private: Any = ec.generate_private_key(ec.SECP256R1())
            found = ECAlgorithm.to_jwk(self.private.public_key())
        else:
            self.private = rsa.generate_private_key(65537, bits)
            found = RSAAlgorithm.to_jwk(self.private.public_key())
        self.public = {**json.loads(found), "kid": kid, "use": "sig", "alg": self.algorithm}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        return jwt.encode(claims, self.private, self.algorithm, {"kid": self.kid, **header})


KEY, OTHER_KEY = Key("one"), Key("two")


class Provider:
    """A provider. ``people`` may sign in; what is set on it changes what it answers.

    Attributes:
        person: claims of who signs in now.
        token: makes the ID token of claims; another one may make what no honest provider would.
        discovery: changes to the discovery document.
        states_issuer: says ``iss`` in its answers.
        calls: paths that were asked for.
    """

    def __init__(self) -> None:
        self.person: dict[str, Any] = {}
        self.keys = [KEY]
        self.token: Callable[[dict[str, Any]], Any] = KEY.sign
        self.userinfo: dict[str, Any] = {}
        self.discovery: dict[str, Any] = {}
        self.states_issuer = True
        self.answers_jwks: bytes | None = None
        self.calls: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider._get(self)

            def do_POST(self) -> None:
                provider._post(self)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def authorize(self, url: str) -> str:
        """Sign the person in as a browser would; returns where the browser is sent back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["code_challenge_method"] == "S256"
        assert asked["client_id"] == CLIENT
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        said = {"code": code, "state": asked["state"]}
        if self.states_issuer:
            said["iss"] = self.issuer
        return f"{asked['redirect_uri']}?{urlencode(said)}"

    def claims(self, nonce: str) -> dict[str, Any]:
        now = int(time.time())
        return {
            "iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce, **self.person
        }  # fmt: skip

    def _get(self, handler: BaseHTTPRequestHandler) -> None:
        path = urlsplit(handler.path).path
        self.calls.append(path)
        if path == "/.well-known/openid-configuration":
            said = {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
                "authorization_response_iss_parameter_supported": True,
                **self.discovery,
            }
            _answer(handler, 200, {k: v for k, v in said.items() if v is not None})
        elif path == "/jwks":
            if self.answers_jwks is not None:
                _answer(handler, 200, self.answers_jwks)
            else:
                _answer(handler, 200, {"keys": [key.public for key in self.keys]})
        elif path == "/userinfo" and handler.headers["Authorization"] == "Bearer access":
            _answer(handler, 200, self.userinfo)
        elif path == "/moved":
            handler.send_response(302)
            handler.send_header("Location", f"{self.issuer}/jwks")
            handler.end_headers()
        else:
            _answer(handler, 404, {})

    def _post(self, handler: BaseHTTPRequestHandler) -> None:
        self.calls.append(urlsplit(handler.path).path)
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        asked = self.codes.pop(form.get("code", ""), None)
        pair = base64.b64decode(handler.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        given = ":".join(urllib.parse.unquote(one) for one in pair.split(":", 1))
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            asked is None
            or given != f"{CLIENT}:{SECRET}"
            or form["redirect_uri"] != asked["redirect_uri"]
            or base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != asked["code_challenge"]
        ):
            _answer(handler, 400, {"error": "invalid_grant"})
            return
        token = self.token(self.claims(asked["nonce"]))
        _answer(handler, 200, {"id_token": token, "access_token": "access", "token_type": "Bearer"})


def _answer(handler: BaseHTTPRequestHandler, status: int, said: Any) -> None:
    body = said if isinstance(said, bytes) else json.dumps(said).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
