"""How well and how fast does the product's own search find passages?

1. SciFact (BEIR): 5,183 abstracts embedded and indexed by the product's pipeline stages, 300 claims asked through
   ``search_run``, nDCG@10 and recall@10 per leg and fused. One abstract is one chunk, as the benchmark defines.
2. Latency: a synthetic tenant of 100,000 chunks in ten collections, questions asked through ``search_run``, the
   embedding of the question included. Recall of the vector leg against an exact float32 scan in numpy.

Run: python benchmarks/search.py [--only scifact|latency] [--fresh]. Needs a migrated database (DATABASE_URL or the
embedded one); what it loads stays in tenants of its own and is used again next time unless --fresh is given.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")

import django  # noqa: E402

django.setup()

import lexical as scifact  # noqa: E402
import numpy as np  # noqa: E402
from _common import shared_data, write_result  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402
from pgvector import HalfVector  # noqa: E402

from apps.collections.collection import services  # noqa: E402
from apps.collections.index import terms  # noqa: E402
from apps.collections.index.embedding import embedder_for  # noqa: E402
from apps.collections.ingestion.types import ChunkDraft  # noqa: E402
from apps.collections.models import Chunk, Collection, Document, Stage  # noqa: E402
from apps.collections.pipeline import run as pipeline  # noqa: E402
from apps.collections.search import LEGS, search_run  # noqa: E402
from apps.collections.storage.bulk import rows_copy  # noqa: E402
from apps.collections.storage.rows import chunks_write  # noqa: E402
from jobs.context import JobContext  # noqa: E402
from jobs.models import Job, JobStatus  # noqa: E402
from tenancy.actors import Actor, system_actor  # noqa: E402
from tenancy.database.base import as_login_role  # noqa: E402
from tenancy.models import Tenant  # noqa: E402
from tenancy.scope import platform_scope, tenant_scope  # noqa: E402

PER_COLLECTION, COLLECTIONS, PER_DOCUMENT = 10_000, 10, 500


def tenant_of(slug: str, *, is_fresh: bool) -> tuple[Tenant, Actor, bool]:
    """Return a benchmark's tenant, its actor, and whether it has to be filled."""
    if is_fresh:
        with platform_scope():
            for tenant in Tenant.objects.filter(slug=slug):
                with tenant_scope(tenant.pk):
                    for collection in Collection.objects.all():
                        services.collection_delete(
                            tenant=tenant, actor=system_actor(tenant.pk), collection=collection
                        )
    tenant, _ = Tenant.objects.get_or_create(slug=slug, defaults={"name": slug})
    with tenant_scope(tenant.pk):
        return tenant, system_actor(tenant.pk), not Document.objects.filter(status="ready").exists()


def document_make(tenant: Tenant, collection: Collection, name: str, drafts: list[ChunkDraft]) -> Document:
    """Make a document whose chunks are given: it stands before the embed stage."""
    with transaction.atomic():
        job = Job.objects.create(
            tenant=tenant, kind="collections.document_ingest", status=JobStatus.RUNNING, worker="benchmark"
        )
        document = Document.objects.create(
            tenant=tenant,
            collection=collection,
            name=name,
            path=name,
            live_from=timezone.now(),
            media_type="text/plain",
            size=0,
            is_paged=False,
            sha256=name.rjust(64, "0"),
            file="none",
            job=job,
            status="processing",
            stage=Stage.EMBED,
            chunk_count=len(drafts),
        )
        chunks_write(document, drafts)
    return document


def draft(index: int, text: str, **metadata: Any) -> ChunkDraft:
    return ChunkDraft(index, text, 0, len(text), 1, 1, metadata=metadata)


