"""A program that speaks to the product over real HTTP: to the REST API with a key, to its pages with a session."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings

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
    """Status and headers of an answer, and what it holds; ``json`` is its value where it is JSON, else None."""

    status: int
    headers: dict[str, str]
    content: bytes

    @cached_property
    def text(self) -> str:
        """What it holds, as text."""
        return self.content.decode()

    @cached_property
    def json(self) -> Any:
        """Its value where it is JSON, else None."""
        is_json = self.content and self.headers.get("content-type", "").startswith("application/json")
        return json.loads(self.content) if is_json else None


@dataclass(frozen=True)
class Rest:
    """The product at a port: the API with a key, or the pages with a session.

    Args:
        port: of a web server on loopback.
        key: of the API, "" for pages.
        session: of who is signed in, "" with a key.
    """

    port: int
    key: str
    session: str = ""

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        seconds: float = 60,
        accept: str = "",
    ) -> Answer:
        """Send one request on its own connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        headers = {"Accept": accept} if accept else {}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if self.session:
            headers["Cookie"] = f"{settings.SESSION_COOKIE_NAME}={self.session}"
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, received, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        """Send a GET."""
        return self.call("GET", path)

    def post(self, path: str, value: Any) -> Answer:
        """Send a POST with JSON."""
        return self.call("POST", path, json.dumps(value).encode())

    def upload(self, collection: int, name: str, data: bytes) -> Answer:
        """Upload a file to a collection."""
        return self.file(f"/api/v1/collections/{collection}/documents", name, data)

    def file(self, path: str, name: str, data: bytes, **fields: str) -> Answer:
        """Send a form with a file, whose name is sent as it is but for the quote, which browsers write as %22."""
        quoted = name.replace('"', "%22").encode()
        parts = [
            f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in fields.items()
        ]
        body = b"".join(
            (
                *parts,
                f"--{_BOUNDARY}\r\n".encode(),
                b'Content-Disposition: form-data; name="file"; filename="' + quoted + b'"\r\n',
                b"Content-Type: application/octet-stream\r\n\r\n",
                data,
                f"\r\n--{_BOUNDARY}--\r\n".encode(),
            )
        )
        return self.call("POST", path, body, f"multipart/form-data; boundary={_BOUNDARY}")
