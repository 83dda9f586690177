"""The official client with its own OAuth provider: from a 401 through a real sign-in and consent to a call, and on."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from asgiref.sync import sync_to_async
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from runs.models import ToolCall
from tenancy.models import ApiKey
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast
from tests.markup import flat
from tests.servers import Stack

CALLBACK = AnyUrl("http://127.0.0.1:33418/callback")
pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


class Store:
    """What the client keeps between two starts."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Person:
    """A member with a browser: signs in where they are asked to, and allows what they are asked for."""

    def __init__(self, email: str) -> None:
        self.email = email
        self.consents = 0
        self.answer = ""

    async def go(self, url: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=True, timeout=60) as browser:
            page = await browser.get(url)
            assert "/accounts/login/" in str(page.url)
            page = await browser.post(
                str(page.url), data=_form(page.text) | {"login": self.email, "password": "secret-password"}
            )
            assert "asks to act for you" in page.text, page.text
            given = {**_form(page.text), "action": "allow", "scope": ["tool.run", "run.read"]}
            allowed = await browser.post(str(page.url), data=given, follow_redirects=False)
        assert allowed.status_code == 303, allowed.text
        self.consents += 1
        self.answer = allowed.headers["Location"]

    async def come_back(self) -> AuthorizationCodeResult:
        said = {k: v[0] for k, v in parse_qs(urlsplit(self.answer).query).items()}
        return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said["iss"])


def _form(page: str) -> dict[str, Any]:
    hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', flat(page))
    return {name: html.unescape(value) for name, value in hidden}


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


@pytest.fixture
def stack(tmp_path: Path, cast: Cast) -> Iterator[Stack]:
    running = Stack(tmp_path)
    try:
        running.start_web()
        yield running
    finally:
        running.stop()
        print((tmp_path / "web.log").read_text(errors="replace")[-3000:])  # noqa: T201


async def test_official_client_connects_calls_and_refreshes(stack: Stack, cast: Cast) -> None:
    url = f"{stack.url}/t/{cast.tenant.slug}/mcp"
    person, store = Person(cast.user("member").email), Store()

    provider = OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name="Official client", redirect_uris=[CALLBACK]),
        store,
        redirect_handler=person.go,
        callback_handler=person.come_back,
    )

    async def calculated(expression: str) -> str:
        async with (
            httpx2.AsyncClient(auth=provider, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            result: Any = await client.call_tool("calculate", {"expression": expression})
            return str(result.content[0].text)

    assert "42" in await calculated("6*7")
    assert store.tokens is not None
    assert store.tokens.scope == "run.read tool.run"
    first = store.tokens
    provider.context.token_expiry_time = (
        1.0  # its access token has gone by: it refreshes, and nobody is asked
    )
    assert "54" in await calculated("6*9")
    assert store.tokens.refresh_token != first.refresh_token
    assert person.consents == 1

    def recorded() -> None:
        with tenant_scope(cast.tenant.pk):
            row = ApiKey.objects.get()
            assert (row.name, row.user) == ("Official client", cast.user("member"))
            calls = ToolCall.objects.filter(name="calculate").values_list("user_id", "status")
            assert set(calls) == {(cast.member.user_id, "succeeded")}

    await sync_to_async(recorded)()