def scifact_run(is_fresh: bool) -> dict[str, Any]:
    corpus, questions, relevant = scifact.load(shared_data() / "retrieval-scifact" / "scifact.zip")
    tenant, actor, is_empty = tenant_of("benchmark-scifact", is_fresh=is_fresh)
    with tenant_scope(tenant.pk):
        if is_empty:
            collection = services.collection_create(tenant=tenant, actor=actor, name="SciFact")
            drafts = [draft(i, text, key=key) for i, (key, text) in enumerate(corpus.items())]
            document = document_make(tenant, collection, "corpus", drafts)
            job = Job.objects.get(pk=document.job_id)
            began = time.perf_counter()
            pipeline.document_ingest(JobContext(job), document_id=document.pk)
            print(f"embedded and indexed {len(corpus)} abstracts in {time.perf_counter() - began:.0f} s")
            analyse()
        collection = Collection.objects.select_related("space").get(name="SciFact")
        keys = {c.pk: c.metadata["key"] for c in Chunk.objects.filter(collection=collection)}
        table: dict[str, Any] = {}
        print(f"\n{'legs':28} nDCG@10  recall@10  p50 ms  p95 ms")
        for legs in (("lexical",), ("vector",), ("lexical", "vector"), LEGS):
            gains, recalls, times = [], [], []
            for key, question in questions.items():
                began = time.perf_counter()
                result = search_run(
                    tenant=tenant, actor=actor, collections=[collection], query=question, k=10, legs=legs
                )
                times.append((time.perf_counter() - began) * 1000)
                found = [keys[h.chunk_id] for h in result.hits]
                wanted = relevant[key]
                gains.append(ndcg(found, wanted))
                recalls.append(len(set(found) & set(wanted)) / len(wanted))
            row = {
                "ndcg_at_10": round(float(np.mean(gains)), 4),
                "recall_at_10": round(float(np.mean(recalls)), 4),
                **percentiles(times),
            }
            table["+".join(legs)] = row
            print(
                f"{'+'.join(legs):28} {row['ndcg_at_10']:.4f}   {row['recall_at_10']:.4f}    "
                f"{row['p50_ms']:6.1f}  {row['p95_ms']:6.1f}"
            )
    return {"documents": len(corpus), "questions": len(questions), "legs": table}


def ndcg(found: list[str], wanted: dict[str, int], k: int = 10) -> float:
    gain = sum(1 / np.log2(i + 2) for i, key in enumerate(found[:k]) if key in wanted)
    ideal = sum(1 / np.log2(i + 2) for i in range(min(k, len(wanted))))
    return float(gain / ideal)


def percentiles(times: list[float]) -> dict[str, float]:
    return {f"p{p}_ms": round(float(np.percentile(times, p)), 1) for p in (50, 95, 99)}


def analyse() -> None:
    """Do what autovacuum does some time after a load."""
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            "VACUUM ANALYZE collections_chunk, collections_embedding, collections_chunkterms, "
            "collections_termfrequency, collections_document"
        )


