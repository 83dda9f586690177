"""``/metrics`` on a worker's port: what its processes have counted, and to whom it is told."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobs import health
from jobs.health import ProbeServer, WorkerHealth
from jobs.models import Job, JobStatus
from tenancy.scope import tenant_scope
from tests.cast import make_cast
from tests.exposition import Said, parsed, said_by
from tests.jobs.conftest import Begun
from tests.jobs.test_worker import _enqueue, _status
from tests.patience import PATIENCE_S
from tests.processes import kill_hard
from tests.servers import free_port, status_of, wait_for

Start = Callable[..., Begun]
TOKEN = "0123456789abcdef-secret"


@pytest.fixture
def port() -> Iterator[int]:
    server = ProbeServer(WorkerHealth(lambda: False), "127.0.0.1", 0)
    server.start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def ask(port: int, **headers: str) -> tuple[int, str]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        line.request("GET", "/metrics", headers=headers)
        answer = line.getresponse()
        return answer.status, answer.read().decode()
    finally:
        line.close()


@pytest.mark.django_db(transaction=True)
def test_a_program_on_this_machine_needs_no_token(port: int, settings) -> None:
    settings.METRICS_TOKEN = ""
    status, text = ask(port)
    assert status == 200
    assert parsed(text).value("groundwork_database_up") == 1
    assert ask(port, Host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example.org", f"127.0.0.1.nip.io:{80}", "[::1", "10.0.0.1", "", "localhost."]
)
def test_a_name_that_leads_here_opens_nothing(port: int, settings, host: str) -> None:
    """A page in a browser on this machine can have its own name lead to 127.0.0.1; the browser still says the name."""
    settings.METRICS_TOKEN = ""
    status, text = ask(port, Host=host)
    assert (status, "groundwork_" in text) == (404, False)


@pytest.mark.parametrize(
    "address", ["10.0.0.7", "192.168.1.1", "2001:db8::1", "::ffff:10.0.0.7", "fe80::1%eth0"]
)
def test_other_machines_get_nothing_without_a_token(
    port: int, settings, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    settings.METRICS_TOKEN = ""
    handle = health._Handler.handle

    def from_elsewhere(self) -> None:
        self.client_address = (address, 4000)
        handle(self)

    monkeypatch.setattr(health._Handler, "handle", from_elsewhere)
    assert ask(port) == (404, '{"status": "not_found"}')


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "localhost"])
def test_addresses_of_this_machine_are_known(address: str) -> None:
    assert health._is_loopback(address)


@pytest.mark.django_db(transaction=True)
def test_where_there_is_a_token_everybody_needs_it(port: int, settings) -> None:
    settings.METRICS_TOKEN = TOKEN
    for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}):
        status, text = ask(port, **headers)
        assert (status, "groundwork_" in text) == (401, False)
    status, text = ask(port, Authorization=f"Bearer {TOKEN}", Host="10.1.2.3:9000")
    assert (status, "groundwork_database_up" in text) == (200, True)


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
def test_port_tells_what_all_processes_of_the_worker_counted(notes: Path, start_worker: Start) -> None:
    cast, port = make_cast(), free_port()
    worker = start_worker(GROUNDWORK_WORKER_HEALTH_PORT=str(port), GROUNDWORK_WORKERS="3")
    wait_for(lambda: status_of(f"http://127.0.0.1:{port}/readyz") == 200, "the worker")
    notes.with_suffix(".go").touch()
    jobs = [
        _enqueue(cast, kind, notes)
        for kind in ("tests.stubborn", "tests.step", "tests.refuse", "tests.stubborn")
    ]
    wait_for(lambda: all(_status(j) in (JobStatus.SUCCEEDED, JobStatus.FAILED) for j in jobs))

    def said() -> Said:
        return said_by(f"http://127.0.0.1:{port}/metrics")

    # A count follows the commit that the row was seen after.
    wait_for(lambda: said().value("groundwork_jobs_ended_total") >= 4)
    found = said()
    ended = "groundwork_jobs_ended_total"
    assert found.value(ended, kind="tests.stubborn", outcome="succeeded") == 2
    assert found.value(ended, kind="tests.step", outcome="succeeded") == 1
    assert found.value(ended, kind="tests.refuse", outcome="failed") == 1
    wait_for(lambda: said().value("groundwork_workers") == 1)
    assert said().value("groundwork_worker_processes") == 3
    assert said().value("groundwork_processes") >= 4, "those below it count"
    told = " ".join(found.label_values())
    assert cast.tenant.slug not in told
    assert str(notes) not in told

    # One of its processes dies: what it had counted stays.
    slept = notes.with_name("slept")  # of its own: other jobs note the same words
    slept.touch()
    job = _enqueue(cast, "tests.sleep", slept, seconds=600)
    wait_for(lambda: "began 1" in slept.read_text())
    kill_hard(int(slept.read_text().split()[2]))
    wait_for(lambda: "began 2" in slept.read_text())
    assert said().value(ended) == 4
    with tenant_scope(cast.tenant.pk):
        Job.objects.filter(pk=job.pk).update(cancel_requested_at="2026-01-01T00:00Z")
    wait_for(lambda: said().value(ended, kind="tests.sleep", outcome="cancelled") == 1)
    worker.terminate()
    worker.wait(PATIENCE_S)
