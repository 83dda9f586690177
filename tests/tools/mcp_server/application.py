"""An application that a member connects by OAuth, over HTTP."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.test import Client

from tests.cast import Cast
from tests.tools.mcp_server.conftest import message, post

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
HOME = "https://app.example/cb"
LOCAL = "http://127.0.0.1:7777/cb"
BACKEND = "django.contrib.auth.backends.ModelBackend"


class App:
    """An application at one workspace's authorization server, and the browser of the member who uses it."""

    def __init__(self, cast: Cast, role: str = "member", *uris: str, name: str = "Robot") -> None:
        self.slug, self.cast, self.role = cast.tenant.slug, cast, role
        self.uris = uris or (HOME, LOCAL)
        self.browser = Client(raise_request_exception=False)
        self.browser.force_login(cast.user(role), backend=BACKEND)
        self.resource = f"http://testserver/t/{self.slug}/mcp"
        self.client_id = self.register(redirect_uris=list(self.uris), client_name=name).json()["client_id"]

    def register(self, **said: Any) -> Any:
        return Client().post(
            f"/t/{self.slug}/oauth/register", json.dumps(said), content_type="application/json"
        )

    def url(self, **given: str) -> str:
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.uris[0],
            "state": "s&1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "resource": self.resource,
            "scope": "tool.run search.run",
        }
        return f"/t/{self.slug}/oauth/authorize?{urlencode({**asked, **given})}"

    def consent(self, scopes: tuple[str, ...] = ("tool.run",), action: str = "allow", **given: str) -> Any:
        return self.browser.post(self.url(**given), {"action": action, "scope": scopes})

    def code(self, *scopes: str, **given: str) -> str:
        response = self.consent(scopes or ("tool.run",), **given)
        assert response.status_code == 303, response.content
        return str(dict(parse_qsl(urlsplit(response["Location"]).query))["code"])

    def token(self, slug: str = "", **sent: str) -> Any:
        data = {"client_id": self.client_id, **sent}
        return Client().post(
            f"/t/{slug or self.slug}/oauth/token",
            urlencode(data),
            content_type="application/x-www-form-urlencoded",
        )

    def redeem(self, code: str, **sent: str) -> Any:
        said = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.uris[0],
            "code_verifier": VERIFIER,
        }
        return self.token(**{**said, **sent})

    def refresh(self, token: str, **sent: str) -> Any:
        return self.token(**{"grant_type": "refresh_token", "refresh_token": token, **sent})

    def connect(self, *scopes: str) -> dict[str, Any]:
        response = self.redeem(self.code(*scopes))
        assert response.status_code == 200, response.content
        return dict(response.json())

    def works(self, tokens: dict[str, Any], slug: str = "") -> bool:
        """Tell whether the access token still opens the server."""
        response = post(slug or self.slug, message("tools/list"), tokens["access_token"])
        assert response.status_code in (200, 401), response.content
        return bool(response.status_code == 200)


def is_refused(response: Any, error: str = "invalid_grant") -> bool:
    assert response.status_code == 400, response.content
    return bool(response.json()["error"] == error)
