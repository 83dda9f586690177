"""``manage.py up`` with stand-in services: what is started, restarted, and never left behind."""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Self

import psutil
import psycopg
import pytest

from config import processes, up
from config.embedded import EmbeddedPostgres, read_state
from config.supervisor import Output, Service
from tests.patience import PATIENCE_S
from tests.processes import below

pytestmark = pytest.mark.servers

ROOT = Path(__file__).resolve().parents[2]

SETUP = "import sys; print('setting up'); sys.exit(int(sys.argv[1]))"
WEB = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()
    def log_message(self, *args): pass
http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""
WORKER = """
import os, signal, sys, time
print("worker", os.getpid(), flush=True)
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:  # like the processes of a cluster
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("grandchild", os.getpid(), flush=True)
while True: time.sleep(1)
"""
GRANDCHILD = "worker | grandchild"
RUNNER = """
import argparse, sys
from config import up
from config.records import read_record
from config.supervisor import Output
setup, web, worker, setup_code, kind = sys.argv[1:6]
python = sys.executable
commands = up.Commands(
    setup=(python, "-c", setup, setup_code),
    web=(python, "-c", web, "{host}", "{port}"),
    worker=(python, "-c", worker, kind),
)
options = up.arguments(argparse.ArgumentParser()).parse_args(sys.argv[6:])
sys.exit(up.run(options, Output(sys.stdout), commands))
"""


