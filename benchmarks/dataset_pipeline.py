"""A hundred real documents to a dataset, end to end: do the command and the API make the same rows, and is each whole?

PDF, Word, PowerPoint, Excel, HTML, EPUB, Markdown, CSV, text and source code are read by the product's own jobs, then
rows are made twice from them with the same settings: by ``manage.py dataset_generate`` and by REST. Every row is
checked part by part (``tests/datasets/pipeline.py``). Once with the extractive model, which needs no key, and once with
a model server that speaks the wire format on loopback.

Run: python benchmarks/dataset_pipeline.py [--documents 100] [--rows 100]. Makes a database of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import lexical
from _common import ROOT, data_dir, shared_data, write_result
from _stack import database, load

NAME = "fake-rows"
OWN = {"id": "", "timestamp": ""}
"""What each row has of its own, whoever made it."""
TYPES = {
    "factual": 4.0,
    "multi_hop": 2.0,
    "comparison": 1.0,
    "how_to": 1.0,
    "code": 1.0,
    "unanswerable": 1.0,
    "adversarial": 1.0,
    "injected": 1.0,
}
SUFFIXES = {".pdf", ".docx", ".pptx", ".xlsx", ".html", ".epub", ".md", ".csv", ".txt"}
LARGE = 400_000
"""Bytes; larger files say no more about the pipeline, and take minutes to read."""
CODE = ("rate_gate.py", "sentences.py", "limits.py", "usage.py", "compaction.py", "structured.py")
LICENSES = {
    "pdf-us-gov": "US-PD",
    "trade-us": "US-PD",
    "office-docling-gt": "MIT",
    "retrieval-scifact": "ODC-By-1.0",
    "toolloop": "",
}


def main() -> int:
    """Make and compare; write results/dataset_pipeline.json; 0 when rows are equal and whole."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100)
    args = parser.parse_args()
    before = load()
    os.environ["GROUNDWORK_DATA_DIR"] = str(data_dir())
    os.environ["GROUNDWORK_ALLOWED_HOSTS"] = "testserver"  # By this name Django's client calls.
    with database():
        result = run(args.documents, args.rows)
    result |= {"load_before": before, "load_after": load()}
    for name, value in result.items():
        print(f"{name:24} {value}")
    print(write_result("dataset_pipeline", result))
    return 0 if all(result[model]["ok"] for model in ("extractive", NAME)) else 1


def run(documents: int, rows: int) -> dict[str, Any]:
    """Return what came of both ways with both models."""
    from apps.collections.models import Chunk
    from tenancy.scope import tenant_scope
    from tests.cast import make_cast
    from tests.datasets.support import FakeModel
    from tests.fake_provider import running

    cast = make_cast()
    result: dict[str, Any] = {}
    with running() as (url, server), tenant_scope(cast.tenant.pk):
        os.environ["GROUNDWORK_COMPATIBLE_BASE_URL"] = url
        os.environ["GROUNDWORK_COMPATIBLE_MODELS"] = NAME
        server.replies[NAME] = FakeModel()
        began = time.monotonic()
        collection, kinds = ingested(cast, documents)
        result |= {
            "documents": sum(kinds.values()),
            "kinds": dict(kinds),
            "ingestion_s": round(time.monotonic() - began, 1),
        }
        texts = dict(Chunk.objects.values_list("pk", "text"))
        result["chunks"] = len(texts)
        for name, model in (("extractive", "extractive"), (NAME, f"compatible/{NAME}")):
            server.log.clear()
            result[name] = compared(cast, collection, model, rows, texts, server)
    return result


def compared(
    cast: Any, collection: Any, model: str, rows: int, texts: dict[int, str], server: Any
) -> dict[str, Any]:
    """Make rows both ways; returns numbers and problems."""
    from apps.datasets.models import DatasetRow, GenerationJob
    from tests.datasets.pipeline import by_command, exported, problems_of, start_by_rest
    from tests.datasets.support import drive

    shares = ",".join(f"{name}={share}" for name, share in TYPES.items())
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        made = by_command(
            cast,
            collection.name,
            Path(folder) / "rows.jsonl",
            f"types={shares}",
            f"rows={rows}",
            "concurrency=1",
            f"model={model}",
            f"name=By command, {model}",
        )
        seconds = time.monotonic() - began
    server.log.clear()
    settings = {"collections": [collection.pk], "rows": rows, "types": TYPES, "concurrency": 1}
    job = drive(start_by_rest(cast, settings, model))
    by_rest = exported(cast, job)
    DatasetRow.objects.filter(dataset=job.dataset).delete()
    GenerationJob.objects.filter(pk=job.pk).delete()
    job.dataset.delete()
    problems = Counter(p.partition(":")[0] for row in made for p in problems_of(row, texts))
    used = {source["document"] for row in made for source in row["sources"]}
    is_same = [{**row, **OWN} for row in made] == [{**row, **OWN} for row in by_rest]
    return {
        "wanted": rows,
        "kept": len(made),
        "types": dict(Counter(row["type"] for row in made)),
        "quality": round(sum(row["meta"]["quality"] for row in made) / max(1, len(made)), 3),
        "documents_used": len(used),
        "licenses": dict(Counter(s["license"] for row in made for s in row["sources"])),
        "seconds": round(seconds, 1),
        "same_by_rest": is_same,
        "problems": dict(problems),
        "ok": bool(made) and is_same and not problems,
    }


def ingested(cast: Any, wanted: int) -> tuple[Any, Counter[str]]:
    """Read the documents into a collection; returns it and how many there are of each kind."""
    from apps.collections.collection.services import collection_create
    from apps.collections.documents.services import document_upload
    from apps.collections.documents.type_rules import document_describe
    from apps.collections.models import Document
    from jobs.runner import run_here

    actor = cast.actor("owner")
    collection = collection_create(tenant=cast.tenant, actor=actor, name="Corpus")
    kinds: Counter[str] = Counter()
    for name, content, origin in documents_of(wanted):
        uploaded = document_upload(
            tenant=cast.tenant, actor=actor, collection=collection, name=name, chunks=[content]
        )
        run_here(cast.tenant.pk, uploaded.document.job_id)
        row = Document.objects.get(pk=uploaded.document.pk)
        if row.status != "ready":
            raise SystemExit(f"{name}: {row.status}: {row.error_message}")
        if license_ := LICENSES[origin]:
            document_describe(tenant=cast.tenant, actor=actor, document=row, attributes={"license": license_})
        kinds[Path(name).suffix] += 1
    return collection, kinds


def documents_of(wanted: int) -> list[tuple[str, bytes, str]]:
    """Return name, bytes and origin of documents: files first, then abstracts of SciFact up to the number wanted."""
    found = [
        (path.name, path.read_bytes(), path.parent.name)
        for path in sorted(shared_data().rglob("*"))
        if path.suffix in SUFFIXES
        and path.stat().st_size <= LARGE
        and path.parent.name in LICENSES
        and path.stem not in ("README", "LICENSE", "MANIFEST")
        and not path.with_suffix("").suffix  # The Markdown of another file that is there.
    ]
    code = ROOT / "platform" / "toolloop"
    found += [(name, (code / name).read_bytes(), "toolloop") for name in CODE]
    corpus, _, _ = lexical.load(shared_data() / "retrieval-scifact" / "scifact.zip")
    found = found[:wanted]
    for name, text in list(corpus.items())[: wanted - len(found)]:
        found.append((f"abstract-{name}.txt", text.encode(), "retrieval-scifact"))
    return found


if __name__ == "__main__":
    sys.exit(main())
