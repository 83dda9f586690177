"""What a worker's probes answer: alive while the loop goes round, ready while it takes jobs, and nothing else."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from jobs.health import _MOST_AT_ONCE, STALLED_S, ProbeServer, WorkerHealth
from jobs.models import Job, JobStatus, Worker
from jobs.selectors import WORKER_FRESH_S
from jobs.sweeper import workers_forget
from tenancy import health as checks
from tenancy.database.base import as_login_role
from tenancy.scope import tenant_scope
from tests.cast import make_cast
from tests.jobs.conftest import Begun, begin_alone, end
from tests.jobs.test_worker import _enqueue, _status
from tests.patience import PATIENCE_S
from tests.servers import free_port, status_of, wait_for

Start = Callable[..., Begun]


class Bench:
    """A probe server over a health whose clock and stop the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.is_stopping = False
        self.health = WorkerHealth(lambda: self.is_stopping, lambda: self.now)
        self.server = ProbeServer(self.health, "127.0.0.1", 0)
        self.server.start()

    def ask(self, path: str, method: str = "GET") -> tuple[int, bytes, dict[str, str]]:
        line = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        try:
            line.request(method, path)
            answer = line.getresponse()
            return answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()}
        finally:
            line.close()

    def told(self, path: str) -> tuple[int, dict[str, Any]]:
        status, body, _ = self.ask(path)
        return status, json.loads(body)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(checks, "_matched", False)
    made = Bench()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_alive_while_the_loop_goes_round(bench: Bench) -> None:
    assert bench.told("/livez")[0] == 200
    bench.now += STALLED_S - 1
    assert bench.told("/livez")[0] == 200
    bench.now += 1
    status, body = bench.told("/livez")
    assert (status, body["status"]) == (503, "stalled")
    assert bench.told("/readyz")[0] == 503
    bench.health.round_begin()
    assert bench.told("/livez") == (
        200,
        {"status": "alive", "checks": {"loop": {"ok": True, "detail": "went round 0 s ago"}}},
    )


@pytest.mark.django_db
def test_ready_when_started_and_until_it_drains(bench: Bench) -> None:
    status, body = bench.told("/readyz")
    assert (status, body["checks"]["jobs"]["detail"]) == (503, "starting")
    bench.health.look()
    bench.health.heartbeat_stored()
    status, body = bench.told("/readyz")
    assert status == 200, body
    assert set(body["checks"]) == {"loop", "database", "listen", "migrations", "queue", "jobs"}
    bench.is_stopping = True
    status, body = bench.told("/readyz")
    assert status == 503
    assert "draining" in body["checks"]["jobs"]["detail"]
    bench.now += STALLED_S * 2
    assert bench.told("/livez")[0] == 200, "a worker that drains is not killed for it"


def test_clients_that_drip_bytes_are_cut_and_probes_are_answered_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte begins the socket's own timeout again, so that alone would let them stay for ever."""
    monkeypatch.setattr("jobs.health._CLIENT_S", 0.5)
    lines = [socket.create_connection(("127.0.0.1", bench.server.server_port)) for _ in range(_MOST_AT_ONCE)]
    waiting = list(lines)

    def all_cut() -> bool:
        for line in list(waiting):
            try:
                line.send(b"x")
                is_cut = line.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                is_cut = True
            if is_cut:
                waiting.remove(line)
        return not waiting

    def answered() -> bool:
        try:
            return bench.told("/livez")[0] == 200
        except OSError:  # the last place is being given back
            return False

    try:
        for line in lines:
            line.settimeout(0.01)
            line.sendall(b"GET /livez HTTP/1.0\r\nX: ")
        wait_for(all_cut)
    finally:
        for line in lines:
            line.close()
    wait_for(answered)


@pytest.mark.django_db
def test_workers_that_were_killed_are_forgotten_after_a_day() -> None:
    Worker.objects.create(name="here")
    Worker.objects.create(name="killed today", seen_at=timezone.now() - timedelta(hours=23))
    Worker.objects.create(name="killed", seen_at=timezone.now() - timedelta(hours=25))
    assert workers_forget() == 1
    assert set(Worker.objects.values_list("name", flat=True)) == {"here", "killed today"}


@pytest.mark.django_db
def test_not_ready_when_its_heartbeat_is_not_stored_any_more(bench: Bench) -> None:
    bench.health.look()
    bench.health.heartbeat_stored()
    bench.now += WORKER_FRESH_S
    bench.health.round_begin()
    assert bench.told("/livez")[0] == 200
    assert bench.told("/readyz")[0] == 503


@pytest.mark.django_db
def test_not_ready_on_a_newer_schema_and_names_it(bench: Bench) -> None:
    with as_login_role():
        MigrationRecorder.Migration.objects.create(app="jobs", name="0099_tomorrow")
    bench.health.look()
    bench.health.heartbeat_stored()
    status, body = bench.told("/readyz")
    assert status == 503
    assert "jobs.0099_tomorrow" in body["checks"]["migrations"]["detail"]


