"""Does a retrieval experiment measure what search measures? SciFact (BEIR) as a dataset, asked by the product's experiments.

The 5,183 abstracts are embedded and indexed as in ``search.py``. The 300 claims with their labels go through the BEIR
reader into a dataset version; an experiment asks two retrievers, keywords alone and hybrid, and scores them by its own
labels, which are anchored to documents and characters. Its nDCG@10 must be that of ``benchmarks/results/search.json``.

Run: python benchmarks/scifact_experiment.py. It makes and drops a database of its own (beside DATABASE_URL's, or embedded).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

from _common import data_dir, shared_data, write_result  # noqa: E402
from _stack import database  # noqa: E402

ARMS = {"BM25": ["lexical"], "hybrid": ["vector", "lexical", "exact"]}
SCORE, TOLERANCE = "ndcg@10", 1e-4


def beir_write(path: Path, corpus: dict, questions: dict, relevant: dict, places: dict) -> None:
    """Write corpus, queries and labels as a BEIR archive; where a passage stands is in its metadata."""
    cited = {key for wanted in relevant.values() for key in wanted}
    passages = [
        {"_id": k, "title": "corpus", "text": corpus[k], "metadata": places[k]} for k in sorted(cited)
    ]
    queries = [{"_id": key, "text": text} for key, text in questions.items()]
    labels = [f"{key}\t{doc}\t1" for key, wanted in relevant.items() for doc in wanted]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("corpus.jsonl", "\n".join(map(json.dumps, passages)))
        archive.writestr("queries.jsonl", "\n".join(map(json.dumps, queries)))
        archive.writestr("qrels/test.tsv", "query-id\tcorpus-id\tscore\n" + "\n".join(labels))


def run() -> dict[str, Any]:
    """Return the experiment's figures."""
    import lexical as scifact
    import search

    from apps.collections.collection import services
    from apps.collections.ingestion.types import ChunkDraft
    from apps.collections.models import Chunk
    from apps.collections.pipeline import run as pipeline
    from apps.datasets.formats.beir import Beir
    from apps.datasets.records.record import Record
    from apps.datasets.rows.dataset_services import dataset_create
    from apps.datasets.rows.services import NewRow, rows_add
    from apps.datasets.versions.services import version_create
    from apps.evaluations.compare.comparison import arms_compare, verdict
    from apps.evaluations.experiments.services import ArmSpec, experiment_create
    from apps.evaluations.results.selectors import arm_scores
    from jobs.context import JobContext
    from jobs.models import Job
    from tenancy.scope import tenant_scope
    from tests.evaluations.support import work_off

    corpus, questions, relevant = scifact.load(shared_data() / "retrieval-scifact" / "scifact.zip")
    tenant, actor, _ = search.tenant_of("benchmark-scifact-experiment", is_fresh=False)
    who: dict[str, Any] = {"tenant": tenant, "actor": actor}
    with tenant_scope(tenant.pk):
        collection = services.collection_create(**who, name="SciFact")
        drafts, start = [], 0
        for index, (key, text) in enumerate(corpus.items()):
            drafts.append(ChunkDraft(index, text, start, start + len(text), 1, 1, metadata={"key": key}))
            start += len(text) + 1
        document = search.document_make(tenant, collection, "corpus", drafts)
        began = time.perf_counter()
        pipeline.document_ingest(JobContext(Job.objects.get(pk=document.job_id)), document_id=document.pk)
        print(f"embedded {len(corpus):,} abstracts in {time.perf_counter() - began:.0f} s")
        search.analyse()
        places = {
            c.metadata["key"]: {
                "document": "corpus",
                "document_id": document.pk,
                "start": c.char_start,
                "end": c.char_end,
            }
            for c in Chunk.objects.filter(collection=collection)
        }
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scifact.zip"
            beir_write(path, corpus, questions, relevant, places)
            rows = [row for row in Beir().read(path) if isinstance(row, Record)]
        dataset = dataset_create(**who, name="SciFact")
        rows_add(**who, dataset=dataset, rows=[NewRow(row) for row in rows], source="beir")
        version = version_create(**who, dataset=dataset)
        experiment = experiment_create(
            **who,
            name="SciFact retrieval",
            version=version,
            arms=[
                ArmSpec({"kind": "retriever", "collections": [collection.pk], "k": 10, "legs": legs}, name)
                for name, legs in ARMS.items()
            ],
            scorers=[{"kind": "retrieval", "options": {"k": 10}}],
        )
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as lane:
        done = asyncio.run(work_off(experiment, lane, most=2_000))
    took = time.perf_counter() - began
    with tenant_scope(tenant.pk):
        arms = list(experiment.arms.order_by("position"))
        scores = [arm_scores(actor=actor, arm=arm) for arm in arms]
        found = arms_compare(scores[0], scores[1], leading=SCORE)
        measured = {arm.name: round(s.values[SCORE].mean, 4) for arm, s in zip(arms, scores, strict=True)}
    return {
        "rows": version.row_count,
        "trials": done,
        "seconds": round(took, 1),
        "ndcg_at_10": measured,
        "label_coverage": scores[0].coverage,
        "change": {
            "value": found.leading.change.value,
            "low": found.leading.change.low,
            "high": found.leading.change.high,
        },
        "verdict": " ".join(verdict(found)),
    }


def main() -> int:
    os.environ.setdefault("GROUNDWORK_DATA_DIR", str(data_dir()))
    with database():
        result = run()
    known = json.loads((ROOT / "benchmarks" / "results" / "search.json").read_text())
    legs = known["scifact"]["legs"]
    expected = {name: legs["+".join(order)]["ndcg_at_10"] for name, order in ARMS.items()}
    result["search_ndcg_at_10"] = expected
    for name, value in expected.items():
        print(f"{name:8} experiment {result['ndcg_at_10'][name]:.4f}   search {value:.4f}")
    print(result["verdict"])
    write_result("scifact_experiment", result)
    return int(any(abs(result["ndcg_at_10"][n] - v) > TOLERANCE for n, v in expected.items()))


if __name__ == "__main__":
    raise SystemExit(main())
