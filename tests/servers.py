"""Real processes for tests: web server and worker on the test database, and a model server that obeys."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from basics.processes import die_with_parent
from tests import nursery
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent


def database_url() -> str:
    """Return the URL of the test database for another process."""
    chosen = connection.settings_dict
    secret = f":{quote(chosen['PASSWORD'])}" if chosen["PASSWORD"] else ""
    return f"postgresql://{chosen['USER']}{secret}@{chosen['HOST']}:{chosen['PORT']}/{chosen['NAME']}"


def free_port() -> int:
    """Return a loopback port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], object], what: str = "") -> None:
    """Wait until the condition is true; fail when it never is (see ``tests.patience``).

    It is asked again after 20 ms, and the longer it takes the less often, down to ten times a second: asking costs
    processor time which what is waited for may need.
    """
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < PATIENCE_S, f"waited {PATIENCE_S:.0f} s for {what or condition}"
        time.sleep(min(max(waited / 20, 0.02), 0.1))


def status_of(url: str) -> int:
    """Return the status of a GET, 0 while nobody listens."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def waiting_on(line: Any, table: str) -> int:
    """Return how many wait for a lock on a table of the database that a psycopg connection is of.

    Databases copied from one template give their tables the same numbers: those of other test processes are not meant.
    """
    query = """
        SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
        WHERE NOT granted AND relation = %s::regclass AND datname = current_database()
    """
    return int(line.execute(query, [table]).fetchone()[0])


# The command line takes whole seconds, and streams that are open would hold every end up for one.
WEB = """
import sys, uvicorn
port = int(sys.argv[1])
uvicorn.run("config.asgi:application", port=port, timeout_graceful_shutdown=0.5, log_level="warning")
"""


Process = nursery.Forked | subprocess.Popen[bytes]


class Stack:
    """A web server and a worker as an operator runs them, each its own process group."""

    def __init__(self, log_folder: Path, root: Path = ROOT, /, **env: str) -> None:
        """Start nothing yet.

        Args:
            log_folder: where web.log and worker.log are written.
            root: of the code that runs.
            env: settings beside those of the tests.
        """
        self.root = root
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.health_port = free_port()
        self.logs = log_folder
        self.env = {
            **os.environ,
            "DATABASE_URL": database_url(),
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            "GROUNDWORK_DATA_DIR": str(settings.DATA_DIR),
            "GROUNDWORK_SECRET_KEY": settings.SECRET_KEY,
            "GROUNDWORK_JOB_LEASE_S": "5",
            "GROUNDWORK_WORKER_HEALTH_PORT": str(self.health_port),
            "PYTHONPATH": f"{root}{os.pathsep}{root / 'platform'}",
            **env,
        }
        self.web: Process | None = None
        self.worker: Process | None = None

    def _fork(self, kind: str, port: int) -> nursery.Forked:
        made = nursery.nursery(self.env, self.root)
        return made.fork(kind, self.logs / f"{kind}.log", nursery.late(self.env), port=port)

    def _start(self, name: str, command: list[str], **env: str) -> subprocess.Popen[bytes]:
        with (self.logs / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *command],
                env={**self.env, **env},
                cwd=self.root,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL, os.getpid()),
            )

    def start(self) -> None:
        """Start both side by side, and wait until they are ready."""
        self._begin_web()
        self._begin_worker()
        self._await_web()
        self._await_worker()

    def start_web(self) -> None:
        """Start uvicorn and wait until it answers."""
        self._begin_web()
        self._await_web()

    def start_worker(self) -> None:
        """Start the worker command and wait until it takes jobs."""
        self._begin_worker()
        self._await_worker()

    def _begin_web(self) -> None:
        if nursery.can_fork():
            self.web = self._fork(nursery.WEB, self.port)
            return
        self.web = self._start(
            "web",
            ["-c", WEB, str(self.port)],
            DJANGO_DB_POOL="1",
        )

    def _await_web(self) -> None:
        wait_for(lambda: self.get("/healthz") == 200, "the web server")

    def _begin_worker(self) -> None:
        if nursery.can_fork():
            self.worker = self._fork(nursery.WORKER, self.health_port)
            return
        self.worker = self._start("worker", ["manage.py", "worker"])

    def _await_worker(self) -> None:
        wait_for(lambda: status_of(f"http://127.0.0.1:{self.health_port}/readyz") == 200, "the worker")

    def get(self, path: str) -> int:
        """Return the status of a GET, 0 while nobody listens."""
        return status_of(self.url + path)

    def kill_web(self) -> None:
        """Kill the web server as kill -9 does."""
        assert self.web is not None
        self.web.kill()
        self.web.wait(PATIENCE_S)

    def stop(self) -> None:
        """End both; whatever has not left after ten seconds is killed."""
        running = [p for p in (self.worker, self.web) if p is not None and p.poll() is None]
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(PATIENCE_S)
