"""A signed-in person for benchmarks, who opens streams as the portal does: raw sockets, so that a thousand cost little."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator

CLOCK = re.compile(rb"\d{10}\.\d{3}")
"""A word of the model ``clock``: when it was said."""


class Portal:
    """The portal at a port of this machine, with the cookies of one person."""

    def __init__(self, port: int, slug: str, user: object) -> None:
        import httpx2
        from django.conf import settings
        from django.test import Client

        inside = Client()
        inside.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        self.port, self.base = port, f"/t/{slug}/chat/"
        self.http = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
        for name, morsel in inside.cookies.items():
            self.http.cookies.set(name, morsel.value)
        self.http.get(self.base).raise_for_status()
        self.csrf = self.http.cookies[settings.CSRF_COOKIE_NAME]

    @property
    def cookies(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())

    def post(self, path: str, **fields: str) -> str:
        """Post a form as htmx does; returns the fragment."""
        headers = {"X-CSRFToken": self.csrf, "HX-Request": "true"}
        answer = self.http.post(self.base + path, data=fields, headers=headers)
        answer.raise_for_status()
        return answer.text

    async def stream(self, conversation: int, run: int) -> AsyncIterator[tuple[float, bytes]]:
        """Yield what comes of an answer's stream, each piece with the time of its coming."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        path = f"{self.base}{conversation}/runs/{run}/stream/"
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {self.cookies}\r\n\r\n"
        writer.write(head.encode())
        try:
            status = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in status.split(b"\r\n", 1)[0]:
                raise RuntimeError(status.decode())
            while piece := await reader.read(65_536):
                yield time.time(), piece
        finally:
            writer.close()


def person(name: str) -> tuple:
    """Make a workspace with one member; returns (tenant, actor, user)."""
    from tenancy.models import Role
    from tests.factories import actor_of, make_member, make_tenant

    tenant = make_tenant(name)
    membership = make_member(tenant, Role.MEMBER)
    return tenant, actor_of(membership), membership.user
