"""Many open streams hold no database connection: the server's pool has ten, and everybody else needs them."""

from __future__ import annotations

import http.client
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from django.test import Client

from tenancy.scope import tenant_scope
from tests.cast import make_cast
from tests.concurrency.rest import Rest, make_key
from tests.conversations.support import ask
from tests.servers import Stack

pytestmark = pytest.mark.servers
OPEN = 14  # of each kind, where the pool has ten


def test_server_answers_while_more_streams_are_open_than_it_has_connections(
    transactional_db: None, tmp_path: Path
) -> None:
    cast = make_cast()
    turn = ask(cast, role="owner")  # nobody works on it: its streams stay open
    with tenant_scope(cast.tenant.pk):
        key = make_key(cast)
    inside = Client()
    inside.force_login(cast.user("owner"), backend="django.contrib.auth.backends.ModelBackend")
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in inside.cookies.items())
    page = f"/t/{cast.tenant.slug}/chat/{turn.conversation_id}/runs/{turn.run_id}/stream/"
    stack = Stack(tmp_path)
    try:
        stack.start_web()
        with ExitStack() as streams:
            for path, header in (
                (page, {"Cookie": cookies}),
                (f"/api/v1/runs/{turn.run_id}/events", {"Authorization": f"Bearer {key}"}),
            ):
                for _ in range(OPEN):
                    line = streams.enter_context(
                        closing(http.client.HTTPConnection("127.0.0.1", stack.port, timeout=60))
                    )
                    line.request("GET", path, headers=header)
                    response = line.getresponse()
                    assert response.status == 200, path
                    assert response.readline().startswith(b"retry"), path
            assert Rest(stack.port, key).get("/api/v1/models").status == 200
    finally:
        stack.stop()
