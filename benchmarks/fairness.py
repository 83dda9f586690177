"""Does a long document leave room for small ones? A 50 MB text under way, 1 KB files uploaded beside it all the while.

Web server and worker run as ``up`` runs them (two worker processes), on a database of their own. The text is ingested
twice: alone, and with a 1 KB file every few seconds, in turn to the same collection, to another one of the workspace,
and to another workspace. A file's wait is from its upload's commit to the commit that opened it to search. The large
one's cost is told in wall time and in processor seconds of the worker with all its children; those of the small files
are in the second figure too, and are also told apart, by ingesting as many of them alone.

``remote`` has an embedding server of its own behind real sockets, which answers at once: so all stages of the text are
seen in minutes. ``local`` uses the product's own model, for which 50 MB are half an hour: after the other stages the
embedding is compared over a window of time (--window), in chunks per second and per processor second.

Bars: every small file ready within 5 s; the large one at most 10 % slower (processor seconds; wall time is printed).

Run: python benchmarks/fairness.py [--embedder remote|local] [--megabytes 50] [--every 3] [--window 60].
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from _common import write_result
from _stack import database, load, percentile, product

READY_S, SLOWER = 5.0, 0.10
DIMENSIONS = 512
WHERE = ("same collection", "same workspace", "other workspace")


class Vectors(BaseHTTPRequestHandler):
    """An embedding server: one vector for all texts, made once."""

    protocol_version = "HTTP/1.1"
    _vector = base64.b64encode(
        struct.pack(f"<{DIMENSIONS}f", *(1 + n % 7 for n in range(DIMENSIONS)))
    ).decode()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        data = [
            {"object": "embedding", "index": n, "embedding": self._vector} for n in range(len(asked["input"]))
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        body = json.dumps({"object": "list", "data": data, "model": asked["model"], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""


@contextlib.contextmanager
def vectors() -> Iterator[str]:
    """Run the embedding server in this process; yields its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vectors)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def prose(size: int, seed: int) -> bytes:
    """Return so many bytes of sentences over a vocabulary in which words are as unequally frequent as in English."""
    drawn = random.Random(seed)
    letters = "abcdefghijklmnoprstuvw"
    words = ["".join(drawn.choices(letters, k=drawn.randint(3, 10))) for _ in range(30_000)]
    weights, total = [], 0.0
    for rank in range(len(words)):
        total += 1 / (rank + 5)
        weights.append(total)
    parts, length = [], 0
    while length < size:
        said = [
            " ".join(drawn.choices(words, cum_weights=weights, k=drawn.randint(8, 20))).capitalize()
            for _ in range(5)
        ]
        code = f"See 8471.{drawn.randint(10, 99)}.{drawn.randint(1000, 9999)}. "
        parts.append(code + ". ".join(said) + ".\n\n")
        length += len(parts[-1])
    return "".join(parts).encode()[:size]


