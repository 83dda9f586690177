"""The rows of the matrix that answer with server-sent events, over the asynchronous handler as uvicorn calls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import AsyncClient
from django.urls import reverse

from runs.stream import aclose
from tenancy.permissions import KEY_SCOPES
from tenancy.services import api_key_create
from tests.factories import actor_of
from tests.permissions.rows import API, PORTAL, Row
from tests.permissions.test_matrix import least, most_refused, url_arguments
from tests.permissions.world import Side
from web.handler import application_make

STREAMS = [r for r in (*PORTAL, *API) if r.is_stream]
PAGES = [r for r in STREAMS if not r.url.startswith("api:")]
# The stream reads over connections of its own, so the rows must be committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def _no_connection_outlives_the_loop() -> AsyncIterator[None]:
    yield
    await aclose()


async def fetch(row: Row, caller: Side | None, ids: Side, *, role: str = "owner", **how: Any) -> Any:
    """Open the stream as a role of the caller's side, or as a stranger; its body is not read."""
    kwargs = await sync_to_async(_prepared)(row, ids, how.get("ids_role", role), how.get("slug"), caller)
    client = AsyncClient(raise_request_exception=False)
    headers = {}
    if caller is not None and row.url.startswith("api:"):
        key = await sync_to_async(_key)(caller, how.get("scopes") or [row.action, *row.also])
        headers["Authorization"] = f"Bearer {key}"
    elif caller is not None:
        await client.aforce_login(caller.user(role), "django.contrib.auth.backends.ModelBackend")
    return await client.get(reverse(row.url, kwargs=kwargs), headers=headers)


def _prepared(row: Row, ids: Side, role: str, slug: str | None, caller: Side | None) -> Any:
    if row.before is not None:
        row.before(ids, role)
    where = slug or (caller or ids).tenant.slug
    return url_arguments(row, slug=where, ids=ids, role=role)


def _key(side: Side, scopes: list[str]) -> str:
    actor = actor_of(side.people["owner"])
    return api_key_create(tenant=side.tenant, actor=actor, name="k", scopes=scopes)[1]


async def sides() -> tuple[Side, Side]:
    def make() -> tuple[Side, Side]:
        both = Side(), Side()
        for side in both:
            side.people.everyone()  # a first asking inside the event loop would be refused
        return both

    return await sync_to_async(make)()


def test_streams_have_rows():
    assert {r.url for r in STREAMS} == {
        "collections:stream",
        "tools:approvals-stream",
        "conversations:run-stream",
        "datasets:job-stream",
        "datasets:export-stream",
        "datasets:import-stream",
        "datasets:checks-stream",
        "api:runs-events",
    }


@pytest.mark.parametrize("row", STREAMS, ids=str)
async def test_stream_opens_for_the_lowest_right(row: Row):
    mine, _ = await sides()
    role = "owner" if row.url.startswith("api:") else least(row.action)
    response = await fetch(row, mine, mine, role=role)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/event-stream")


async def test_head_of_a_stream_has_its_headers_and_ends_at_once():
    """Over the application itself: the test client takes away what it was answered to HEAD."""
    mine, _ = await sides()
    row = next(row for row in PAGES if row.url == "tools:approvals-stream")
    client = AsyncClient()
    await client.aforce_login(mine.user("owner"), "django.contrib.auth.backends.ModelBackend")
    url = reverse(row.url, kwargs={"tenant_slug": mine.tenant.slug})
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": "HEAD",
        "path": url,
        "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"cookie", cookie.encode())],
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        assert not message.get("body"), "a stream would last for ever"
        sent.append(message)

    received: list[Any] = [{"type": "http.request", "body": b""}]

    async def receive() -> Any:
        return received.pop() if received else await asyncio.Event().wait()

    await application_make()(scope, receive, send)
    assert sent[0]["status"] == 200
    assert (b"Content-Type", b"text/event-stream") in sent[0]["headers"]


@pytest.mark.parametrize("row", STREAMS, ids=str)
async def test_stream_of_another_workspace_does_not_exist(row: Row):
    mine, theirs = await sides()
    if row.ids:
        assert (await fetch(row, mine, theirs)).status_code == 404
    if row in PAGES:
        for ids in (mine, theirs):
            response = await fetch(row, mine, ids, slug=theirs.tenant.slug)
            assert response.status_code == 404


@pytest.mark.parametrize("row", STREAMS, ids=str)
async def test_stream_is_closed_to_strangers(row: Row):
    mine, _ = await sides()
    response = await fetch(row, None, mine)
    assert response.status_code == (302 if row in PAGES else 401)


@pytest.mark.parametrize("row", [r for r in STREAMS if "runs.Run" in r.ids.values()], ids=str)
async def test_stream_of_a_colleagues_run_does_not_exist(row: Row):
    mine, _ = await sides()
    assert (await fetch(row, mine, mine, ids_role="member")).status_code == 404


@pytest.mark.parametrize("row", [r for r in STREAMS if r not in PAGES], ids=str)
async def test_stream_is_refused_to_a_key_with_every_other_scope(row: Row):
    mine, _ = await sides()
    response = await fetch(row, mine, mine, scopes=sorted(KEY_SCOPES - {row.action}))
    assert response.status_code == 403


@pytest.mark.parametrize("row", [r for r in PAGES if most_refused(r.action)], ids=str)
async def test_stream_is_refused_below_its_right(row: Row):
    mine, _ = await sides()
    response = await fetch(row, mine, mine, role=most_refused(row.action))
    assert response.status_code == 403
