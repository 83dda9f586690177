"""How long `manage.py up` takes to be ready, and what database, web server and worker hold at rest.

    python benchmarks/startup.py [--rest 20] [--starts 3]

Times are from the start of the process to its line "Groundwork is ready" (which follows a 200 of /readyz), beside the CPU
seconds of all processes until then, which a busy machine stretches less. Memory is read twice: --rest seconds after a start,
and after the first start's work: the demo's documents are ingested, and the model has left the memory. PSS (shared pages
divided among those who share them) is the honest sum; RSS counts the shared pages of every process again. The data directory
is new and temporary.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg
from _common import ROOT, write_result

sys.path.insert(1, str(ROOT / "platform"))
from config import processes
from config.embedded import EmbeddedPostgres

MODEL_IDLE_S = 75.0
"""The built-in embedder leaves the memory after a minute without a text, looked at every five seconds."""


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Run:
    """One `manage.py up`, from start to the end of the stop."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        environment = {k: v for k, v in os.environ.items() if k != "DATABASE_URL"}
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [
                sys.executable,
                str(ROOT / "manage.py"),
                "up",
                "--port",
                str(free_port()),
                "--data-dir",
                str(data_dir),
            ],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout
        said = []
        for line in self.process.stdout:
            said.append(line)
            if "Groundwork is ready" in line:
                break
        else:
            raise SystemExit("it did not become ready:\n" + "".join(said))
        self.ready_s = time.perf_counter() - began
        self.cpu_s = self._cpu_s()

    def _cpu_s(self) -> float:
        """Return the CPU seconds of the group until now, those of processes that ended included."""
        supervisor = psutil.Process(self.process.pid)
        total = 0.0
        for one in (supervisor, *supervisor.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # its parent counts it now
                times = one.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def memory(self) -> dict[str, dict[str, float]]:
        """Return MB per service."""
        groups: dict[str, list[psutil.Process]] = {"supervisor": [psutil.Process(self.process.pid)]}
        for child in psutil.Process(self.process.pid).children(recursive=True):
            mark = ""
            with contextlib.suppress(psutil.NoSuchProcess):  # the database's workers come and go
                mark = child.environ().get(processes.MARK, "")
            if mark:
                groups.setdefault(mark.split("/")[1], []).append(child)
        groups["database"] = processes.postgres_on(EmbeddedPostgres(self.data_dir).pgdata)
        found = {}
        for name, members in groups.items():
            infos = []
            for member in members:
                with contextlib.suppress(psutil.NoSuchProcess):
                    infos.append(member.memory_full_info())
            found[name] = {
                "processes": len(infos),
                "pss_mb": sum(info.pss for info in infos) / 1e6,
                "rss_mb": sum(info.rss for info in infos) / 1e6,
            }
        return found

    def work_end(self) -> None:
        """Wait until no job is queued or running, and what work needed has left the memory."""
        with psycopg.connect(EmbeddedPostgres(self.data_dir).superuser_url, autocommit=True) as line:
            asked = "SELECT count(*) FROM jobs_job WHERE status IN ('queued', 'running')"
            while line.execute(asked).fetchone() != (0,):
                time.sleep(0.5)
        time.sleep(MODEL_IDLE_S)

    def stop(self) -> float:
        """Press Ctrl-C; return the seconds until it has ended. Fails when anything is left."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGINT)
        assert self.process.stdout
        self.process.stdout.read()
        code = self.process.wait(60)
        seconds = time.perf_counter() - began
        assert code == 0, f"exit code {code}"
        assert not EmbeddedPostgres(self.data_dir).is_running(), "the database is left"
        return seconds


def shown(title: str, memory: dict[str, dict[str, float]]) -> None:
    """Print the memory of each service, and add their sum as ``all``."""
    memory["all"] = {key: sum(v[key] for v in memory.values()) for key in ("processes", "pss_mb", "rss_mb")}
    print(f"{title:<12}{'processes':>10}{'PSS MB':>10}{'RSS MB':>10}")
    for name, values in memory.items():
        bar = "   (bar: 400)" if name == "all" else ""
        print(f"{name:<12}{values['processes']:>10}{values['pss_mb']:>10.0f}{values['rss_mb']:>10.0f}{bar}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rest", type=float, default=20.0, help="seconds of rest before memory is read")
    parser.add_argument("--starts", type=int, default=3, help="starts after the first")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="groundwork-startup-"))
    folder.chmod(0o711)
    try:
        subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "embedder_prepare"],
            env={**os.environ, "GROUNDWORK_DATA_DIR": str(folder / "var")},
            check=True,
        )
        first = Run(folder / "var")
        print(f"first start    {first.ready_s:6.2f} s   (bar: 5), CPU {first.cpu_s:.1f} s")
        first.work_end()
        after_work = first.memory()
        stops = [first.stop()]
        starts, cpu = [], [first.cpu_s]
        for number in range(options.starts):
            again = Run(folder / "var")
            starts.append(again.ready_s)
            cpu.append(again.cpu_s)
            print(f"start {number + 2}        {again.ready_s:6.2f} s   (bar: 2), CPU {again.cpu_s:.1f} s")
            if number == options.starts - 1:
                time.sleep(options.rest)
                memory = again.memory()
            stops.append(again.stop())
    finally:
        EmbeddedPostgres(folder / "var").stop(force=True)
        shutil.rmtree(folder)
    print(f"stop           {max(stops):6.2f} s   (longest)\n")
    shown("at rest", memory)
    shown("after work", after_work)
    path = write_result(
        "startup",
        {
            "first_start_s": first.ready_s,
            "next_starts_s": starts,
            "cpu_s": cpu,
            "stop_s": stops,
            "rest_s": options.rest,
            "memory": memory,
            "memory_after_work": after_work,
        },
    )
    print(f"\nwritten to {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
