"""No page may take the product down: whatever streams or waits holds no database connection meanwhile.

A real server with its real pool. While a route is open many times, as many requests as the pool has connections are made
to hold one each, on a table that is locked: only when nobody else holds one do all of them get theirs. Then a page is asked
for. How long that takes is for benchmarks/waiting_routes.py to say. By day one route of a kind is open fifty times, the
others once more than the pool has connections; `make test-nightly` opens each fifty times.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from django.urls import get_resolver

from config import env
from tests.nightly import NIGHTLY
from tests.permissions.rows import API, PORTAL
from tests.permissions.urls import all_urls
from tests.servers import Stack, database_url, wait_for, waiting_on
from tests.web.waiting import MANY, ROUTES, Route, World, gate_environment, opened, world_made

POOL: int = env.database_settings(database_url(), pool=True)["OPTIONS"]["pool"]["max_size"]


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
def test_every_connection_is_free_while_a_route_is_open_many_times(tmp_path: Path) -> None:
    with world_made() as world:
        gate = gate_environment(world.gate.url)
        stack = Stack(tmp_path, DJANGO_SETTINGS_MODULE="tests.web.waiting_server", **gate)
        found: dict[str, str] = {}
        try:
            stack.start_web()
            for route in ROUTES:
                problem = _problem(route, world, stack)
                if problem:
                    found[route.name] = problem
        finally:
            stack.stop()
        assert found == {}, (tmp_path / "web.log").read_text(errors="replace")[-5000:]


def _problem(route: Route, world: World, stack: Stack) -> str:
    """Return what is wrong while the route is open, "" for nothing."""
    try:
        with opened(route, world, stack.port, POOL + 1 if route.is_dear and not NIGHTLY else MANY):
            free, statuses = _held_at_once(world, stack)
            page = httpx2.get(
                f"{stack.url}/t/{world.slug}/collections/", headers={"Cookie": world.cookies}, timeout=60
            ).status_code
    except AssertionError as error:
        return str(error)
    is_fine = free >= POOL and (set(statuses), page) == ({200}, 200)
    return "" if is_fine else f"{free} of {POOL} connections are free; answers: {statuses}, {page}"


def _held_at_once(world: World, stack: Stack) -> tuple[int, list[int]]:
    """Make requests hold a connection each, as many as there are; return how many got one, and how they were answered.

    No route under test reads what is locked: a stream looks at its reader's rights by a connection beside the pool, and would
    be counted as one more.
    """
    statuses: list[int] = []
    headers = {"Authorization": f"Bearer {world.key}"}
    client = httpx2.Client(headers=headers, timeout=60, limits=httpx2.Limits(max_connections=None))

    def ask() -> None:
        response = client.get(f"{stack.url}/api/v1/webhooks")
        statuses.append(response.status_code)

    asking = [threading.Thread(target=ask) for _ in range(POOL)]
    blocked = 0
    with (
        client,
        psycopg.connect(database_url()) as holder,
        psycopg.connect(database_url(), autocommit=True) as other,
    ):
        holder.execute("LOCK TABLE webhooks_webhook IN ACCESS EXCLUSIVE MODE")

        def all_are_blocked() -> bool:
            nonlocal blocked
            blocked = max(blocked, waiting_on(other, "webhooks_webhook"))
            return blocked >= POOL or bool(statuses)  # who is refused shows that no more will come

        for one in asking:
            one.start()
        wait_for(all_are_blocked, "the requests to wait for the table, or to be refused")
        holder.rollback()
        for one in asking:
            one.join(60)
    return blocked, statuses


def test_every_stream_and_every_view_that_waits_is_opened() -> None:
    streams = {row.url for row in (*PORTAL, *API) if row.is_stream}
    waiting = {name for name, view in _views().items() if getattr(view, "waits", False)}
    assert len(waiting) > 5
    assert (streams | waiting) - {name for route in ROUTES for name in route.urls} == set()


def _views() -> dict[str, Any]:
    """Return the class behind each URL that has one."""
    found: dict[str, Any] = {}

    def walk(resolver: Any, namespace: str) -> None:
        for pattern in resolver.url_patterns:
            if hasattr(pattern, "url_patterns"):
                inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
                walk(pattern, inner)
            else:
                view = getattr(pattern.callback, "cls", None) or getattr(pattern.callback, "view_class", None)
                found[f"{namespace}{pattern.name}"] = view

    walk(get_resolver(), "")
    assert set(found) >= {name for name, _ in all_urls() if not name.endswith("?")}
    return found
