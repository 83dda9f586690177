"""Does search go on, right and fast, while a collection of 50,000 chunks moves to another embedding model?

The collection is loaded as prepared chunks. Its live space and the next one have synthetic embedders (a text's vector is
drawn from its hash), so that the minutes go into what is measured and not into a model: vectors are made, written, indexed
and compared by the product's own job, while a client asks 5 questions a second with a connection of its own. Then the swap
is switched, undone, done again and ended. Bars: no failed and no empty search; the switch and its undoing are single
short transactions; searches right after the switch are as fast as before it, through a graph of the new space.

Run: python benchmarks/swap.py [--chunks N]. Makes a database of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import threading
import time
from typing import Any

import numpy as np
from _common import write_result
from _stack import database, load

PER_SECOND, DIMENSIONS, PER_DOCUMENT = 5, 384, 1_000


class HashEmbedder:
    """A text's vector is drawn from its hash; another salt gives another space."""

    def __init__(self, salt: str) -> None:
        self._salt = salt

    def embed_documents(self, texts: Any, *, on_progress: Any = None) -> Any:
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> Any:
        return self._vector(text)

    def _vector(self, text: str) -> Any:
        seed = int.from_bytes(hashlib.blake2b((self._salt + text).encode(), digest_size=8).digest())
        values = np.random.default_rng(seed).standard_normal(DIMENSIONS, dtype=np.float32)
        return values / np.linalg.norm(values)


class Client(threading.Thread):
    """Asks at a steady pace and notes for each answer when it began, how long it took, and whether it was good."""

    def __init__(self, ask: Any) -> None:
        super().__init__()
        self._ask, self._stopped = ask, threading.Event()
        self.answers: list[tuple[float, float, str]] = []

    def run(self) -> None:
        from django.db import connection

        due = time.perf_counter()
        number = 0
        while not self._stopped.is_set():
            time.sleep(max(0.0, due - time.perf_counter()))
            began = time.perf_counter()
            try:
                outcome = self._ask(number)
            except Exception as error:  # noqa: BLE001 - a failed search is what is counted
                outcome = f"failed: {error!r}"
            self.answers.append((began, (time.perf_counter() - began) * 1000, outcome))
            number += 1
            due += 1 / PER_SECOND
        connection.close()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def between(self, start: float, end: float) -> dict[str, Any]:
        """Summarise the searches that began in a stretch of time."""
        own = [answer for answer in self.answers if start <= answer[0] < end]
        times = [ms for _, ms, _ in own] or [0.0]
        return {
            "searches": len(own),
            "bad": [outcome for _, _, outcome in own if outcome != "good"],
            "p50_ms": round(float(np.percentile(times, 50)), 1),
            "p95_ms": round(float(np.percentile(times, 95)), 1),
            "max_ms": round(max(times), 1),
        }