def test_database_that_is_away_is_told_without_its_address(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> checks.Check:
        raise OSError("connection to 10.1.2.3 with password hunter2 failed")

    monkeypatch.setattr(checks, "check_database", broken)
    bench.health.look()
    bench.health.heartbeat_stored()
    status, body = bench.told("/readyz")
    assert status == 503
    assert not {"hunter2", "10.1.2.3"} & set(json.dumps(body).split())
    assert list(body["checks"]) == ["loop", "database", "jobs"]
    assert bench.told("/livez")[0] == 200, "a database that is away is no reason to start the worker again"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/livez", 200),
        ("GET", "/", 404),
        ("GET", "/livez/../../etc/passwd", 404),
        ("GET", "/readyz?x=1", 404),
        ("POST", "/livez", 501),
        ("DELETE", "/readyz", 501),
    ],
)
def test_nothing_else_is_answered(bench: Bench, method: str, path: str, status: int) -> None:
    code, body, headers = bench.ask(path, method)
    assert code == status
    assert headers["server"] == "groundwork"
    assert method != "HEAD" or body == b""


def test_clients_that_say_nothing_hold_up_few_threads_and_no_probe_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More lines than are answered at once: those too many are closed, and places come free with those that leave."""
    silent = [socket.create_connection(("127.0.0.1", bench.server.server_port)) for _ in range(8)]
    more = socket.create_connection(("127.0.0.1", bench.server.server_port))
    more.settimeout(30)
    assert more.recv(1) == b"", "closed without an answer"
    for line in [*silent, more]:
        line.close()
    url = f"http://127.0.0.1:{bench.server.server_port}/livez"
    wait_for(lambda: status_of(url) == 200, "a place")


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
def test_real_worker_is_ready_drains_and_leaves_its_port(notes: Path, start_worker: Start) -> None:
    cast, port = make_cast(), free_port()
    url = f"http://127.0.0.1:{port}"
    process = start_worker(GROUNDWORK_WORKER_HEALTH_PORT=str(port))
    wait_for(lambda: status_of(f"{url}/readyz") == 200, "the worker")
    assert status_of(f"{url}/livez") == 200
    # A job that does not look whether it should stop: the worker waits for it, and says meanwhile that it drains.
    job = _enqueue(cast, "tests.stubborn", notes)
    wait_for(lambda: "began" in notes.read_text())
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: status_of(f"{url}/readyz") == 503, "the drain")
    assert status_of(f"{url}/livez") == 200
    notes.with_suffix(".go").touch()
    process.wait(PATIENCE_S)
    assert status_of(f"{url}/livez") == 0
    assert _status(job) == JobStatus.SUCCEEDED


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
def test_worker_that_ends_waits_for_a_step_and_no_longer(notes: Path, start_worker: Start) -> None:
    cast, port = make_cast(), free_port()
    url = f"http://127.0.0.1:{port}"
    process = start_worker(GROUNDWORK_WORKER_HEALTH_PORT=str(port), GROUNDWORK_DRAIN_SECONDS="600")
    wait_for(lambda: status_of(f"{url}/readyz") == 200, "the worker")
    job = _enqueue(cast, "tests.step", notes)
    wait_for(lambda: "began" in notes.read_text())
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: status_of(f"{url}/readyz") == 503, "the drain")
    notes.with_suffix(".go").touch()
    process.wait(PATIENCE_S)
    assert notes.read_text().splitlines() == ["began 1", "done 1"]
    assert _status(job) == JobStatus.QUEUED
    with tenant_scope(cast.tenant.pk):
        assert Job.objects.get(pk=job.pk).attempts == 0, "given back, not failed"
    start_worker()
    wait_for(lambda: _status(job) == JobStatus.SUCCEEDED)
    assert notes.read_text().splitlines() == ["began 1", "done 1", "second step"]


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
def test_real_worker_that_starts_on_a_newer_schema_is_alive_and_not_ready(start_worker: Start) -> None:
    port = free_port()
    with as_login_role():
        MigrationRecorder.Migration.objects.create(app="jobs", name="0099_tomorrow")
    try:
        start_worker(GROUNDWORK_WORKER_HEALTH_PORT=str(port))
        seen: list[str] = []

        def names_it() -> bool:
            line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                line.request("GET", "/readyz")
                answer = line.getresponse()
                seen.append(f"{answer.status} {answer.read().decode()}")
            except OSError:
                return False
            finally:
                line.close()
            return "jobs.0099_tomorrow" in seen[-1]

        wait_for(names_it, "the name of the migration")
        assert seen[-1].startswith("503 ")
        assert status_of(f"http://127.0.0.1:{port}/livez") == 200
    finally:
        with as_login_role():
            MigrationRecorder.Migration.objects.filter(app="jobs", name="0099_tomorrow").delete()


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
def test_port_that_is_taken_ends_the_worker_in_one_line(transactional_db: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = begin_alone(subprocess.PIPE, GROUNDWORK_WORKER_HEALTH_PORT=str(taken.getsockname()[1]))
        try:
            _, said = process.communicate(timeout=PATIENCE_S)
        finally:
            end(process)
    assert process.returncode == 1
    assert "/livez and /readyz cannot be had" in said
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
