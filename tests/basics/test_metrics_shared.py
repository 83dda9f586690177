"""Counts that processes share by fork: added up, kept while one of them lives, and never in the way of work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START = f"""
import os, shutil, signal, sys
sys.path[:0] = [{str(ROOT / "platform")!r}]
from basics import metrics
import prometheus_client  # as django-q2 does, before anybody says where to count

def told():
    text = prometheus_client.generate_latest(metrics.registry_fresh()).decode()
    return [line for line in text.splitlines() if "jobs_ended_total{{" in line or line.startswith("groundwork_budget_ref")]

def fork(work):
    pid = os.fork()
    if not pid:
        work()
        os._exit(0)
    os.waitpid(pid, 0)
"""


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", START + code],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_forks_count_is_added_up_and_outlives_them(tmp_path: Path) -> None:
    code = """
metrics.share_with_forks()
count = lambda: metrics.JOBS_ENDED.add("a", "failed")
fork(lambda: (count(), fork(count)))
fork(lambda: (count(), os.kill(os.getpid(), signal.SIGKILL)))
count()
print(told())
"""
    told = run(code, tmp_path)
    assert '\'groundwork_jobs_ended_total{kind="a",outcome="failed"} 4.0\'' in told
    assert "'groundwork_budget_refusals_total 0.0'" in told, "what never happened is told as 0"
    assert list(tmp_path.iterdir()) == [], "the folder goes with its process"


def test_what_a_killed_process_left_goes_with_the_next_start_and_not_before(tmp_path: Path) -> None:
    killed = "print(metrics.share_with_forks()); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    lives = subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-c",
            START + "print(metrics.share_with_forks(), flush=True); sys.stdin.read()",
        ],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert lives.stdout is not None
    living = Path(lives.stdout.readline().strip())
    left = subprocess.run(
        [sys.executable, "-I", "-c", START + killed],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    assert Path(left).is_dir()
    (tmp_path / "groundwork-metrics-link").symlink_to(living)
    assert run("metrics.share_with_forks(); print(1)", tmp_path) == "1"
    assert not Path(left).exists()
    assert living.is_dir(), "another worker's"
    lives.communicate()
    assert not living.exists()


def test_a_folder_that_went_stops_no_work_and_is_told_once(tmp_path: Path) -> None:
    code = """
import logging
logging.basicConfig(stream=sys.stdout, format="%(message)s")
shutil.rmtree(metrics.share_with_forks())
for _ in range(3):
    fork(lambda: [metrics.JOBS_ENDED.add("a", "failed") for _ in range(3)])
print("worked on")
"""
    told = run(code, tmp_path).splitlines()
    assert told[-1] == "worked on"
    assert sum("is not counted for /metrics" in line for line in told) == 3, "once in each of three processes"


def test_it_must_come_before_the_first_count(tmp_path: Path) -> None:
    code = """
metrics.BUDGET_REFUSALS.add()
try:
    metrics.share_with_forks()
except RuntimeError as error:
    print(error)
"""
    assert run(code, tmp_path) == "share_with_forks comes before the first count"
