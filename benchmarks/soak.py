"""Does the memory of web server and worker stay flat under mixed load?

Rounds of the same work: pages of the portal, searches, uploads, exports, and questions asked as the portal asks them, with a
reader on the stream of each answer; half of the answers call tools. After each round, when no job is under way, the memory of
web server and worker is read (USS: what would be free if it ended). Work is counted and not timed, so a busy machine only takes
longer. The first rounds fill caches and pools up and don't count; growth is the slope over the others, by the median of all
pairs (Theil-Sen), which one odd round doesn't move. Told as well: how far memory was from its median after the first ten
minutes, which tables grew, and what the processes logged as errors.

Run: python -m benchmarks.soak [--rounds 10 | --minutes 120] [--requests 500] [--rate 5]. Starts an embedded database of its
own. Bars: web and worker grow by at most 1 MB for each thousand requests, and log no error.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import os
import re
import statistics
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx2
import psutil
import psycopg
from _common import write_result
from _portal import Portal, person
from _stack import database, load, product

MODELS = ("fake-words40-gap50", "fake-search4-varied-words20")
"""One speaks for two seconds, one searches before it speaks."""
CLIENTS = 4
WARM = 3
"""Rounds that don't count."""
WARM_MINUTES = 10
BAR = 1.0
QUESTIONS = ("notice period", "When does the lease end?", "thirty days", "deposit", "first day of the month")