class Group:
    """A running supervisor and what it said."""

    def __init__(
        self, folder: Path, *options: str, web: str = WEB, setup_code: int = 0, kind: str = ""
    ) -> None:
        self.data_dir = folder / "var"
        self.port = free_port()
        self.lines: list[str] = []
        self._new: queue.Queue[str | None] = queue.Queue()
        arguments = options or ("--port", str(self.port))
        self.process = subprocess.Popen(
            [*self.command(web, setup_code, kind), *arguments],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()

    def command(self, web: str, setup_code: int, kind: str) -> list[str]:
        services = [SETUP, web, WORKER, str(setup_code), kind]
        return [sys.executable, "-c", RUNNER, *services, "--data-dir", str(self.data_dir)]

    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        return own | {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}"}

    def said_so_far(self) -> str:
        while not self._new.empty():
            self.lines.append(self._new.get() or "(end)")
        return "\n".join(self.lines)

    def _read(self, stream: IO[str]) -> None:
        with contextlib.suppress(ValueError):
            for line in stream:
                self._new.put(line.rstrip())
        self._new.put(None)

    def wait_for(self, text: str, timeout_s: float = PATIENCE_S) -> str:
        """Return the next line that contains the text."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                line = self._new.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"{text!r} was not said:\n{self.said_so_far()}")
            self.lines.append(line)
            if text in line:
                return line

    def ready(self) -> Self:
        """Wait for all that is started: the page answers, and the worker's child runs and no longer ends by SIGTERM."""
        self.wait_for("Groundwork is ready")
        if not any(GRANDCHILD in line for line in self.lines):
            self.wait_for(GRANDCHILD)
        return self

    def end(self, signum: int = signal.SIGINT, timeout_s: float = PATIENCE_S) -> int:
        self.process.send_signal(signum)
        return self.process.wait(timeout_s)

    def child(self, name: str) -> psutil.Process:
        """The leader of a service; what was forked a moment ago has no session and no mark of its own yet."""
        found: list[psutil.Process] = []

        def is_there() -> bool:
            found[:] = self._leaders(name)
            return bool(found)

        assert eventually(is_there), f"no {name}"
        return found[0]

    def _leaders(self, name: str) -> Iterator[psutil.Process]:
        for pid in below(self.process.pid):
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                process = psutil.Process(pid)
                is_leader = os.getsid(pid) == pid
                if is_leader and f"/{name}/" in process.environ().get(processes.MARK, ""):
                    yield process

    def mark(self) -> str:
        return self.child("web").environ()[processes.MARK].partition("/")[0]

    def postmaster(self) -> psutil.Process:
        return processes.postgres_on(EmbeddedPostgres(self.data_dir).pgdata)[0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(condition: object, timeout_s: float = PATIENCE_S) -> bool:
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_when_stopped(folder: Path, signum: signal.Signals) -> None:
    group = Group(folder).ready()
    mark = group.mark()
    assert len(processes.marked(mark)) == 3  # web, worker, its child
    assert group.end(signum) == 0
    assert processes.marked(mark) == []
    assert not EmbeddedPostgres(group.data_dir).is_running()
    assert not (group.data_dir / "run" / "up.json").exists()
    group.wait_for("stopped")


def test_each_is_started_again_when_killed(folder: Path) -> None:
    group = Group(folder).ready()
    mark = group.mark()
    for name in ("web", "worker"):
        before = {process.pid for process in processes.marked(mark)}
        group.child(name).kill()
        said = group.wait_for("starting it again")
        assert name in said
        assert "killed by SIGKILL" in said
        assert eventually(lambda: len(processes.marked(mark)) == 3)
        assert group.child(name).pid not in before
        # The dead worker's child would have gone on working.
        kept = before & {process.pid for process in processes.marked(mark)}
        assert len(kept) == (1 if name == "worker" else 2)
    url = read_state(group.data_dir)
    assert url is not None
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE note AS SELECT 'kept' AS text")
    group.postmaster().kill()
    group.wait_for("the database ended")
    group.wait_for("PostgreSQL 18 started")
    assert read_state(group.data_dir) == url  # web and worker know this one
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT text FROM note").fetchone() == ("kept",)
    assert group.end() == 0
    assert processes.marked(mark) == []
    assert not EmbeddedPostgres(group.data_dir).is_running()


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux")
def test_services_and_database_end_when_supervisor_is_killed(folder: Path) -> None:
    group = Group(folder).ready()
    leaders = [group.child("web"), group.child("worker"), group.postmaster()]
    group.end(signal.SIGKILL)
    assert processes.wait_gone(leaders, PATIENCE_S) == []


def test_next_start_works_when_everything_was_killed(folder: Path) -> None:
    group = Group(folder).ready()
    mark = group.mark()
    doomed = [group.child("web"), group.child("worker"), group.postmaster()]
    group.process.kill()
    for process in doomed:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    group.process.wait()
    assert processes.wait_gone(doomed, PATIENCE_S) == []
    assert len(processes.marked(mark)) == 1  # the worker's child lives on, and works
    again = Group(folder)
    again.wait_for("ended 1 processes that an earlier start left behind")
    again.ready()
    assert processes.marked(mark) == []
    assert again.end() == 0


def test_second_group_is_refused_when_one_runs(folder: Path) -> None:
    first = Group(folder).ready()
    second = Group(folder)
    said = second.wait_for("is already running on")
    assert f"http://127.0.0.1:{first.port}" in said
    assert second.process.wait(PATIENCE_S) == 1
    assert first.process.poll() is None
    assert first.end() == 0


def test_it_gives_up_when_web_never_starts(folder: Path) -> None:
    group = Group(folder, web="raise SystemExit('no module')")
    group.wait_for("no module")
    group.wait_for("web doesn't start")
    assert group.process.wait(PATIENCE_S) == 1
    assert not EmbeddedPostgres(group.data_dir).is_running()


def test_it_gives_up_when_setting_up_fails(folder: Path) -> None:
    group = Group(folder, setup_code=3)
    group.wait_for("Setting up failed (exit code 3)")
    assert group.process.wait(PATIENCE_S) == 1
    assert not EmbeddedPostgres(group.data_dir).is_running()
    assert Group(folder).ready().end() == 0  # and the next start sets up


def test_stubborn_service_is_killed_when_asked_twice(folder: Path) -> None:
    group = Group(folder, kind="stubborn").ready()
    mark = group.mark()
    group.process.send_signal(signal.SIGINT)
    group.wait_for("stopping")
    assert group.end() == 0
    assert processes.marked(mark) == []


def test_setting_up_is_skipped_when_nothing_changed(
    folder: Path, make_database: Callable[[Path], None]
) -> None:
    group = Group(folder).ready()
    assert any("setting up" in line for line in group.lines)
    group.end()
    group = Group(folder).ready()
    assert not any("setting up" in line for line in group.lines)
    group.end()
    shutil.rmtree(group.data_dir / "postgres")
    make_database(folder / "other")
    (folder / "other" / "postgres").rename(group.data_dir / "postgres")
    shutil.rmtree(folder / "other")
    group = Group(folder).ready()
    assert any("setting up" in line for line in group.lines)
    group.end()


def test_taken_port_is_refused_when_wished_for(folder: Path) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = squatter.getsockname()[1]
        group = Group(folder, "--port", str(port))
        assert "--port" in group.wait_for(f"Port {port} on 127.0.0.1 is in use")
        assert group.process.wait(PATIENCE_S) == 1


def test_next_port_is_taken_and_said_when_default_is_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        taken = squatter.getsockname()[1]
        monkeypatch.setattr(up, "DEFAULT_PORT", taken)
        chosen = up.choose_port(None, "127.0.0.1", Output(sys.stdout))
    assert taken < chosen < taken + 50
    assert f"port {taken} is in use; using {chosen}" in capsys.readouterr().out


def test_it_stops_when_its_reader_goes_away(folder: Path) -> None:
    group = Group(folder).ready()
    mark = group.mark()
    assert group.process.stdout is not None
    # A reader that ends, like `| head`: dup2 over the pipe's last reading end.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), group.process.stdout.fileno())
    group.child("worker").kill()  # makes it say something
    group.process.wait(PATIENCE_S)
    assert eventually(lambda: processes.marked(mark) == [])
    assert not EmbeddedPostgres(group.data_dir).is_running()


def test_worker_has_a_free_port_for_its_probes_at_each_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a crash and the next start somebody else may have taken the port of the start before."""
    ports, started = iter([4711, 4712]), list[list[str]]()
    monkeypatch.delenv("GROUNDWORK_WORKER_HEALTH_PORT", raising=False)
    monkeypatch.setattr(up, "free_port", lambda: next(ports))
    monkeypatch.setattr(Service, "start", lambda self: started.append(list(self.argv)))
    options = up.arguments(argparse.ArgumentParser()).parse_args(["--port", str(free_port())])
    group = up.Up(options, folder / "var", Output(sys.stdout), 0.0, up.GROUNDWORK)
    for number in (4711, 4712):
        group._start(group.worker)
        assert started[-1][-2:] == ["--health-port", str(number)]
        assert group._probes["worker"][1] == number
