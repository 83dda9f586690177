"""Does search stay fast and right with many tenants, and beside chromadb?

200,000 chunks in 500 collections of 50 tenants, of very different sizes (one of 60,000, three of 10,000, many tiny), each
with 510 characters of text, a vector and weighted terms. Measured: how fast prepared chunks are loaded; the hybrid
search of ``search_run`` (the question's embedding included) in collections of each size, alone and with 20 clients at
once; recall@10 of the vector leg against an exact scan in numpy. With --plain the same vectors and texts go into one table
with one HNSW index, and with --chroma into one chromadb collection in a process of its own; both filter by collection, as
their users do, and are given the question's vector.

Run: python benchmarks/search_scale.py [--fresh] [--plain] [--chroma] [--questions N]. Needs a migrated database; what it loads
stays in tenants of its own and is used again next time unless --fresh is given. --chroma builds a virtual environment
under var/bench-venvs the first time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")

import django  # noqa: E402

django.setup()

import numpy as np  # noqa: E402
from _common import write_result  # noqa: E402
from _scale_load import CHUNKS, DIMENSIONS, SLUG, Words, load  # noqa: E402
from _scale_plain import plain  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from apps.collections.collection import services  # noqa: E402
from apps.collections.embedders.base import EmbeddingSpace, EmbeddingUsage  # noqa: E402
from apps.collections.index import large as indexes  # noqa: E402
from apps.collections.index.embedding import embedder_for  # noqa: E402
from apps.collections.models import Collection  # noqa: E402
from apps.collections.search import run, search_run  # noqa: E402
from jobs.context import JobContext  # noqa: E402
from jobs.models import Job, JobStatus  # noqa: E402
from tenancy.actors import Actor, system_actor  # noqa: E402
from tenancy.database.base import as_login_role  # noqa: E402
from tenancy.models import Tenant  # noqa: E402
from tenancy.scope import platform_scope, tenant_scope  # noqa: E402

CLIENTS = 20


def index(collection: Collection) -> float:
    """Build what the collection lacks, as the worker's job does; return the seconds."""
    with transaction.atomic():
        collection.refresh_from_db()
        if not indexes.indexes_consider(collection):
            return 0.0
    job = Job.objects.filter(kind=indexes.BUILD_KIND, status=JobStatus.QUEUED).latest("pk")
    began = time.perf_counter()
    indexes.indexes_build(JobContext(job), collection_id=collection.pk)
    Job.objects.filter(pk=job.pk).update(status=JobStatus.SUCCEEDED)
    return time.perf_counter() - began


def ask(collection: Collection, actor: Actor, question: str, **extra: Any) -> Any:
    """Search one collection, as the portal and the tools do."""
    with tenant_scope(collection.tenant_id):
        return search_run(
            tenant=collection.tenant, actor=actor, collections=[collection], query=question, **extra
        )


def percentiles(times: list[float]) -> dict[str, float]:
    return {f"p{p}_ms": round(float(np.percentile(times, p)), 1) for p in (50, 95, 99)}


def alone(collection: Collection, questions: list[str]) -> dict[str, float]:
    """Ask one question after the other."""
    actor = system_actor(collection.tenant_id)
    times = []
    for number, question in enumerate([questions[0], *questions]):
        began = time.perf_counter()
        ask(collection, actor, question)
        if number:
            times.append((time.perf_counter() - began) * 1000)
    return percentiles(times)


