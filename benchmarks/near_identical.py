"""Does search find the right one of twenty filings that read almost alike?

Quarterly reports (10-Q) of five companies over four quarters are read by the product's own jobs, and the questions about one
of them are asked through ``search_run``. Counted is whether a passage of the right filing is among the first five.

The files and questions are ``sec-10-q/data/v1`` of github.com/docugami/KG-RAG-datasets: FOLDER holds its ``qna_data.csv`` and
the PDFs. By default the files get names that say nothing, so that only what they print can tell them apart.

Run: python benchmarks/near_identical.py FOLDER [--names] [--most 130] [--pages 12]. It makes and drops a database of its own.
With --pages only so many pages of each filing are read, evenly spaced, the first among them: a quicker and rougher figure.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import io
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pypdfium2
from _common import data_dir, write_result
from _stack import database, load

BAR, FIRST = 0.80, 5


def questions_read(folder: Path) -> list[tuple[str, str]]:
    """Return the questions about one filing, each with the stem of its file."""
    stems = [path.stem for path in folder.glob("*.pdf")]
    found = []
    with (folder / "qna_data.csv").open(newline="", encoding="utf-8-sig") as stream:
        for row in csv.DictReader(stream):
            right = fnmatch.filter(stems, row["Source Docs"])
            if len(right) == 1:
                found.append((row["Question"], right[0]))
    return found


def content(path: Path, most: int) -> bytes:
    """Return a PDF, or so many of its pages, evenly spaced; 0 for all."""
    whole = pypdfium2.PdfDocument(path)
    count = len(whole)
    if not most or count <= most:
        return path.read_bytes()
    part = pypdfium2.PdfDocument.new()
    part.import_pages(whole, sorted({round(i * (count - 1) / max(1, most - 1)) for i in range(most)}))
    written = io.BytesIO()
    part.save(written)
    return written.getvalue()


def ingested(cast: Any, folder: Path, *, is_named: bool, pages: int) -> tuple[Any, dict[int, str]]:
    """Read the filings into a collection; returns it and the stem of each document."""
    from apps.collections.collection.services import collection_create
    from apps.collections.documents.services import document_upload
    from apps.collections.models import Document
    from jobs.runner import run_here

    actor = cast.actor("owner")
    collection = collection_create(tenant=cast.tenant, actor=actor, name="Filings")
    paths = sorted(folder.glob("*.pdf"))
    random.Random(16).shuffle(paths)
    stems = {}
    for number, path in enumerate(paths, 1):
        began = time.monotonic()
        name = path.name if is_named else f"scan-{number:02}.pdf"
        uploaded = document_upload(
            tenant=cast.tenant, actor=actor, collection=collection, name=name, chunks=[content(path, pages)]
        )
        row = uploaded.document
        # A job gives way to others after a slice of time; pages without text are another job's.
        while row.status in ("queued", "processing"):
            run_here(cast.tenant.pk, row.job_id)
            row = Document.objects.get(pk=row.pk)
        if row.status != "ready":
            raise SystemExit(f"{path.name}: {row.status}: {row.error_message}")
        stems[row.pk] = path.stem
        print(f"{path.name}: {row.chunk_count} passages in {time.monotonic() - began:.0f} s", flush=True)
    return collection, stems


def measured(
    cast: Any, collection: Any, stems: dict[int, str], asked: list[tuple[str, str]]
) -> dict[str, Any]:
    from apps.collections.search import search_run

    first, first_five = 0, 0
    missed: Counter[str] = Counter()
    for question, right in asked:
        hits = search_run(
            tenant=cast.tenant, actor=cast.actor("owner"), collections=[collection], query=question, k=FIRST
        ).hits
        found = [stems[hit.document_id] for hit in hits]
        first += found[:1] == [right]
        first_five += right in found
        if right not in found:
            missed[right.split()[-1]] += 1
            print(f"missed: {question} {right}, found {found}", flush=True)
    count = len(asked)
    return {
        "questions": count,
        "recall_at_1": round(first / count, 3),
        "recall_at_5": round(first_five / count, 3),
        "missed": dict(missed),
    }


def main() -> int:
    """Read, ask, write results/near_identical.json; 0 when the bar is met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--names", action="store_true", help="keep the file names, which tell company and quarter"
    )
    parser.add_argument("--most", type=int, default=1_000, help="questions, at most")
    parser.add_argument("--pages", type=int, default=0, help="of each filing; 0: all")
    options = parser.parse_args()
    asked = questions_read(options.folder)
    if not asked:
        parser.error(f"{options.folder} has no questions about one of its files")
    random.Random(16).shuffle(asked)
    before = load()
    os.environ["GROUNDWORK_DATA_DIR"] = str(data_dir())
    with database():
        from apps.collections.models import Chunk
        from tenancy.scope import tenant_scope
        from tests.cast import make_cast

        cast = make_cast()
        with tenant_scope(cast.tenant.pk):
            collection, stems = ingested(cast, options.folder, is_named=options.names, pages=options.pages)
            result = {
                "documents": len(stems),
                "pages_each": options.pages or "all",
                "passages": Chunk.objects.count(),
            }
            result |= measured(cast, collection, stems, asked[: options.most])
        # Before the database is dropped: should that fail, the figures are there.
        result |= {"load_before": before, "load_after": load()}
        print(result)
        write_result("near_identical_named" if options.names else "near_identical", result)
    return int(result["recall_at_5"] < BAR)


if __name__ == "__main__":
    sys.exit(main())
