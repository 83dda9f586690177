"""Can people work with a dataset of 100,000 rows? Server time of its pages, and memory of an export.

Run: ``python benchmarks/dataset_scale.py --rows 100000``. It makes a workspace of its own and leaves it behind.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.test import Client  # noqa: E402

from apps.datasets import record as r  # noqa: E402
from apps.datasets import services  # noqa: E402
from apps.datasets.formats import FORMATS, Card  # noqa: E402
from apps.datasets.selectors import RowFilter, version_rows  # noqa: E402
from apps.datasets.services.rows import NewRow, rows_insert  # noqa: E402
from tenancy.scope import tenant_scope  # noqa: E402
from tests.cast import make_cast  # noqa: E402

BAR_MS = 300


def main() -> int:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "dataset_scale.json")
    options = parser.parse_args()
    settings.ALLOWED_HOSTS = ["*"]
    cast = make_cast()
    who = {"tenant": cast.tenant, "actor": cast.actor("member")}
    with tenant_scope(cast.tenant.pk):
        dataset = services.dataset_create(**who, name="Scale")
        base = r.Record("What is asked?", "An answer of usual length. " * 12, type=r.RowType.FACTUAL, difficulty=r.Difficulty.EASY)  # fmt: skip
        began = time.monotonic()
        for start in range(0, options.rows, 500):
            batch = [
                NewRow(replace(base, question=f"Question {n} about heading {n % 97}?", sources=(r.Source(f"d{n % 2000}.pdf", f"Passage {n} of the document.", start=n, end=n + 30),)), ("review", "approved")[n % 2])
                for n in range(start, min(start + 500, options.rows))
            ]  # fmt: skip
            rows_insert(cast.tenant, cast.actor("member"), dataset, batch)
        made_s = time.monotonic() - began
        began = time.monotonic()
        first = services.version_create(**who, dataset=dataset, only=RowFilter(status="approved"))
        second = services.version_create(**who, dataset=dataset)
        version_s = (time.monotonic() - began) / 2
    client = Client()
    client.force_login(cast.user("member"))
    root = f"/t/{cast.tenant.slug}/datasets"
    pages = {
        "list of datasets": f"{root}/",
        "rows": f"{root}/{dataset.pk}/",
        "rows, last page": f"{root}/{dataset.pk}/?page={options.rows // 50}",
        "rows, by status": f"{root}/{dataset.pk}/?status=approved",
        "rows, by words": f"{root}/{dataset.pk}/?text=heading+96",
        "rows, by source": f"{root}/{dataset.pk}/?source=d1999.pdf",
        "review": f"{root}/{dataset.pk}/review/",
        "versions compared": f"{root}/{dataset.pk}/versions/{first.number}/{second.number}/?kind=added",
        "exports": f"{root}/{dataset.pk}/exports/",
        "checks": f"{root}/{dataset.pk}/checks/",
    }
    found: dict[str, dict[str, float]] = {}
    for name, url in pages.items():
        times = []
        for _ in range(options.repeats + 1):
            began = time.monotonic()
            answer = client.get(url)
            times.append((time.monotonic() - began) * 1000)
            assert answer.status_code == 200, (name, answer.status_code)
        found[name] = {"median_ms": round(statistics.median(times[1:]), 1), "worst_ms": round(max(times[1:]), 1)}  # fmt: skip
    print(f"{options.rows:,} rows made in {made_s:.1f} s, a version in {version_s:.1f} s")
    for name, row in found.items():
        print(f"{name:22} median {row['median_ms']:8.1f} ms  worst {row['worst_ms']:8.1f} ms  {'ok' if row['median_ms'] < BAR_MS else 'over the bar'}")  # fmt: skip
    exports: dict[str, dict[str, float]] = {}
    with tenant_scope(cast.tenant.pk):
        rows = lambda: (p.record for p in version_rows(actor=cast.actor("member"), version=second))  # noqa: E731
        for name in ("jsonl", "openai", "csv", "parquet", "huggingface"):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            began, size = time.monotonic(), 0
            for piece in FORMATS[name].write(rows, Card("Scale", rows=options.rows)):
                size += len(piece)
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            exports[name] = {"seconds": round(time.monotonic() - began, 1), "megabytes": round(size / 1e6, 1), "peak_grown_mb": round(grown, 1)}  # fmt: skip
            print(f"export {name:15} {exports[name]}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"rows": options.rows, "made_s": made_s, "version_s": version_s, "pages": found, "exports": exports}, indent=1))  # fmt: skip
    return 0 if all(row["median_ms"] < BAR_MS for row in found.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
