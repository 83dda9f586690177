"""What people notice of an upgrade: the code of an earlier commit and this one serve the same database, under load.

Two web servers and two workers of the earlier code answer; meanwhile this code's migrations run (killed several times on the way,
then to their end), and each of the four is replaced by one of this code, the replacement first. Requests go all the time to
whichever web servers are in service, as a load balancer sends them: lists, pages, writes, searches, uploads that are read by
the workers, questions whose answers are streamed, MCP. Prints a table and writes results/upgrade.json: requests that were
not answered rightly, runs and documents that did not end well.

    python benchmarks/upgrade.py --before COMMIT [--seconds 600] [--requests 20000] [--kills 10]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._common import ROOT, write_result
from benchmarks._stack import database, load

WORKSPACES, AT_ONCE = 20, 4
OUT_OF_SERVICE_S = 2.0  # what a load balancer takes to see that a server is not ready any more
END_S = 600.0
MAKE = """
import importlib.util, json, dataclasses, django
django.setup()
spec = importlib.util.spec_from_file_location("many_tenants", {path!r})
made = importlib.util.module_from_spec(spec)
__import__("sys").modules["many_tenants"] = made
spec.loader.exec_module(made)
from apps.collections.index.embedding import space_default
from apps.collections.models import Collection
from tenancy.scope import platform_scope
found = made.workspaces_make({count})
with platform_scope():
    for own in Collection.objects.select_related("tenant"):
        own.space = space_default(tenant=own.tenant)
        own.save()
print(json.dumps([dataclasses.asdict(one) for one in found]))
"""


@contextmanager
def earlier(commit: str) -> Iterator[Path]:
    """Unpack the code of a commit into a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="groundwork-before-") as folder:
        packed = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        yield Path(folder)


class Site:
    """Four machines, and which web servers are in service."""

    def __init__(self, folder: Path, before: Path) -> None:
        self.folder, self.before = folder, before
        self.machines: list[Any] = []
        self.ports: list[int] = []
        self._turn = 0

    def machine(self, root: Path) -> Any:
        """Return a machine with some code, on which nothing runs yet."""
        from tests.servers import Stack

        logs = self.folder / f"logs-{len(self.machines)}"
        logs.mkdir()
        made = Stack(
            logs,
            root,
            DATABASE_URL=os.environ["DATABASE_URL"],
            DJANGO_SETTINGS_MODULE=os.environ["DJANGO_SETTINGS_MODULE"],
            GROUNDWORK_DATA_DIR=str(self.folder / "data"),
            GROUNDWORK_JOB_LEASE_S="600",  # nothing is found by a lease that runs out
            GROUNDWORK_RATE_PER_MINUTE="0",
            GROUNDWORK_TENANT_RATE_PER_MINUTE="0",
        )
        if root == self.before:
            made.env.pop("GROUNDWORK_WORKER_HEALTH_PORT")  # it may not know the setting, and then refuses it
        self.machines.append(made)
        return made

    def port(self) -> int:
        """Return the web server that gets the next request."""
        ports = self.ports
        self._turn += 1
        return ports[self._turn % len(ports)]

    def run(self, root: Path, *words: str) -> subprocess.Popen[bytes]:
        """Run Python with some code and the machines' settings."""
        env = {**self.machines[0].env, "PYTHONPATH": f"{root}{os.pathsep}{root / 'platform'}"}
        return subprocess.Popen([sys.executable, *words], cwd=root, env=env, stdout=subprocess.PIPE)

    def web_begin(self, machine: Any) -> None:
        """Start a web server and take it into service."""
        machine.start_web()
        self.ports = [*self.ports, machine.port]

    def web_end(self, machine: Any) -> None:
        """Take a web server out of service, and end it."""
        self.ports = [port for port in self.ports if port != machine.port]
        time.sleep(OUT_OF_SERVICE_S)
        ended(machine.web)

    def worker_begin(self, machine: Any) -> None:
        """Start a worker; the earlier code may have no probes."""
        machine._begin_worker()
        log = machine.logs / "worker.log"
        waited(lambda: b"worker_ready" in log.read_bytes(), "a worker")


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a process in order."""
    process.send_signal(signal.SIGTERM)
    process.wait(120)


def waited(condition: Any, what: str) -> None:
    """Wait until something is so."""
    until = time.monotonic() + END_S
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"waited {END_S:.0f} s for {what}")
        time.sleep(0.1)


def doors(site: Site) -> list[Any]:
    """Return the usual doors, but with questions whose streams move on, and with searches and uploads."""
    from tests import many_tenants
    from tests.concurrency.followers import Follower
    from tests.concurrency.rest import Rest
    from tests.many_tenants import send

    def ask(port: int, own: Any, other: Any) -> str:
        status, text = send(port, own, "POST", "/api/v1/conversations", {"title": own.name})
        if status != 201:
            return f"{status} {text[:200]}"
        question = {"text": f"What is {own.name}?", "model": "extractive"}
        path = f"/api/v1/conversations/{json.loads(text)['id']}/turns"
        status, text = send(site.port(), own, "POST", path, question)
        if status not in {201, 202}:
            return f"{status} {text[:200]}"
        follower = Follower(json.loads(text)["run_id"], own.key, site.ports, seconds=END_S)
        while not follower.has_ended:
            if not follower.follow(site.port()):
                return "the stream was refused"
        seen = [seq for seq, _, _ in follower.events]
        is_whole = bool(seen) and seen == list(range(1, len(seen) + 1)) and not follower.cut
        return "" if is_whole else f"events {seen}, cut {follower.cut}"

    def search(port: int, own: Any, other: Any) -> str:
        body = {"query": f"lamp of {own.slug}", "collections": [own.collection]}
        status, text = send(port, own, "POST", "/api/v1/search", body)
        return "" if status == 200 and "hits" in json.loads(text) else f"{status} {text[:200]}"

    def upload(port: int, own: Any, other: Any) -> str:
        data = f"# Lamp of {own.slug}\n\nIt was uploaded at {time.time_ns()}.\n".encode()
        answer = Rest(port, own.key).upload(own.collection, f"lamp-{time.time_ns()}.md", data)
        if answer.status not in {201, 202}:
            return f"{answer.status} {answer.text[:200]}"
        document = answer.json.get("document", answer.json)["id"]
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            status, text = send(site.port(), own, "GET", f"/api/v1/documents/{document}")
            if status != 200 or json.loads(text)["status"] == "failed":
                return f"{status} {text[:200]}"
            if json.loads(text)["status"] == "ready":
                return ""
            time.sleep(0.2)
        return "never ready"

    usual = [door for door in many_tenants.DOORS if door.__name__ != "_turn"]
    return [*usual, ask, search, upload, search]


def measured(site: Site, before: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Upgrade under load; returns the figures."""
    from django.db import connection

    from tenancy.database.base import as_login_role
    from tenancy.row_security import roles_make
    from tests.many_tenants import Workspace, visit

    with as_login_role(), connection.cursor() as cursor:
        # Earlier code looked at the version of a new server as a role that was not there yet.
        roles_make(cursor)
    old, new = [site.machine(before) for _ in range(2)], [site.machine(ROOT) for _ in range(2)]
    assert site.run(before, "manage.py", "migrate", "-v", "0").wait() == 0
    script = MAKE.format(path=str(ROOT / "tests" / "many_tenants.py"), count=WORKSPACES)
    told = site.run(before, "-c", script).communicate()[0]
    workspaces = [Workspace(**one) for one in json.loads(told.splitlines()[-1])]
    for machine in old:
        site.web_begin(machine)
        site.worker_begin(machine)
    is_over = threading.Event()
    began = time.monotonic()

    def at(share: float) -> None:
        time.sleep(max(0.0, began + share * args.seconds - time.monotonic()))

    with ThreadPoolExecutor(1) as pool:
        visiting = pool.submit(
            visit,
            site.port,
            workspaces,
            requests=args.requests,
            at_once=AT_ONCE,
            doors=doors(site),
            goes_on=lambda: not is_over.is_set(),
        )
        at(0.15)
        kills = killed(site, args.kills)
        migrated = time.monotonic()
        assert site.run(ROOT, "manage.py", "migrate", "-v", "0").wait() == 0, "the migrations did not end"
        migrated = time.monotonic() - migrated
        at(0.35)
        for number, share in ((0, 0.5), (1, 0.8)):
            site.web_begin(new[number])
            site.web_end(old[number])
            at(share)
            site.worker_begin(new[number])
            ended(old[number].worker)
        at(1.0)
        is_over.set()
        found = visiting.result()
    seconds = time.monotonic() - began
    for problem in found.wrong[:20]:
        print(problem)
    return {
        "commit_before": args.before,
        "seconds": round(seconds),
        "requests": found.right + len(found.wrong),
        "wrong": len(found.wrong),
        "migrations_killed": kills,
        "migrate_seconds": round(migrated, 1),
        **left(),
    }