def main() -> None:
    """Measure and write results/soak.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument(
        "--minutes", type=float, help="begin no further round after so long, instead of --rounds"
    )
    parser.add_argument("--requests", type=int, default=500, help="of one round")
    parser.add_argument("--rate", type=float, help="begin at most so many requests a second")
    args = parser.parse_args()
    if args.rounds < WARM + 2:
        parser.error(f"--rounds: give {WARM + 2} or more, since {WARM} don't count")
    before, started = load(), time.monotonic()
    with (
        database() as url,
        product(",".join(MODELS), GROUNDWORK_LOG_FORMAT="json") as (stack, logs),
    ):
        assert stack.web is not None
        assert stack.worker is not None
        world = World(stack.port, args.rate)
        rows: list[dict[str, float]] = []
        sizes: list[dict[str, int]] = []
        began = time.monotonic()
        for number in numbers(args.rounds, args.minutes, started):
            world.work(args.requests)
            world.settle()
            row = {
                "minutes": (time.monotonic() - began) / 60,
                "requests": (number + 1) * args.requests,
                **memory(stack.web.pid, "web"),
                **memory(stack.worker.pid, "worker"),
            }
            rows.append(row)
            sizes.append(table_rows(url))
            print("  ".join(f"{name} {value:.1f}" for name, value in row.items()), flush=True)
        errors = errors_logged(logs)
    grown = {f"{name}_mb_per_1000": slope(rows, f"{name}_uss_mb") for name in ("web", "worker")}
    apart = {f"{name}_apart": apart_most(rows, f"{name}_uss_mb") for name in ("web", "worker")}
    since, until = sizes[min(WARM, len(sizes) - 1)], sizes[-1]
    result = {
        "rounds": rows,
        "kinds": world.counts,
        **grown,
        **apart,
        "errors": errors,
        "tables_grown": {
            name: [since.get(name, 0), count] for name, count in until.items() if count > since.get(name, 0)
        },
        "load_before": before,
        "load_after": load(),
    }
    passed = max(grown.values()) <= BAR and not errors
    print({**grown, **apart, "errors": len(errors), "passed": passed})
    print(write_result("soak", result))
    sys.exit(0 if passed else 1)


def numbers(rounds: int, minutes: float | None, began: float) -> Iterator[int]:
    """Yield the number of each round that there is to be; the minutes count from a moment of the monotonic clock."""
    for number in itertools.count():
        is_over = number >= rounds if minutes is None else time.monotonic() - began >= 60 * minutes
        if is_over and number >= WARM + 2:
            return
        yield number


class World:
    """A workspace with a member who does all of it."""

    def __init__(self, port: int, rate: float | None) -> None:
        from apps.collections.collection.services import collection_create
        from tenancy.scope import tenant_scope

        self.tenant, self.actor, user = person("soak")
        self.portal = Portal(port, self.tenant.slug, user)
        self.base = f"/t/{self.tenant.slug}"
        with tenant_scope(self.tenant.pk):
            self.collection = collection_create(tenant=self.tenant, actor=self.actor, name="Leases").pk
        self.numbers = itertools.count()
        self.gap_s = 1 / rate if rate else 0.0
        self.conversations: list[int] = []
        self.counts: dict[str, int] = {}

    def work(self, requests: int) -> None:
        """Make so many requests, CLIENTS at once, in a fixed order of kinds."""
        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(self._one, self._paced(itertools.islice(self.numbers, requests))))

    def _paced(self, numbers: Iterator[int]) -> Iterator[int]:
        """Yield numbers no faster than the rate; the pool takes each as soon as it comes."""
        for number in numbers:
            time.sleep(self.gap_s)
            yield number

    def _one(self, number: int) -> None:
        kind = ("page", "search", "page", "list", "page", "search", "page", "export", "answer", "page")[
            number % 10
        ]
        if number % 50 == 3:
            kind = "upload"
        getattr(self, f"_{kind}")(number)
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def _get(self, path: str, **params: str) -> httpx2.Response:
        answer = self.portal.http.get(self.base + path, params=params)
        answer.raise_for_status()
        return answer

    def _page(self, number: int) -> None:
        paths = (
            "/chat/projects/",
            "/collections/",
            f"/collections/{self.collection}/",
            "/chat/",
            "/chat/all/",
            "/chat/prompts/",
        )
        self._get(paths[number % len(paths)])

    def _list(self, number: int) -> None:
        self._get(f"/collections/{self.collection}/chunks/", page=str(1 + number % 3))

    def _search(self, number: int) -> None:
        self._get(
            f"/collections/{self.collection}/search/", q=f"{QUESTIONS[number % len(QUESTIONS)]} {number}"
        )

    def _upload(self, number: int) -> None:
        text = "\n\n".join(f"Notice {number}, part {part}: the period is thirty days." for part in range(40))
        answer = self.portal.http.post(
            f"{self.base}/collections/{self.collection}/upload/",
            files={"file": (f"notice-{number}.txt", text.encode(), "text/plain")},
            headers={"X-CSRFToken": self.portal.csrf, "HX-Request": "true"},
        )
        answer.raise_for_status()

    def _answer(self, number: int) -> None:
        from apps.conversations.turns.conversations import conversation_create
        from tenancy.scope import tenant_scope

        model = f"compatible/{MODELS[number // 10 % 2]}"
        with tenant_scope(self.tenant.pk):
            conversation = conversation_create(tenant=self.tenant, actor=self.actor, model=model).pk
        question = f"{QUESTIONS[number % len(QUESTIONS)]}, {number}"
        page = self.portal.post(f"{conversation}/turns/", text=question, client_id=str(uuid.uuid4()))
        found = re.search(rf"{conversation}/runs/(\d+)/stream/", page)
        if found is None:
            raise RuntimeError(f"no stream in the answer to a question: {page[:500]}")
        run = int(found[1])

        async def follow() -> None:
            async for _, piece in self.portal.stream(conversation, run):
                if b"event: end" in piece:
                    return

        asyncio.run(follow())
        self.conversations.append(conversation)

    def _export(self, number: int) -> None:
        if self.conversations:
            chosen = self.conversations[number % len(self.conversations)]
            self._get(f"/chat/{chosen}/export/", form=("docx", "markdown", "json")[number % 3])

    def settle(self) -> None:
        """Wait until no job is queued or running, and what is given back after a quiet time was given back."""
        from jobs.models import Job
        from tenancy.scope import tenant_scope

        with tenant_scope(self.tenant.pk):
            while Job.objects.filter(status__in=("queued", "running")).exists():
                time.sleep(0.2)
        time.sleep(11)  # embedders.kept: quiet for five seconds, looked at every five
        gc.collect()


def memory(pid: int, name: str) -> dict[str, float]:
    """Return USS and PSS of a process and those below it, in MB."""
    top = psutil.Process(pid)
    infos = [process.memory_full_info() for process in (top, *top.children(recursive=True))]
    return {
        f"{name}_uss_mb": sum(i.uss for i in infos) / 1e6,
        f"{name}_pss_mb": sum(i.pss for i in infos) / 1e6,
    }


def apart_most(rows: list[dict[str, float]], name: str) -> float:
    """Return by which share a value was apart from its median at most, after the first ten minutes and rounds."""
    values = [row[name] for row in rows[WARM:] if row["minutes"] >= WARM_MINUTES] or [rows[-1][name]]
    middle = statistics.median(values)
    return max(abs(value - middle) for value in values) / middle


def table_rows(url: str) -> dict[str, int]:
    """Return how many rows each table of the benchmark's database has; the URL is that of the server's superuser."""
    own = urlsplit(url)._replace(path=urlsplit(os.environ["DATABASE_URL"]).path)
    with psycopg.connect(urlunsplit(own)) as line:
        names = [name for (name,) in line.execute("SELECT relname FROM pg_stat_user_tables ORDER BY relname")]
        counted = ((name, line.execute(f'SELECT count(*) FROM "{name}"').fetchone()) for name in names)
        return {name: row[0] for name, row in counted if row is not None}


def errors_logged(logs: Path) -> list[str]:
    """Return the first lines that say of an error in what web server and worker have logged."""
    found = []
    for file in sorted(logs.glob("*.log")):
        for line in file.read_text(errors="replace").splitlines():
            try:
                level = str(json.loads(line).get("level", "")).lower()
            except (ValueError, AttributeError):
                level = "error" if "Traceback" in line else ""
            if level in ("error", "critical"):
                found.append(f"{file.name}: {line[:500]}")
    return found[:50]


def slope(rows: list[dict[str, float]], name: str) -> float:
    """Return how much a value grows with a thousand requests."""
    counted = rows[WARM:]
    pairs = itertools.combinations(counted, 2)
    return statistics.median(1000 * (b[name] - a[name]) / (b["requests"] - a["requests"]) for a, b in pairs)


if __name__ == "__main__":
    main()