def latency_run(is_fresh: bool, questions_asked: int) -> dict[str, Any]:
    tenant, actor, is_empty = tenant_of("benchmark-latency", is_fresh=is_fresh)
    rng = np.random.default_rng(7)
    words = ["".join(chr(97 + i // 26**p % 26) for p in range(4)) + "o" for i in range(30_000)]
    with tenant_scope(tenant.pk):
        if is_empty:
            began = time.perf_counter()
            latency_load(tenant, actor, rng, words)
            print(f"loaded {PER_COLLECTION * COLLECTIONS:,} chunks in {time.perf_counter() - began:.0f} s")
            analyse()
        collections = list(Collection.objects.select_related("space").order_by("pk"))
        one = collections[0]
        document = Document.objects.filter(collection=one).first()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT chunk_id, vector::text FROM collections_embedding WHERE collection_id = %s", [one.pk]
            )
            rows = cursor.fetchall()
        ids = np.array([r[0] for r in rows])
        vectors = np.array([np.fromstring(r[1][1:-1], sep=",") for r in rows])
        embedder = embedder_for(one.space, tenant=tenant)
        asked = [question(rng, words) for _ in range(questions_asked)]
        table: dict[str, Any] = {}
        print(f"\n{'scope':44} p50 ms  p95 ms  p99 ms (database p95)")
        for label, scope, extra in (
            ("collection of 10k chunks, hybrid", [one], {}),
            ("collection of 10k chunks, one document", [one], {"filters": {"document_id": document.pk}}),
            ("collection of 10k chunks, words only", [one], {"legs": ("lexical",)}),
            ("collection of 10k chunks, vectors only", [one], {"legs": ("vector",)}),
            ("tenant of 100k chunks, hybrid", None, {}),
        ):
            times, inside = [], []
            for i, text in enumerate(["warm up", *asked]):
                began = time.perf_counter()
                result = search_run(tenant=tenant, actor=actor, collections=scope, query=text, **extra)
                if i:
                    times.append((time.perf_counter() - began) * 1000)
                    inside.append(result.database_ms)
            row = {**percentiles(times), "database_p95_ms": round(float(np.percentile(inside, 95)), 1)}
            table[label] = row
            print(
                f"{label:44} {row['p50_ms']:6.1f}  {row['p95_ms']:6.1f}  {row['p99_ms']:6.1f}  ({row['database_p95_ms']:.1f})"
            )
        recalls, recalls_f32 = [], []
        for text in asked:
            hits = search_run(
                tenant=tenant, actor=actor, collections=[one], query=text, legs=("vector",)
            ).hits
            found = {h.chunk_id for h in hits}
            exact = embedder.embed_query(text)
            for query, into in (
                (exact.astype(np.float16).astype(np.float64), recalls),
                (exact.astype(np.float64), recalls_f32),
            ):
                scores = vectors @ query / np.linalg.norm(vectors, axis=1)
                into.append(len(found & set(ids[np.argsort(-scores)[:10]].tolist())) / 10)
        recall, recall_f32 = (round(float(np.mean(r)), 4) for r in (recalls, recalls_f32))
        print(
            f"recall@10 of the vector leg: {recall} of an exact scan of what is stored, "
            f"{recall_f32} with the question in 32 instead of 16 bits"
        )
    return {
        "chunks": PER_COLLECTION * COLLECTIONS,
        "scopes": table,
        "vector_recall_at_10": recall,
        "vector_recall_at_10_question_f32": recall_f32,
    }


def question(rng: np.random.Generator, words: list[str]) -> str:
    picked = [words[min(int(z), len(words)) - 1] for z in rng.zipf(1.3, 8)]
    code = f" {rng.integers(1000, 9999)}.{rng.integers(10, 99)}.{rng.integers(10, 99)}"
    return " ".join(picked) + (code if rng.random() < 0.3 else "")


def latency_load(tenant: Tenant, actor: Actor, rng: np.random.Generator, words: list[str]) -> None:
    centres = rng.normal(size=(200, 384))
    texts = []
    for _ in range(PER_COLLECTION):
        picked = [words[min(int(z), len(words)) - 1] for z in rng.zipf(1.3, 70)]
        code = f"{rng.integers(1000, 9999)}.{rng.integers(10, 99)}.{rng.integers(10, 99)}"
        texts.append(" ".join([*picked, code]))
    tokens = [terms.chunk_tokenise(0, text) for text in texts]
    for number in range(COLLECTIONS):
        collection = services.collection_create(tenant=tenant, actor=actor, name=f"Collection {number}")
        for start in range(0, PER_COLLECTION, PER_DOCUMENT):
            drafts = [draft(i, texts[start + i]) for i in range(PER_DOCUMENT)]
            document = document_make(tenant, collection, f"{number}-{start}", drafts)
            chunks = list(
                Chunk.objects.filter(document=document).order_by("index").values_list("pk", flat=True)
            )
            vectors = centres[rng.integers(0, 200, PER_DOCUMENT)] + rng.normal(size=(PER_DOCUMENT, 384))
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            with transaction.atomic():
                rows_copy(
                    "collections_embedding",
                    {
                        "tenant_id": "int8",
                        "chunk_id": "int8",
                        "space_id": "int8",
                        "collection_id": "int8",
                        "document_id": "int8",
                        "vector": "halfvec",
                    },
                    (
                        (tenant.pk, pk, collection.space_id, collection.pk, document.pk, HalfVector(v))
                        for pk, v in zip(chunks, vectors, strict=True)
                    ),
                )
                locked = Collection.objects.select_for_update().get(pk=collection.pk)
                terms.document_index(
                    collection=locked,
                    document_id=document.pk,
                    chunks=[replace(tokens[start + i], chunk_id=pk) for i, pk in enumerate(chunks)],
                )
                Document.objects.filter(pk=document.pk).update(status="ready", stage=Stage.INDEX)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("scifact", "latency"))
    parser.add_argument("--fresh", action="store_true", help="load again")
    parser.add_argument("--questions", type=int, default=200, help="asked for each latency")
    options = parser.parse_args()
    result: dict[str, Any] = {"load_average": os.getloadavg()[0]}
    if options.only != "latency":
        result["scifact"] = scifact_run(options.fresh)
    if options.only != "scifact":
        result["latency"] = latency_run(options.fresh, options.questions)
    name = "search" if options.only is None else f"search_{options.only}"
    print("written:", write_result(name, result).relative_to(ROOT))


if __name__ == "__main__":
    main()