def killed(site: Site, kills: int) -> int:
    """Start the migrations again and again, and kill them at a random moment; returns how many were killed under way."""
    chance, count = random.Random(7), 0
    for _ in range(kills):
        migrating = site.run(ROOT, "manage.py", "migrate", "-v", "0")
        try:
            migrating.wait(chance.uniform(2.0, 9.0))
        except subprocess.TimeoutExpired:
            migrating.kill()
            migrating.wait()
            count += 1
    return count


def left() -> dict[str, Any]:
    """Wait for what is under way, and tell how it ended."""
    from apps.collections.models import Document
    from jobs.models import Job
    from runs.models import Run
    from tenancy.scope import platform_scope

    def counts(model: Any) -> dict[str, int]:
        return dict(Counter(model.objects.values_list("status", flat=True)))

    with platform_scope():
        waited(
            lambda: (
                not Job.objects.filter(
                    status__in=("queued", "running"), waits_since=None, run_after__lte=now()
                )
            ),
            "jobs",
        )
        return {
            "runs": counts(Run),
            "documents": counts(Document),
            "jobs_failed": Job.objects.filter(status="failed").count(),
            "jobs_died": Job.objects.filter(deaths__gt=0).count(),
        }


def now() -> Any:
    """Return the time for a query."""
    from django.utils import timezone

    return timezone.now()


def main() -> int:
    """Measure; 0 when every request was answered rightly and everything ended well."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", required=True, help="commit whose code runs first")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--requests", type=int, default=20_000, help="at least")
    parser.add_argument("--kills", type=int, default=10)
    args = parser.parse_args()
    load_before = load()
    with (
        earlier(args.before) as before,
        database(is_migrated=False),
        tempfile.TemporaryDirectory(prefix="groundwork-upgrade-") as folder,
    ):
        site = Site(Path(folder), before)
        (Path(folder) / "data").mkdir(mode=0o700)
        try:
            result = measured(site, before, args)
        except BaseException:
            for log in sorted(Path(folder).glob("logs-*/*.log")):
                print(f"--- {log}\n{log.read_text(errors='replace')[-3000:]}")
            raise
        finally:
            for machine in site.machines:
                machine.stop()
    result |= {"load_before": load_before, "load_after": load()}
    result["ok"] = (
        not result["wrong"]
        and set(result["runs"]) == {"completed"}
        and set(result["documents"]) == {"ready"}
        and not result["jobs_failed"]
    )
    for name, value in result.items():
        print(f"{name:32} {value}")
    print(write_result("upgrade", result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
