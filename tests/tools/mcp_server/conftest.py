"""A key of a workspace, and a way to send one message to its MCP server in this process."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from apps.conversations.toolset import bundle as conversation_tools
from tenancy.models import ApiKey, Membership, Tenant
from tenancy.permissions import KEY_SCOPES
from tenancy.scope import tenant_scope
from tenancy.services import api_key_create
from tests.cast import Cast
from tests.collections.conftest import collection, embedder, storage  # noqa: F401 - fixtures
from tests.factories import actor_of
from tests.runs.conftest import _streams_closed, lane_threads  # noqa: F401 - fixtures
from toolloop.tools import Toolset, tool

Send = Callable[..., Any]
_ids = itertools.count(1)
paid: list[int] = []


@tool(side_effects=True)
async def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: how much.
    """
    paid.append(amount)
    return f"paid {amount}"


@pytest.fixture
def with_pay(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Offer a tool that changes something, which a person is asked about; returns what was paid."""
    paid.clear()
    monkeypatch.setattr(conversation_tools, "TOOLSET", Toolset([*conversation_tools.TOOLSET, pay]))
    return paid


def key_of(cast: Cast, role: str = "owner", scopes: list[str] | None = None) -> str:
    """Return a key that acts for one of the cast; with every scope if none are named."""
    who: Membership = getattr(cast, role)
    maker = cast.outsider if role == "outsider" else cast.owner
    tenant: Tenant = who.tenant
    chosen = sorted(KEY_SCOPES) if scopes is None else scopes
    row, key = api_key_create(tenant=tenant, actor=actor_of(maker), name="mcp", scopes=chosen)
    with tenant_scope(
        tenant.pk
    ):  # only an admin makes keys; one that was made before its person's role was lowered
        ApiKey.objects.filter(pk=row.pk).update(user=who.user)
    return key


def post(slug: str, message: Any, key: str = "", **headers: str) -> Any:
    """Send a message (text as it is) and return Django's response."""
    body = message if isinstance(message, str) else json.dumps(message)
    sent = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    if key:
        sent["Authorization"] = f"Bearer {key}"
    return Client(raise_request_exception=False).post(
        f"/t/{slug}/mcp", body, content_type="application/json", headers=sent | headers
    )


def message(method: str, **params: Any) -> dict[str, Any]:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}


@pytest.fixture
def ask(cast: Cast) -> Send:
    """Ask the workspace's server with a key of its owner: returns the result, or the error."""

    def send(method: str, *, role: str = "owner", scopes: list[str] | None = None, **params: Any) -> Any:
        key = key_of(cast, role, scopes)
        response = post(cast.tenant.slug, message(method, **params), key)
        said = json.loads(response.content)
        return said["result"] if "result" in said else said["error"]

    return send


@pytest.fixture
def fresh_rates() -> Iterator[None]:
    """Forget how often this address has called."""
    cache.clear()
    yield
    cache.clear()
