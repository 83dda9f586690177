"""A run that is told to end leaves nothing behind: no worker that a test started, and no database."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from config import processes
from config.embedded import EmbeddedPostgres
from tests.patience import PATIENCE_S
from tests.processes import RUN, below
from tests.servers import ROOT, wait_for

pytestmark = pytest.mark.servers
STARTS_A_WORKER = "tests/jobs/test_worker.py"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the database's user may enter, as it may not enter pytest's."""
    path = Path(tempfile.mkdtemp(prefix="groundwork-run-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def _of_run(pid: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(RUN) == str(pid):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def _is_worker(pid: int) -> bool:
    try:
        return " ".join(psutil.Process(pid).cmdline()).split()[-1:] == ["worker"]  # as tests.nursery names it
    except psutil.NoSuchProcess:
        return False


def test_nothing_is_left_when_a_run_is_told_to_end(folder: Path) -> None:
    outside = ("DATABASE_URL", "GROUNDWORK_", "PYTEST_", RUN)
    env = {name: value for name, value in os.environ.items() if not name.startswith(outside)}
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", STARTS_A_WORKER],
        cwd=ROOT,
        env=env | {"GROUNDWORK_DATA_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_for(lambda: any(map(_is_worker, below(run.pid))), "a test to start a worker")
        run.send_signal(signal.SIGTERM)
        said, _ = run.communicate(timeout=PATIENCE_S)
    finally:
        if run.poll() is None:
            run.kill()
    assert run.returncode == pytest.ExitCode.INTERRUPTED, said
    assert _of_run(run.pid) == []
    server = EmbeddedPostgres(folder)
    assert not server.is_running(), said
    assert processes.postgres_on(server.pgdata) == []
