"""What a worker command says of itself: alive while its loop goes round, ready while it takes jobs.

The loop writes what it finds; a tiny HTTP server in threads of the same process tells it, and asks nothing itself. So an
answer costs no statement, holds no secret, and comes while the database is away. ``/metrics`` alone reads the database, on a
connection of its own (``tenancy.readings``).
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Max, Sum
from django.utils import timezone

from jobs.models import Worker
from jobs.selectors import WORKER_FRESH_S, queue_size
from tenancy.exposition import CONTENT_TYPE, metrics_text, token_given
from tenancy.health import Check, as_json, database_checks, guarded

STALLED_S = 60.0
"""How long one round of the loop may take; it sweeps in it, and a database that hangs holds it up."""
_MOST_AT_ONCE = 8
_CLIENT_S = 5.0


class WorkerHealth:
    """What the loop of a worker command found last.

    Args:
        is_stopping: whether it was told to end.
        clock: seconds, from any start on.
    """

    def __init__(self, is_stopping: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_stopping, self._clock = is_stopping, clock
        self._round_at = clock()
        self._seen_at: float | None = None
        self._checks: Sequence[Check] = ()

    def round_begin(self) -> None:
        """Note that the loop goes round."""
        self._round_at = self._clock()

    def heartbeat_stored(self) -> None:
        """Note that the worker's row says that it is alive, as others see it."""
        self._seen_at = self._clock()

    def look(self) -> None:
        """Look at what jobs need: the database, its schema and the queue. Called by the loop, whose connection it uses."""
        found = database_checks()
        if found[0].ok:
            found.append(guarded("queue", check_queue, "See the queue's settings: GROUNDWORK_BROKER."))
        self._checks = found

    def alive(self) -> list[Check]:
        """Return the check of /livez: the loop does not stand still. An orderly stop has a limit of its own."""
        age = self._clock() - self._round_at
        is_alive = age < STALLED_S or self._is_stopping()
        return [Check("loop", is_alive, f"went round {age:.0f} s ago", "" if is_alive else "Start it again.")]

    def ready(self) -> list[Check]:
        """Return the checks of /readyz: it has started, takes jobs, and the schema is that of its code."""
        if self._is_stopping():
            return [*self.alive(), Check("jobs", False, "draining: this worker takes no new jobs and ends")]
        if self._seen_at is None:
            return [*self.alive(), Check("jobs", False, "starting")]
        age = self._clock() - self._seen_at
        jobs = Check("jobs", age < WORKER_FRESH_S, f"last heartbeat stored {age:.0f} s ago")
        return [*self.alive(), *self._checks, jobs]


def check_queue() -> Check:
    """The queue underneath the jobs answers."""
    return Check("queue", True, f"{queue_size()} waiting")


def check_workers() -> Check:
    """A worker, on whatever machine, showed itself within ``WORKER_FRESH_S`` seconds."""
    now, fix = timezone.now(), "Start a worker: python manage.py worker"
    seen = Worker.objects.aggregate(seen=Max("seen_at"))["seen"]
    if seen is None:
        return Check("worker", False, "none has ever run", fix)
    alive = Worker.objects.filter(seen_at__gt=now - timedelta(seconds=WORKER_FRESH_S))
    age, count = (now - seen).total_seconds(), alive.count()
    if not count:
        return Check("worker", False, f"seen {age:.0f} s ago", fix)
    processes = alive.aggregate(found=Sum("processes"))["found"]
    return Check("worker", True, f"{count} alive with {processes} processes, seen {age:.0f} s ago")


class ProbeServer(ThreadingHTTPServer):
    """Answers ``/livez`` and ``/readyz`` with 200 or 503, ``/metrics``, and anything else with 404.

    Metrics are for whoever has the operator's token. Without one they are for programs on this machine, which ask by its
    own address: a page in a browser that leads a host name of its own here gets nothing.

    Args:
        health: what is told.
        host: address to listen on.
        port: 0 for any that is free; ``server_port`` says which.

    Raises:
        OSError: the port cannot be had.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, health: WorkerHealth, host: str, port: int) -> None:
        self.health = health
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._places = threading.BoundedSemaphore(_MOST_AT_ONCE)
        super().__init__((host, port), _Handler)

    def start(self) -> None:
        """Answer from now on, in threads of this process; call it after the process has forked."""
        threading.Thread(target=self.serve_forever, name="worker-probes", daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a request a thread, or close it where as many as may be are being answered."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, and cut the connection when its time is over, however often its client sends a byte."""
        # Not by the socket's own timeout, which begins again with each byte. Eight such clients would keep all places.
        cut = threading.Timer(_CLIENT_S, _cut, [request])
        cut.daemon = True
        try:
            cut.start()
            super().process_request_thread(request, client_address)
        finally:
            cut.cancel()
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away in the middle."""


def _cut(line: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has just been closed
        line.shutdown(socket.SHUT_RDWR)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(
        found, "ipv4_mapped", None
    )  # before Python 3.13 ::ffff:127.0.0.1 is not a loopback address
    return (mapped or found).is_loopback


class _Handler(BaseHTTPRequestHandler):
    timeout = _CLIENT_S
    server: ProbeServer

    def do_GET(self) -> None:
        health = self.server.health
        if self.path == "/livez":
            checks, names = health.alive(), {"ready": "alive", "not_ready": "stalled"}
        elif self.path == "/readyz":
            checks, names = health.ready(), {}
        elif self.path == "/metrics" and (settings.METRICS_TOKEN or self._is_from_here()):
            self._metrics()
            return
        else:
            self._answer(404, {"status": "not_found"})
            return
        body = as_json(checks)
        status = 200 if body["status"] == "ready" else 503
        self._answer(status, {**body, "status": names.get(body["status"], body["status"])})

    do_HEAD = do_GET

    def _metrics(self) -> None:
        if settings.METRICS_TOKEN and not token_given(self.headers.get("Authorization", "")):
            self._answer(401, {"status": "unauthorized"})
        else:
            self._send(200, metrics_text(), CONTENT_TYPE)

    def _is_from_here(self) -> bool:
        try:
            host = urlsplit("//" + self.headers.get("Host", "localhost")).hostname
        except ValueError:
            return False
        return _is_loopback(self.client_address[0]) and _is_loopback(host or "")

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, text: bytes, content_type: str) -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def version_string(self) -> str:
        return "groundwork"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
        """Probes come every few seconds: they are no news."""