@dataclass
class Run:
    """What one ingestion of the large text took."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    timings: dict[str, float] = field(default_factory=dict)
    window: dict[str, float] = field(default_factory=dict)
    small: list[dict[str, Any]] = field(default_factory=list)


def cpu_seconds(pid: int) -> float:
    """Return the processor seconds of a process with all that are or were below it."""
    import psutil

    total = 0.0
    process = psutil.Process(pid)
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = one.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


class Site:
    """Two workspaces and the running product."""

    def __init__(self, stack: Any) -> None:
        from tests.cast import make_cast

        self.stack = stack
        self.casts = {"same": make_cast(), "other": make_cast()}
        self._numbers = 0
        self.idle = 0.0

    def collection(self, whose: str) -> Any:
        """Make a collection with the product's default embedder."""
        from apps.collections.collection.services import collection_create
        from tenancy.scope import tenant_scope

        cast = self.casts[whose]
        self._numbers += 1
        with tenant_scope(cast.tenant.pk):
            return collection_create(
                tenant=cast.tenant, actor=cast.actor("member"), name=f"Number {self._numbers}"
            )

    def upload(self, whose: str, collection: Any, name: str, data: bytes) -> int:
        """Upload as a member does; returns the document's id."""
        from apps.collections.documents.services import document_upload
        from tenancy.scope import tenant_scope

        cast = self.casts[whose]
        with tenant_scope(cast.tenant.pk):
            return document_upload(
                tenant=cast.tenant,
                actor=cast.actor("member"),
                collection=collection,
                name=name,
                chunks=[data],
            ).document.pk

    def row(self, pk: int) -> Any:
        """Read a document."""
        from apps.collections.models import Document
        from tenancy.scope import platform_scope

        with platform_scope():
            return Document.objects.get(pk=pk)

    def cpu(self) -> float:
        """Return the processor seconds of the worker so far, without what it takes when nothing is to be done."""
        return cpu_seconds(self.stack.worker.pid) - self.idle * time.monotonic()

    def idle_measure(self, seconds: float) -> None:
        """Find out how many processor seconds a second an idle worker takes."""
        began, cpu = time.monotonic(), cpu_seconds(self.stack.worker.pid)
        time.sleep(seconds)
        self.idle = (cpu_seconds(self.stack.worker.pid) - cpu) / (time.monotonic() - began)


def ingest(site: Site, text: bytes, *, every: float, window: float) -> Run:
    """Ingest the text in a new collection, with small files beside it if ``every`` seconds is not 0.

    Args:
        window: stop when so many seconds of embedding were seen; 0 waits for the end.
    """
    from apps.collections.documents.services import document_cancel
    from tenancy.scope import tenant_scope

    run = Run()
    collections = {
        "same collection": ("same", site.collection("same")),
        "same workspace": ("same", site.collection("same")),
        "other workspace": ("other", site.collection("other")),
    }
    began, cpu = time.monotonic(), site.cpu()
    large = site.upload("same", collections["same collection"][1], "large.txt", text)
    small: list[tuple[str, str, int]] = []
    due, first = time.monotonic() + 0.3, None
    while True:
        row = site.row(large)
        now = time.monotonic()
        if row.status not in ("queued", "processing"):
            break
        if window and row.stage == "embed" and row.vector_count:
            if first is None:
                first = (now, site.cpu(), row.vector_count)
            elif now - first[0] >= window:
                break
        if every and now >= due:
            due = now + every * (0.7 + 0.6 * random.random())
            where = WHERE[len(small) % 3]
            whose, collection = collections[where]
            data = prose(1000, 1000 + len(small))
            pk = site.upload(whose, collection, f"small {len(small)}.txt", data)
            small.append((where, f"{row.status} {row.stage}", pk))
        time.sleep(0.1)
    run.seconds, run.cpu_s = time.monotonic() - began, site.cpu() - cpu
    row = site.row(large)
    run.timings = row.timings
    if first is not None:
        chunks, seconds = row.vector_count - first[2], time.monotonic() - first[0]
        run.window = {
            "chunks": chunks,
            "seconds": seconds,
            "per_second": chunks / seconds,
            "per_cpu_second": chunks / max(0.01, site.cpu() - first[1]),
        }
        with tenant_scope(row.tenant_id):
            cast = site.casts["same"]
            document_cancel(tenant=cast.tenant, actor=cast.actor("member"), document=row)
    elif row.status != "ready":
        raise SystemExit(f"the large text ended {row.status}: {row.error_message}")
    for where, stage, pk in small:
        until = time.monotonic() + 60
        while (row := site.row(pk)).finished_at is None and time.monotonic() < until:
            time.sleep(0.1)
        waited = None if row.finished_at is None else (row.finished_at - row.created_at)
        run.small.append(
            {
                "where": where,
                "large": stage,
                "status": row.status,
                "seconds": None if waited is None else waited.total_seconds(),
            }
        )
    return run


def small_alone(site: Site, count: int) -> float:
    """Return the processor seconds that so many small files take one after the other, with nothing beside them."""
    collection, cpu = site.collection("other"), site.cpu()
    for number in range(count):
        pk = site.upload("other", collection, f"alone {number}.txt", prose(1000, 5000 + number))
        while site.row(pk).finished_at is None:
            time.sleep(0.05)
    return site.cpu() - cpu


