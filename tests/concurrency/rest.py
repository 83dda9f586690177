"""A program that speaks to the REST API with a key, over real HTTP."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from tenancy.permissions import KEY_SCOPES, ROLE_ACTIONS
from tenancy.services import api_key_create
from tests.cast import Cast

_BOUNDARY = "----tests-boundary-7MA4YWxkTrZu0gW"


def make_key(cast: Cast, role: str = "owner") -> str:
    """Return an API key of somebody of the tenant with every scope a key may have."""
    _, key = api_key_create(
        tenant=cast.tenant,
        actor=cast.actor(role),
        name="tests",
        scopes=sorted(KEY_SCOPES & ROLE_ACTIONS[role]),
    )
    return key


def streamed(text: str) -> list[tuple[int, str, dict[str, Any]]]:
    """Return the server-sent events of a text as (id, kind, data); the last one, ``end``, is none of them."""
    found = []
    for frame in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line and line[0] != ":")
        if fields.get("event") not in (None, "end"):
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


@dataclass(frozen=True)
class Answer:
    """Status and headers of an answer, its text, and its value where it is JSON (else None)."""

    status: int
    headers: dict[str, str]
    text: str
    json: Any


@dataclass(frozen=True)
class Rest:
    """The API at a port, with a key."""

    port: int
    key: str

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        seconds: float = 60,
    ) -> Answer:
        """Send one request on its own connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        headers = {"Authorization": f"Bearer {self.key}"}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode()
            received = {name.lower(): value for name, value in response.getheaders()}
            is_json = text and received.get("content-type", "").startswith("application/json")
            return Answer(response.status, received, text, json.loads(text) if is_json else None)
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        """Send a GET."""
        return self.call("GET", path)

    def post(self, path: str, value: Any) -> Answer:
        """Send a POST with JSON."""
        return self.call("POST", path, json.dumps(value).encode())

    def upload(self, collection: int, name: str, data: bytes) -> Answer:
        """Upload a file under a name, sent as it is but for the quote, which browsers write as %22."""
        quoted = name.replace('"', "%22").encode()
        body = b"".join(
            (
                f"--{_BOUNDARY}\r\n".encode(),
                b'Content-Disposition: form-data; name="file"; filename="' + quoted + b'"\r\n',
                b"Content-Type: application/octet-stream\r\n\r\n",
                data,
                f"\r\n--{_BOUNDARY}--\r\n".encode(),
            )
        )
        return self.call(
            "POST",
            f"/api/v1/collections/{collection}/documents",
            body,
            f"multipart/form-data; boundary={_BOUNDARY}",
        )
