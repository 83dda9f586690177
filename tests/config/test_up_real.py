"""``manage.py up`` with the real web server and worker, from an empty database through kill -9 to Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from apps.collections.embedders.minilm import prepare_model
from config import processes
from config.embedded import EmbeddedPostgres
from tests.config.conftest import end_group
from tests.config.test_up_supervisor import Group, eventually, free_port
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.servers

ROOT = Path(__file__).resolve().parents[2]


class RealGroup(Group):
    """The group of ``make run``."""

    def command(self, web: str, setup_code: int, kind: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), "up", "--data-dir", str(self.data_dir)]

    def environment(self) -> dict[str, str]:
        # As a new user would have it: neither the tests' settings nor their data directory.
        strange = ("GROUNDWORK_", "DJANGO_", "PYTEST_")
        return {k: v for k, v in super().environment().items() if not k.startswith(strange)}

    def status(self, path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


@pytest.fixture
def empty(settings: Any) -> Iterator[Path]:
    """A folder with nothing but the embedder's model, whose making has tests of its own and takes some seconds."""
    path = Path(tempfile.mkdtemp(prefix="groundwork-test-"))
    path.chmod(0o711)
    prepare_model(settings.DATA_DIR)
    (path / "var").mkdir()
    (path / "var" / "models").symlink_to(settings.DATA_DIR / "models")
    yield path
    end_group(path / "var")
    shutil.rmtree(path)


@pytest.fixture
def group(empty: Path) -> Iterator[RealGroup]:
    started = RealGroup(empty)
    yield started
    if started.process.poll() is None:
        started.end()


def test_it_recovers_when_any_one_process_is_killed(group: RealGroup, empty: Path) -> None:
    group.wait_for("Groundwork is ready")
    assert (group.status("/healthz"), group.status("/readyz")) == (200, 200)
    mark = group.mark()
    worker = group.child("worker")
    if sys.platform == "linux":
        assert {group.child("web").ppid(), worker.ppid()} == {group.child("zygote").pid}
    cluster = {process.pid for process in worker.children(recursive=True)}
    assert cluster
    for victim in (group.child("web"), worker, group.postmaster()):
        victim.kill()
        group.wait_for("starting it again")
        assert eventually(lambda: group.status("/readyz") == 200), group.said_so_far()
    assert not cluster & {process.pid for process in processes.marked(mark)}
    # The whole group at once, as when the machine's memory runs out.
    doomed = [psutil.Process(group.process.pid), *processes.marked(mark), group.postmaster()]
    for process in doomed:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    group.process.wait()
    again = RealGroup(empty)
    again.wait_for("Groundwork is ready")
    assert not any("setup" in line.split("|")[0] for line in again.lines)  # nothing had changed
    mark = again.mark()
    assert again.end() == 0
    assert processes.marked(mark) == []
    assert not EmbeddedPostgres(again.data_dir).is_running()


def test_group_stops_when_make_is_killed(folder: Path) -> None:
    port = free_port()
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys; subprocess.run(sys.argv[1:])",
            sys.executable,
            str(ROOT / "manage.py"),
            "up",
            "--with-parent",
            "--port",
            str(port),
            "--data-dir",
            str(folder / "var"),
        ],
        env={
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("GROUNDWORK_", "DATABASE_URL", "DJANGO_"))
        },
        stdout=subprocess.DEVNULL,
    )
    record = folder / "var" / "run" / "up.json"
    assert eventually(lambda: EmbeddedPostgres(folder / "var").is_running())
    supervisor = psutil.Process(parent.pid).children()[0]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert processes.wait_gone([supervisor], PATIENCE_S) == []
    assert not EmbeddedPostgres(folder / "var").is_running()
    assert not record.exists()