def report(run: Run) -> bool:
    """Print the waits of the small files; tell whether all were ready in time."""
    print(f"\n{'1 KB file in the':18}{'files':>6}{'median s':>10}{'worst s':>9}")
    worst = 0.0
    for where in WHERE:
        mine = [one["seconds"] for one in run.small if one["where"] == where]
        known = [seconds for seconds in mine if seconds is not None]
        worst = max([worst, *known, *([999.0] if len(known) < len(mine) else [])])
        if known:
            print(f"{where:18}{len(mine):6}{percentile(known, 0.5):10.2f}{max(known):9.2f}")
    print(f"\n{'large one in':22}{'files':>6}{'worst s':>9}")
    for stage in dict.fromkeys(one["large"] for one in run.small):
        known = [one["seconds"] or 999.0 for one in run.small if one["large"] == stage]
        print(f"{stage:22}{len(known):6}{max(known):9.2f}")
    return worst <= READY_S and all(one["status"] == "ready" for one in run.small)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embedder", choices=["remote", "local"], default="remote")
    parser.add_argument("--megabytes", type=float, default=50.0)
    parser.add_argument("--every", type=float, default=3.0, help="seconds between small files")
    parser.add_argument("--window", type=float, default=60.0, help="seconds of embedding (local)")
    options = parser.parse_args()
    window = options.window if options.embedder == "local" else 0.0
    text = prose(int(options.megabytes * 1_000_000), 1)
    with contextlib.ExitStack() as stack:
        settings = {"GROUNDWORK_EMBEDDER": "minilm"}
        if options.embedder == "remote":
            settings = {
                "GROUNDWORK_EMBEDDER": f"openai/text-embedding-3-small@{DIMENSIONS}",
                "OPENAI_API_KEY": "sk-benchmark",
                "OPENAI_BASE_URL": stack.enter_context(vectors()),
                "GROUNDWORK_ALLOW_PRIVATE_MODEL_URLS": "1",
            }
        os.environ.update(settings)
        stack.enter_context(database())
        running, _ = stack.enter_context(product("fake-words10", **settings))
        site = Site(running)
        small_alone(site, 2)  # models and imports are loaded
        site.idle_measure(20)
        before = load()
        alone = ingest(site, text, every=0, window=window)
        print(f"alone: {alone.seconds:.1f} s, {alone.cpu_s:.1f} CPU s, load {before} to {load()}")
        print({stage: round(seconds, 1) for stage, seconds in alone.timings.items()})
        beside = ingest(site, text, every=options.every, window=window)
        print(f"with small files: {beside.seconds:.1f} s, {beside.cpu_s:.1f} CPU s, load {load()}")
        print({stage: round(seconds, 1) for stage, seconds in beside.timings.items()})
        is_quick = report(beside)
        own = small_alone(site, 10) / 10 * len(beside.small)
        if window:
            wall = alone.window["per_second"] / beside.window["per_second"] - 1
            cpu = alone.window["per_cpu_second"] / beside.window["per_cpu_second"] - 1
            print(f"\nembedding alone {alone.window}\nwith small files {beside.window}")
        else:
            wall = beside.seconds / alone.seconds - 1
            cpu = (beside.cpu_s - own) / alone.cpu_s - 1
        print(f"\nthe large one: wall {wall:+.1%}, processor {cpu:+.1%} (small files: {own:.1f} CPU s)")
        passed = is_quick and cpu <= SLOWER
        print("bars met" if passed else "BARS MISSED")
        write_result(
            f"fairness_{options.embedder}",
            {
                "megabytes": options.megabytes,
                "passed": passed,
                "slower_wall": wall,
                "slower_cpu": cpu,
                "small_cpu_s": own,
                "load_before": before,
                "load_after": load(),
                "alone": vars(alone),
                "beside": vars(beside),
            },
        )
        return 0 if passed else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main())
