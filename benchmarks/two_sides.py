"""What a change costs: the same documents, searches and questions on two sides in turn, in processor seconds.

The sides are the code of an earlier commit and this one (``--before COMMIT``), or this code with its files in the data
folder and in a bucket (``--bucket``). Each has its own database, web server and worker; Postgres is one server, and what it
uses counts for the side whose turn it is. Prints and writes results/two_sides_<what>.json: for each kind of work the
median of the rounds of both sides, in CPU seconds and in seconds, and the ratio of the medians, second side to first.

    python benchmarks/two_sides.py (--before COMMIT | --bucket) [--rounds 5] [--documents 20] [--searches 60] [--turns 15]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._common import ROOT, write_result
from benchmarks._stack import database, load
from benchmarks.upgrade import MAKE, earlier, ended, waited

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pids: set[int]) -> float:
    """Return the processor seconds of processes and all below them, with those that have ended below them."""
    own: dict[int, float] = {}
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):  # it ended while we looked
                words = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(words[1])
                own[int(folder.name)] = sum(map(int, words[11:15])) / _TICK
    total = 0.0
    for pid, seconds in own.items():
        at: int | None = pid
        while at is not None and at not in pids:
            at = parents.get(at)
        total += seconds if at is not None else 0.0
    return total


class Side:
    """One of the two: a database, a web server and a worker.

    Args:
        name: what the results call it.
        root: of its code.
        url: of its database, empty.
        folder: for its data and logs.
        env: settings of its own.
    """

    def __init__(self, name: str, root: Path, url: str, folder: Path, **env: str) -> None:
        from tests.servers import Stack

        self.name, self.root = name, root
        logs = folder / name
        (logs / "data").mkdir(parents=True, mode=0o700)
        self.stack = Stack(
            logs,
            root,
            DATABASE_URL=url,
            DJANGO_SETTINGS_MODULE="config.settings.test",
            GROUNDWORK_DATA_DIR=str(logs / "data"),
            GROUNDWORK_JOB_LEASE_S="600",
            GROUNDWORK_RATE_PER_MINUTE="0",
            GROUNDWORK_TENANT_RATE_PER_MINUTE="0",
            **env,
        )
        self._count = 0

    def start(self) -> None:
        """Make the schema and a workspace, and start both servers."""
        import subprocess

        def python(*words: str) -> str:
            return subprocess.run(
                [sys.executable, *words],
                cwd=self.root,
                env=self.stack.env,
                check=True,
                text=True,
                stdout=subprocess.PIPE,
            ).stdout

        python("manage.py", "migrate", "-v", "0")
        made = python("-c", MAKE.format(path=str(ROOT / "tests" / "many_tenants.py"), count=1))
        from tests.concurrency.rest import Rest
        from tests.many_tenants import Workspace

        self.own = Workspace(**json.loads(made.splitlines()[-1])[0])
        self.stack.start_web()
        self.stack.start_worker()
        self.rest = Rest(self.stack.port, self.own.key)

    def pids(self) -> set[int]:
        """Return the two processes that were started."""
        return {process.pid for process in (self.stack.web, self.stack.worker) if process is not None}

    def ingest(self, documents: int) -> None:
        """Upload documents, and wait until all are ready."""
        found = []
        for _ in range(documents):
            self._count += 1
            text = "\n\n".join(
                f"## Lamp {self._count}.{n}\n\nLamp {n} of ship {self._count} burns {n * 7 % 13} hours on oil of grade {n % 5}, "
                f"and is looked after by keeper {n * self._count % 97} in port {n % 31}."
                for n in range(40)
            )
            answer = self.rest.upload(self.own.collection, f"lamps-{self._count}.md", text.encode())
            if answer.status not in {201, 202}:
                raise RuntimeError(answer.text[:300])
            found.append(answer.json.get("document", answer.json)["id"])

        def is_ready(document: int) -> bool:
            status = self.rest.get(f"/api/v1/documents/{document}").json["status"]
            if status == "failed":
                raise RuntimeError(f"document {document} failed")
            return bool(status == "ready")

        for document in found:
            waited(lambda document=document: is_ready(document), f"document {document}")

    def search(self, searches: int) -> None:
        """Send searches, one after the other."""
        for n in range(searches):
            body = {
                "query": f"who looks after lamp {n} of ship {n % 7}",
                "collections": [self.own.collection],
            }
            answer = self.rest.post("/api/v1/search", body)
            if answer.status != 200 or not answer.json["hits"]:
                raise RuntimeError(answer.text[:300])

    def ask(self, turns: int) -> None:
        """Ask questions in one conversation each, and read each answer from its stream."""
        from tests.many_tenants import send

        for n in range(turns):
            talk = self.rest.post("/api/v1/conversations", {"title": f"Lamp {n}"}).json["id"]
            question = {"text": f"Who looks after lamp {n}?", "model": "extractive"}
            answer = self.rest.post(f"/api/v1/conversations/{talk}/turns", question)
            path = f"/api/v1/runs/{answer.json['run_id']}/events"
            status, text = send(self.stack.port, self.own, "GET", path, accept="text/event-stream")
            if status != 200 or "event: end" not in text:
                raise RuntimeError(text[-300:])


def measured(sides: list[Side], args: argparse.Namespace, postmaster: int) -> dict[str, Any]:
    """Let the sides work in turn; returns seconds by kind of work."""
    works: dict[str, tuple[Callable[[Side, int], None], int]] = {
        "ingestion": (Side.ingest, args.documents),
        "search": (Side.search, args.searches),
        "chat": (Side.ask, args.turns),
    }
    took: dict[str, dict[str, list[tuple[float, float]]]] = {
        work: {side.name: [] for side in sides} for work in works
    }
    for number in range(args.rounds + 1):  # the first one warms both up, and isn't counted
        for work, (do, count) in works.items():
            for side in sides if number % 2 else sides[::-1]:
                pids = side.pids() | {postmaster}
                before, began = cpu_of(pids), time.monotonic()
                do(side, count)
                spent = (cpu_of(pids) - before, time.monotonic() - began)
                if number:
                    took[work][side.name].append(spent)
        print(f"round {number} of {args.rounds}, load {load()}", flush=True)
    result: dict[str, Any] = {}
    for work, by_side in took.items():
        cpu = {name: statistics.median(c for c, _ in rounds) for name, rounds in by_side.items()}
        wall = {name: statistics.median(w for _, w in rounds) for name, rounds in by_side.items()}
        first, second = (side.name for side in sides)
        result[work] = {
            "cpu_s": {name: round(value, 3) for name, value in cpu.items()},
            "wall_s": {name: round(value, 3) for name, value in wall.items()},
            "cpu_ratio": round(cpu[second] / cpu[first], 3),
            "wall_ratio": round(wall[second] / wall[first], 3),
            "cpu_ratios": [
                round(b[0] / a[0], 3) for a, b in zip(by_side[first], by_side[second], strict=True)
            ],
        }
    return result


@contextlib.contextmanager
def second_database(url: str) -> Iterator[str]:
    """Make another empty database on the same server."""
    import psycopg

    from tests.databases import database_drop

    name = f"{url.rpartition('/')[2]}_second"
    with psycopg.connect(url, autocommit=True) as line:
        line.execute(f'CREATE DATABASE "{name}"')
        try:
            yield f"{url.rpartition('/')[0]}/{name}"
        finally:
            database_drop(line, name)


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--before", help="commit whose code is the first side")
    what.add_argument("--bucket", action="store_true", help="the data folder against a bucket (moto)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--searches", type=int, default=60)
    parser.add_argument("--turns", type=int, default=15)
    args = parser.parse_args()
    load_before = load()
    with contextlib.ExitStack() as stack:
        stack.enter_context(database(is_migrated=False))
        first = os.environ["DATABASE_URL"]
        second = stack.enter_context(second_database(first))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="groundwork-sides-")))
        import psycopg

        from tenancy.database.base import as_login_role
        from tenancy.row_security import roles_make

        with as_login_role():
            from django.db import connection

            with connection.cursor() as cursor:
                roles_make(cursor)
        with psycopg.connect(first) as line:
            found: Any = line.execute("SELECT pg_backend_pid()").fetchone()
            words = Path(f"/proc/{found[0]}/stat").read_text().rpartition(")")[2].split()
            postmaster = int(words[1])
        if args.bucket:
            from tests.bucket import Bucket, serving

            address = stack.enter_context(serving())
            bucket = Bucket(address)
            sides = [
                Side("folder", ROOT, first, folder),
                Side("bucket", ROOT, second, folder, GROUNDWORK_FILES_URL=bucket.url),
            ]
        else:
            before = stack.enter_context(earlier(args.before))
            sides = [Side("before", before, first, folder), Side("now", ROOT, second, folder)]
        try:
            for side in sides:
                side.start()
            result = measured(sides, args, postmaster)
        except BaseException:
            for log in sorted(folder.glob("*/*.log")):
                print(f"--- {log}\n{log.read_text(errors='replace')[-2000:]}")
            raise
        finally:
            for side in sides:
                for process in (side.stack.worker, side.stack.web):
                    if process is not None and process.poll() is None:
                        ended(process)
    name = "bucket" if args.bucket else "commits"
    told = {"before": args.before} if args.before else {}
    write_result(
        f"two_sides_{name}",
        {**told, "rounds": args.rounds, "load_before": load_before, "load_after": load(), **result},
    )
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
