"""A worker process that is killed as kill -9 does, and what must be true of a job that it carried.

The worker runs the product's own runner on one job. It is forked from a process that has everything imported, so that
a new one takes milliseconds. A model server says a number with each answer, so that each answer that was paid for can be
found again among what was committed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Any

from apps.datasets.generation.claiming import SUSPECT
from apps.datasets.generation.services import DRIVE
from apps.datasets.models import ITEM_OPEN, DatasetRow, GenerationItem, GenerationJob, ItemState, PaidCall
from jobs.models import ACTIVE, Job
from jobs.sweeper import sweep
from tests.datasets.support import FakeModel
from tests.servers import ROOT, database_url, wait_for

CALLS_A_ROW = {"question": 1, "filter": 1, "answer": 2, "synthesis": 1, "judge": 1}
_SERIAL = re.compile(r"serial-(\d+)")
_NURSERY = """
import os, signal, sys
given = dict(os.environ)
import django
django.setup()
os.environ.update(given)  # settings of tests take keys of models away; these are of a server of the test's own
from django.conf import settings
from apps.collections.models import Chunk
from apps.collections.search import SearchResult
from apps.conversations.toolset import document_search
from apps.datasets.generation import tasks
from jobs.runner import run_here
from runs.providers import providers_preload
from tests.conversations.conftest import hit_of

def search(**asked):
    deadly = os.environ.get("DEADLY_WORD")
    if deadly and deadly in asked["query"]:
        os.kill(os.getpid(), signal.SIGKILL)
    chunks = Chunk.objects.select_related("document").filter(collection__in=asked["collections"])
    return SearchResult(asked["query"], [hit_of(c) for c in chunks.order_by("pk")[:3]], [], ("lexical",), "", 0.0, 0.0)

document_search.search_run = search
providers_preload()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
for line in sys.stdin:
    tenant, job = map(int, line.split())
    pid = os.fork()
    if not pid:
        os.setsid()
        run_here(tenant, job)
        os._exit(0)
    print(pid, flush=True)
"""


class NumberedModel(FakeModel):
    """Answers with a number in each answer, and remembers what was answered to which question.

    Attributes:
        answered: serial number to a hash of the request.
        moved: set with each request.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answered: dict[int, str] = {}
        self.moved = threading.Event()

    def __call__(self, body: dict[str, Any]) -> str | int | list[dict[str, Any]]:
        said = super().__call__(body)
        self.moved.set()
        if isinstance(said, int):
            return said
        number = len(self.answered) + 1
        self.answered[number] = sha256(json.dumps(body["messages"]).encode()).hexdigest()
        mark = f"serial-{number}"
        if isinstance(said, list):
            return [{**call, "arguments": {"query": f"duty {mark}"}} for call in said]
        with contextlib.suppress(ValueError):
            return json.dumps(_marked(json.loads(said), mark))
        return f"{said} {mark}"


def _marked(values: dict[str, Any], mark: str) -> dict[str, Any]:
    """Put the mark into a text that the stage's form has."""
    if "accuracy" in values:
        return {**values, "accuracy": {**values["accuracy"], "evidence": mark}}
    name = next(n for n in ("rationale", "reason", "answer") if n in values)
    return {**values, name: f"{values[name]} {mark}"}


@dataclass
class Nursery:
    """Forks workers; ``pid`` is the one that is alive."""

    process: subprocess.Popen[str]
    pid: int = 0

    def work(self, tenant_id: int, job_id: int) -> None:
        """Let a new worker run a job."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{tenant_id} {job_id}\n")
        self.process.stdin.flush()
        self.pid = int(self.process.stdout.readline())

    def kill(self) -> None:
        """Kill the worker, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not is_alive(self.pid), what="the end of a killed worker")


def is_alive(pid: int) -> bool:
    """Tell whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def nursery(**env: str) -> Iterator[Nursery]:
    """Start the process that workers are forked from."""
    process = subprocess.Popen(
        [sys.executable, "-c", _NURSERY],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url(),
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}",
            **env,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    made = Nursery(process)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready", "the nursery did not start"
        yield made
    finally:
        if made.pid:
            made.kill()
        process.kill()
        process.wait(5)


def driver_waiting(job: GenerationJob) -> int | None:
    """Return the job of the driver that a worker can take, after giving back what a dead one had; None at the end."""
    rows = Job.objects.filter(kind=DRIVE, payload__job_id=job.pk, status__in=ACTIVE)
    rows.filter(status="running").update(lease_expires_at="2000-01-01T00:00:00Z")
    sweep()
    rows.update(run_after="2000-01-01T00:00:00Z")
    return rows.values_list("pk", flat=True).first()


def let_suspects_go_on(job: GenerationJob) -> None:
    """Wait until no row is one death away from being taken for what kills: this test's kills are nobody's fault."""
    suspects = GenerationItem.objects.filter(job=job, state__in=ITEM_OPEN, deaths__gte=SUSPECT)
    wait_for(lambda: not suspects.exists(), "the rows that workers died with to get on")


@dataclass
class Findings:
    """What was found wrong; all empty when all is well.

    Attributes:
        repeated: serials of committed calls that were asked for again later.
        twice: serials that were committed twice.
        unknown: committed serials that the server never said.
        incomplete: kept items with another number of calls than a row takes.
        counts: numbers that should be equal and are not.
    """

    repeated: list[int] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    incomplete: list[int] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)


def findings_of(job: GenerationJob, model: NumberedModel) -> Findings:
    """Compare what the provider has answered with what the job has kept."""
    found = Findings()
    committed: Counter[int] = Counter()
    stages: dict[int, Counter[str]] = {}
    for item, stage, turn in PaidCall.objects.filter(job=job).values_list("item_id", "stage", "turn"):
        committed[int(_SERIAL.findall(json.dumps(turn))[-1])] += 1
        stages.setdefault(item, Counter())[stage] += 1
    latest = {key: number for number, key in model.answered.items()}
    for number, times in committed.items():
        if number not in model.answered:
            found.unknown.append(number)
            continue
        if times > 1:
            found.twice.append(number)
        if latest[model.answered[number]] != number:
            found.repeated.append(number)
    kept = GenerationItem.objects.filter(job=job, state=ItemState.KEPT)
    found.incomplete = [pk for pk in kept.values_list("pk", flat=True) if stages.get(pk) != CALLS_A_ROW]
    numbers = {
        "job.kept": job.kept,
        "kept items": kept.count(),
        "rows": DatasetRow.objects.filter(lineage__generation=job.pk).count(),
    }
    if len(set(numbers.values())) > 1:
        found.counts.append(str(numbers))
    by_state = Counter(GenerationItem.objects.filter(job=job).values_list("state", flat=True))
    if (by_state["dropped"], by_state["failed"]) != (job.dropped, job.failed):
        found.counts.append(f"{dict(by_state)}, job {job.dropped} dropped and {job.failed} failed")
    return found


def paid_usd(model: NumberedModel, price: Decimal) -> Decimal:
    """Return what the provider would bill: every answer, whether or not anybody lived to keep it."""
    return price * len(model.answered)
