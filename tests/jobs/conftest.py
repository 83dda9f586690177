from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from basics.processes import die_with_parent
from tests import nursery
from tests.jobs import tasks  # noqa: F401 - registers the kinds in this process too
from tests.patience import PATIENCE_S
from tests.servers import ROOT, database_url

Begun = nursery.Forked | subprocess.Popen[str]


def _environment(**env: str) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "tests.jobs.settings",
        "GROUNDWORK_JOB_LEASE_S": "3",
        **env,
    }


def begin(**env: str) -> Begun:
    """Start a real worker on the test database, with standard error for its output; see ``tests.nursery``."""
    if not nursery.can_fork():
        return begin_alone(None, **env)
    given = _environment(**env)
    port = int(given.get("GROUNDWORK_WORKER_HEALTH_PORT", "0"))
    return nursery.nursery(given, ROOT).fork(nursery.WORKER, None, nursery.late(given), port=port)


def begin_alone(stderr: int | None = None, **env: str) -> subprocess.Popen[str]:
    """Start a real worker by its command line, on the test database."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "worker"],
        env=_environment(**env),
        cwd=ROOT,
        text=True,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGKILL, os.getpid()),
    )


def end(*workers: Begun) -> None:
    """End worker commands; whatever has not left after fifteen seconds is killed."""
    for process in workers:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    for process in workers:
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE_S)


@pytest.fixture
def start_worker(transactional_db: None) -> Iterator[Callable[..., Begun]]:
    """Start real workers on the test database; all are gone afterwards."""
    started: list[Begun] = []

    def start(**env: str) -> Begun:
        started.append(begin(**env))
        return started[-1]

    yield start
    end(*started)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes"
    path.touch()
    return path