def main() -> None:
    """Measure and write results/swap.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=50_000)
    options = parser.parse_args()
    before = load()
    with database():
        result = measure(options.chunks)
    result |= {"load_before": before, "load_after": load()}
    for name, row in result["stretches"].items():
        print(
            f"{name:28} {row['searches']:5} searches, p50 {row['p50_ms']:6.1f} p95 {row['p95_ms']:6.1f} "
            f"max {row['max_ms']:7.1f} ms, bad {len(row['bad'])}"
        )
    for name in ("build_s", "switch_ms", "undo_ms", "bad"):
        print(f"{name:28} {result[name]}")
    print("written:", write_result("swap", result).name)


def measure(chunks: int) -> dict[str, Any]:
    """Load, swap under searches, and return what was seen."""
    from unittest import mock

    from apps.collections.collection import swaps
    from apps.collections.models import Collection, EmbeddingSpace, SearchIndex, SpaceSwap
    from apps.collections.search import search_run
    from jobs.runner import run_here
    from tenancy.actors import system_actor
    from tenancy.scope import tenant_scope
    from tests.factories import make_tenant

    tenant = make_tenant()
    who: dict[str, Any] = {"tenant": tenant, "actor": system_actor(tenant.pk)}
    spaces = [
        EmbeddingSpace.objects.create(
            provider="benchmark", model=name, dimensions=DIMENSIONS, fingerprint=name
        )
        for name in ("old", "new")
    ]
    embedders = {space.pk: HashEmbedder(space.model) for space in spaces}

    def embedder_for(space: EmbeddingSpace, *, tenant: Any) -> HashEmbedder:
        return embedders[space.pk]

    patches = [
        mock.patch(f"{module}.embedder_for", embedder_for)
        for module in ("apps.collections.index.spaces", "apps.collections.search.run")
    ] + [mock.patch("apps.collections.collection.swaps.space_for", return_value=spaces[1])]
    for patch in patches:
        patch.start()
    with tenant_scope(tenant.pk):
        collection, texts = fill(who, spaces[0], embedders[spaces[0].pk], chunks)
        indexed(collection)

        def ask(number: int) -> str:
            with tenant_scope(tenant.pk):
                row = Collection.objects.select_related("space").get(pk=collection.pk)
                # A chunk's own text is its nearest in either space: anything else first is a wrong answer.
                place = number * 7919 % len(texts)
                found = search_run(**who, collections=[row], query=texts[place][:4000])
            if not found.hits or found.note:
                return f"empty: {found.note}"
            return "good" if found.hits[0].text == texts[place] else "wrong first passage"

        client = Client(ask)
        client.start()
        marks = {"start": time.perf_counter()}
        time.sleep(10)
        marks["build"] = time.perf_counter()
        swap = swaps.swap_start(**who, collection=collection, embedder="benchmark/new")
        run_here(tenant.pk, swap.job_id)
        marks["built"] = time.perf_counter()
        swap = SpaceSwap.objects.get(pk=swap.pk)
        if swap.status != SpaceSwap.Status.READY:
            raise SystemExit(f"the swap is {swap.status}: {swap.error_message}")
        times: dict[str, list[float]] = {"switch": [], "undo": []}
        swap = timed(times["switch"], swaps.swap_switch, who, swap)
        marks["switched"] = time.perf_counter()
        time.sleep(10)
        marks["undo"] = time.perf_counter()
        swap = timed(times["undo"], swaps.swap_undo, who, swap)
        run_here(tenant.pk, swap.job_id)  # the new vectors go
        marks["undone"] = time.perf_counter()
        time.sleep(10)
        client.stop()
        end = time.perf_counter()
        graphs = list(SearchIndex.objects.filter(kind="graph").values_list("space__model", flat=True))
    for patch in patches:
        patch.stop()
    stretches = {
        "before": client.between(marks["start"], marks["build"]),
        "while vectors are made": client.between(marks["build"], marks["built"]),
        "after the switch": client.between(marks["built"], marks["undo"]),
        "while the new ones are removed": client.between(marks["undo"], marks["undone"]),
        "after its undoing": client.between(marks["undone"], end + 1),
    }
    return {
        "chunks": chunks,
        "embedders": "synthetic, drawn from the text's hash",
        "build_s": round(marks["built"] - marks["build"], 1),
        "switch_ms": round(times["switch"][0], 1),
        "undo_ms": round(times["undo"][0], 1),
        "comparison": swap.comparison,
        "graphs_at_the_end": graphs,
        "stretches": stretches,
        "bad": sum(len(row["bad"]) for row in stretches.values()),
    }


def timed(times: list[float], service: Any, who: dict[str, Any], swap: Any) -> Any:
    began = time.perf_counter()
    swap = service(**who, swap=swap)
    times.append((time.perf_counter() - began) * 1000)
    return swap


def fill(who: dict[str, Any], space: Any, embedder: HashEmbedder, chunks: int) -> tuple[Any, list[str]]:
    """Make a collection in a space with so many chunks; return it and its texts."""
    from django.db import transaction
    from django.utils import timezone

    from apps.collections.collection import services
    from apps.collections.index import terms
    from apps.collections.index.spaces import vectors_write
    from apps.collections.ingestion.types import ChunkDraft
    from apps.collections.models import Chunk, Collection, Document, Stage
    from apps.collections.storage.rows import chunks_write

    rng = np.random.default_rng(7)
    words = [f"{a}{b}o" for a in "bdfgklmnprst" for b in ("ana", "ele", "imi", "oro", "udu", "eni")]
    collection = services.collection_create(**who, name="Swap")
    Collection.objects.filter(pk=collection.pk).update(space=space)
    texts: list[str] = []
    for start in range(0, chunks, PER_DOCUMENT):
        own = [
            f"Passage p{start + i}x of many. "
            + " ".join(words[int(w)] for w in rng.integers(0, len(words), 60))
            for i in range(min(PER_DOCUMENT, chunks - start))
        ]
        document = Document.objects.create(
            tenant_id=who["tenant"].pk,
            collection=collection,
            name=f"d{start}",
            path=f"d{start}",
            live_from=timezone.now(),
            media_type="text/plain",
            size=0,
            is_paged=False,
            sha256=f"{start:064d}",
            file="none",
            status="ready",
            stage=Stage.INDEX,
            chunk_count=len(own),
            vector_count=len(own),
            lexical_count=len(own),
        )
        with transaction.atomic():
            chunks_write(document, [ChunkDraft(i, t, 0, len(t), 1, 1) for i, t in enumerate(own)])
            pks = list(Chunk.objects.filter(document=document).order_by("index").values_list("pk", flat=True))
            vectors_write(
                tenant_id=document.tenant_id,
                collection_id=collection.pk,
                space_id=space.pk,
                chunk_ids=pks,
                document_ids=[document.pk] * len(pks),
                vectors=embedder.embed_documents(own),
            )
            locked = Collection.objects.select_for_update().get(pk=collection.pk)
            tokens = [terms.chunk_tokenise(pk, text) for pk, text in zip(pks, own, strict=True)]
            terms.document_index(collection=locked, document_id=document.pk, chunks=tokens)
        texts += own
    return Collection.objects.select_related("space", "tenant").get(pk=collection.pk), texts


def indexed(collection: Any) -> None:
    """Build the indexes of the collection, as the worker's job does."""
    from django.db import transaction

    from apps.collections.index import large as indexes
    from jobs.models import Job
    from jobs.runner import run_here

    with transaction.atomic():
        indexes.indexes_consider(collection)
    job = Job.objects.filter(kind=indexes.BUILD_KIND, status="queued").latest("pk")
    run_here(collection.tenant_id, job.pk)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
