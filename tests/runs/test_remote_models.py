"""The list of models that a compatible server has, asked for by several at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runs import remote_models
from runs.remote_models import Server

pytestmark = pytest.mark.django_db(transaction=True)


class Slow:
    """A server that tells when it was asked, and answers when it is let."""

    def __init__(self) -> None:
        self.was_asked, self.may_answer, self.count = threading.Event(), threading.Event(), 0


@pytest.fixture
def slow() -> Iterator[tuple[Slow, Server]]:
    state = Slow()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.count += 1
            state.was_asked.set()
            state.may_answer.wait(60)
            body = json.dumps({"object": "list", "data": [{"id": "one", "object": "model"}]})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        remote_models._known.clear()
        try:
            yield state, Server(0, "compatible", f"http://127.0.0.1:{server.server_port}/v1", "k")
        finally:
            state.may_answer.set()
            server.shutdown()
            remote_models._known.clear()


def test_second_who_asks_a_new_server_waits_for_the_first_answer(
    slow: tuple[Slow, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, server = slow
    monkeypatch.setattr(remote_models, "TIMEOUT_S", 60.0)
    monkeypatch.setattr(remote_models, "_PATIENCE_S", 60.0)
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(remote_models.names([server]))) for _ in range(2)]
    threads[0].start()
    assert state.was_asked.wait(60)
    threads[1].start()
    threads[1].join(0.2)  # one that does not wait has answered by then, most times
    state.may_answer.set()
    for thread in threads:
        thread.join(60)
    assert found == [["compatible/one"]] * 2
    assert state.count == 1
    assert remote_models._first == {}
