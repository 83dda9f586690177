"""A real API on loopback that remembers what it was sent and answers what the test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Sent:
    """One request as it arrived; header names are in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class ApiServer:
    """``answer`` is (status, headers, body), or a function of the request that gives one."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.seen: list[Sent] = []
        self.answer: Any = (200, {"Content-Type": "application/json"}, b'{"ok": true}')
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                sent = Sent(
                    self.command,
                    self.path,
                    {k.lower(): v for k, v in self.headers.items()},
                    self.rfile.read(length),
                )
                outer.seen.append(sent)
                status, headers, body = outer.answer(sent) if callable(outer.answer) else outer.answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer((host, 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.url = f"http://{host}:{self.port}"

    def says(self, value: Any, status: int = 200) -> None:
        """Answer with JSON from now on."""
        self.answer = (status, {"Content-Type": "application/json"}, json.dumps(value).encode())


@contextmanager
def api_serving(host: str = "127.0.0.1") -> Iterator[ApiServer]:
    """Serve on an address of loopback."""
    one = ApiServer(host)
    thread = threading.Thread(target=one.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield one
    finally:
        one.server.shutdown()
        one.server.server_close()
        thread.join()