def together(collection: Collection, questions: list[str], *, every_s: float) -> dict[str, float]:
    """Ask from 20 clients at once, each with a connection of its own, one question every ``every_s`` (0: at once)."""
    times: list[float] = []
    start = threading.Barrier(CLIENTS)

    def client(number: int) -> None:
        actor = system_actor(collection.tenant_id)
        ask(collection, actor, questions[0])
        start.wait()
        due = time.perf_counter() + every_s * number / CLIENTS
        for question in questions[number::CLIENTS]:
            time.sleep(max(0.0, due - time.perf_counter()))
            began = time.perf_counter()
            ask(collection, actor, question)
            times.append((time.perf_counter() - began) * 1000)
            due = max(due + every_s, time.perf_counter())
        connection.close()

    threads = [threading.Thread(target=client, args=(n,)) for n in range(CLIENTS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = len(times) / (time.perf_counter() - began)
    return percentiles(times) | {"per_second": round(rate, 1)}


def recall(collection: Collection, questions: int, *, nearness: float) -> float:
    """Compare the vector leg with an exact scan of what is stored.

    Args:
        nearness: cosine of a question's vector to that of a chunk of the collection. A question about a passage has .5
            and more with a real embedder; 0 is one that has nothing to do with anything here, where all chunks are
            about as far and "nearest" means little: the hardest case for a graph.
    """
    actor = system_actor(collection.tenant_id)
    with tenant_scope(collection.tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT chunk_id, vector::text FROM collections_embedding WHERE collection_id = %s AND space_id = %s",
            [collection.pk, collection.space_id],
        )
        rows = cursor.fetchall()
    ids = np.array([row[0] for row in rows])
    stored = np.array([np.fromstring(row[1][1:-1], sep=",") for row in rows])
    rng = np.random.default_rng(17)
    shares = []
    for _ in range(questions):
        about = stored[rng.integers(0, len(stored))]
        noise = rng.normal(size=DIMENSIONS)
        noise -= noise @ about * about
        asked = nearness * about + (1 - nearness**2) ** 0.5 * noise / np.linalg.norm(noise)
        asked = asked.astype(np.float16).astype(np.float64)
        with mock.patch.object(run, "embedder_for", return_value=_Given(asked)):
            hits = ask(collection, actor, "anything", legs=("vector",)).hits
        best = ids[np.argsort(-(stored @ asked))[: len(hits)]]
        shares.append(len({h.chunk_id for h in hits} & set(best.tolist())) / max(1, len(hits)))
    return round(float(np.mean(shares)), 4)


class _Given:
    """An embedder whose question has the vector it was given."""

    usage = EmbeddingUsage()

    def __init__(self, vector: Any) -> None:
        self._vector = vector
        self.space = EmbeddingSpace("local", "given", DIMENSIONS, "given")

    def embed_query(self, text: str) -> Any:
        return self._vector


def cpu_ms(collection: Collection, questions: list[str]) -> dict[str, float]:
    """Tell the processor time of a search, in this process and in the database's: what load does not blur."""
    actor = system_actor(collection.tenant_id)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        stat = Path(f"/proc/{cursor.fetchone()[0]}/stat")
    if not stat.exists():
        return {}

    def backend() -> float:
        fields = stat.read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    here, there = time.process_time(), backend()
    for question in questions:
        ask(collection, actor, question)
    count = len(questions) / 1000
    return {
        "python": round((time.process_time() - here) / count, 2),
        "database": round((backend() - there) / count, 2),
    }


def tenant_wide(tenant_id: int, questions: list[str]) -> dict[str, Any]:
    """Ask all collections of a tenant at once, one question after the other."""
    with tenant_scope(tenant_id):
        tenant = Tenant.objects.get(pk=tenant_id)
        sizes = list(Collection.objects.values_list("chunk_total", flat=True))
    times = []
    for question in questions:
        began = time.perf_counter()
        with tenant_scope(tenant_id):
            search_run(tenant=tenant, actor=system_actor(tenant_id), collections=None, query=question)
        times.append((time.perf_counter() - began) * 1000)
    return percentiles(times) | {"collections": len(sizes), "chunks": sum(sizes)}


def chosen() -> dict[str, Collection]:
    """Return one collection of each size."""
    found: dict[str, Collection] = {}
    with platform_scope():
        rows = list(
            Collection.objects.select_related("space", "tenant")
            .filter(tenant__slug__startswith=SLUG)
            .order_by("-chunk_total")
        )
    for label, wanted in (("60k", 60_000), ("10k", 10_000), ("2k", 2_000), ("200", 200), ("50", 50)):
        found[label] = min(rows, key=lambda c: abs(c.chunk_total - wanted))
    return found


def fresh() -> bool:
    with platform_scope():
        return not Tenant.objects.filter(slug__startswith=SLUG).exists()


def empty() -> None:
    with platform_scope():
        tenants = list(Tenant.objects.filter(slug__startswith=SLUG))
    for tenant in tenants:
        with tenant_scope(tenant.pk):
            for collection in Collection.objects.all():
                services.collection_delete(
                    tenant=tenant, actor=system_actor(tenant.pk), collection=collection
                )
            Job.objects.all().delete()
        with platform_scope():
            tenant.delete()


def question_vectors(questions: list[str]) -> Any:
    """Embed questions, a row each, for those that are given vectors."""
    one = chosen()["10k"]
    with tenant_scope(one.tenant_id):
        embedder = embedder_for(one.space, tenant=one.tenant)
    return np.array([embedder.embed_query(question) for question in questions])


def chroma(questions: Any) -> dict[str, Any]:
    """Put the same chunks into one chromadb collection, in a virtual environment of its own, and ask it.

    Args:
        questions: their vectors, one a row.
    """
    python = ROOT / "var" / "bench-venvs" / "chroma" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "chromadb"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        with platform_scope(), connection.cursor() as cursor:
            cursor.execute(
                "SELECT e.chunk_id, e.tenant_id, e.collection_id, e.vector::text, c.text "
                "FROM collections_embedding e JOIN collections_chunk c ON c.id = e.chunk_id "
                "JOIN tenancy_tenant t ON t.id = e.tenant_id WHERE t.slug LIKE %s ORDER BY e.chunk_id",
                [SLUG + "%"],
            )
            rows = cursor.fetchall()
        np.save(target / "v.npy", np.array([np.fromstring(r[3][1:-1], sep=",") for r in rows], np.float32))
        (target / "rows.json").write_text(json.dumps([[r[0], r[1], r[2], r[4]] for r in rows]))
        scopes = {label: c.pk for label, c in chosen().items()}
        np.save(target / "q.npy", questions)
        (target / "scopes.json").write_text(json.dumps(scopes))
        done = subprocess.run(
            [python, Path(__file__).with_name("search_scale_chroma.py"), target],
            check=True,
            capture_output=True,
            text=True,
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fresh", action="store_true", help="load again")
    parser.add_argument("--chroma", action="store_true", help="measure chromadb beside it")
    parser.add_argument("--plain", action="store_true", help="measure pgvector used plainly beside it")
    parser.add_argument("--questions", type=int, default=200, help="asked for each figure")
    options = parser.parse_args()
    rng = np.random.default_rng(11)
    words = Words(rng)
    result: dict[str, Any] = {"load_average": os.getloadavg()[0], "chunks": CHUNKS}
    if options.fresh:
        empty()
    if fresh():
        result["loaded_per_second"] = load(rng, words)
        print("prepared chunks loaded per second:", result["loaded_per_second"])
        with as_login_role(), connection.cursor() as cursor:
            cursor.execute(
                "VACUUM ANALYZE collections_chunk, collections_embedding, collections_chunkterms, "
                "collections_termfrequency, collections_document"
            )
    found = chosen()
    result["index_s"] = {}
    with platform_scope():
        large = list(
            Collection.objects.select_related("space", "tenant").filter(
                tenant__slug__startswith=SLUG, chunk_total__gte=indexes.HNSW_MIN
            )
        )
    for collection in large:
        with tenant_scope(collection.tenant_id):
            taken = round(index(collection), 1)
        result["index_s"][f"{collection.pk} ({collection.chunk_total})"] = taken
    print(f"indexes built in {result['index_s']} s")
    result["collections"] = table = {}
    print(
        f"\n{'collection':>10} {'chunks':>7}  p50    p95 ms alone | p50    p95 ms, 20 clients at 1/s | at once, per s | recall@10, foreign | CPU ms python, database"
    )
    for label, collection in found.items():
        # Questions that nobody asked before, so that nothing is kept from an earlier answer.
        asked = [[words.question() for _ in range(options.questions)] for _ in range(4)]
        row = {
            "chunks": collection.chunk_total,
            "alone": alone(collection, asked[0]),
            "clients_20": together(collection, asked[1], every_s=1.0),
            "clients_20_at_once": together(collection, asked[2], every_s=0.0),
            "vector_recall_at_10": recall(collection, 100, nearness=0.6),
            "vector_recall_at_10_of_foreign_questions": recall(collection, 50, nearness=0.0),
            "cpu_ms": cpu_ms(collection, asked[3]),
        }
        table[label] = row
        print(
            f"{label:>10} {row['chunks']:>7}  {row['alone']['p50_ms']:5.1f} {row['alone']['p95_ms']:6.1f}          | "
            f"{row['clients_20']['p50_ms']:5.1f} {row['clients_20']['p95_ms']:6.1f}                    | "
            f"{row['clients_20_at_once']['per_second']:7.1f}        | {row['vector_recall_at_10']}  "
            f"{row['vector_recall_at_10_of_foreign_questions']} | {row['cpu_ms']}",
            flush=True,
        )
    whole = found["10k"]
    result["tenant_of_the_10k"] = tenant_wide(whole.tenant_id, [words.question() for _ in range(100)])
    print("all collections of its tenant:", result["tenant_of_the_10k"])
    result["load_average_after"] = os.getloadavg()[0]
    questions = question_vectors([words.question() for _ in range(50)])
    if options.plain:
        scopes = {label: collection.pk for label, collection in found.items()}
        result["plain"] = plain(SLUG, scopes, questions)
        print("pgvector used plainly:", json.dumps(result["plain"], indent=1))
    if options.chroma:
        result["chroma"] = chroma(questions)
        print("chromadb:", json.dumps(result["chroma"], indent=1))
    print("written:", write_result("search_scale", result).relative_to(ROOT))


if __name__ == "__main__":
    main()
