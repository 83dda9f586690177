"""Can people work with a dataset of 100,000 rows? Server time of its pages, of two arms compared over it, and memory of an export.

Run: ``python benchmarks/dataset_scale.py --rows 100000`` (about a minute, and the exports). It makes a workspace of its own and leaves it behind.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import Client  # noqa: E402

from apps.datasets import record as r  # noqa: E402
from apps.datasets import services  # noqa: E402
from apps.datasets.columns import record_columns  # noqa: E402
from apps.datasets.formats import FORMATS, Card  # noqa: E402
from apps.datasets.models import DatasetVersion  # noqa: E402
from apps.datasets.selectors import RowFilter, version_rows  # noqa: E402
from apps.evaluations.models import Arm, Experiment  # noqa: E402
from apps.evaluations.services import trials_start  # noqa: E402
from apps.evaluations.services.trials import experiment_locked  # noqa: E402
from tenancy.database.base import as_login_role  # noqa: E402
from tenancy.scope import tenant_scope  # noqa: E402
from tests.cast import Cast, make_cast  # noqa: E402

BAR_MS = 300


def _load(cast: Cast, dataset_id: int, rows: int) -> None:
    """Bring the rows in by COPY; their hashes are those of what they hold."""
    words = "An answer of usual length. " * 12
    kinds = (r.RowType.FACTUAL, r.RowType.MULTI_HOP, r.RowType.COMPARISON)
    levels = (r.Difficulty.EASY, r.Difficulty.MEDIUM, r.Difficulty.HARD)
    splits = (*[r.Split.TRAIN] * 8, r.Split.VALIDATION, r.Split.TEST)

    def row(n: int) -> dict[str, Any]:
        record = r.Record(
            f"Question {n} about heading {n % 97}?",
            words,
            type=kinds[n % 3],
            difficulty=levels[n % 7 % 3],
            split=splits[n % 10],
            sources=(
                r.Source(f"d{n % 2000}.pdf", f"Passage {n} of the document.", start=n, end=n + 30),
            ),
        )
        return record_columns(record) | {
            "tenant_id": cast.tenant.pk,
            "dataset_id": dataset_id,
            "status": ("review", "approved")[n % 2],
            "tags": "{}",
            "lineage": {},
            "updated_at": "now",
        }

    names = list(row(0))
    with as_login_role(), connection.cursor() as cursor:
        # Row-level security takes no COPY: the rows come over a table of the session.
        cursor.execute("CREATE TEMP TABLE loaded (LIKE datasets_datasetrow)")
        cursor.execute("ALTER TABLE loaded ALTER id DROP NOT NULL, ALTER created_at DROP NOT NULL")
        columns = ", ".join(names)
        raw: Any = connection.connection
        with raw.cursor() as bare, bare.copy(f"COPY loaded ({columns}) FROM STDIN") as copy:
            for n in range(rows):
                copy.write_row([_cell(value) for value in row(n).values()])
        cursor.execute(f"INSERT INTO datasets_datasetrow ({columns}) SELECT {columns} FROM loaded")


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value)


def _measured(cast: Cast, version: DatasetVersion) -> list[Arm]:
    """Return two arms of a completed experiment over every row, with two scores each, one trial a row."""
    experiment = Experiment.objects.create(
        tenant=cast.tenant, name="Scale", version=version, dataset_id=version.dataset_id, scorers=[]
    )
    arms = [
        Arm.objects.create(tenant=cast.tenant, experiment=experiment, position=n, name=f"Arm {n}", target={"kind": "model", "model": "extractive"})
        for n in range(2)
    ]  # fmt: skip
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.5)")
        for arm in arms:
            cursor.execute(
                _TRIALS, {"arm": arm.pk, "version": version.pk, "experiment": experiment.pk}
            )
            for name in ("accuracy", "completeness"):
                cursor.execute(_SCORES, {"arm": arm.pk, "name": name, "gain": 0.02 * arm.position})
        cursor.execute("ANALYZE evaluations_trial, evaluations_score")
    began = time.monotonic()
    with transaction.atomic():
        trials_start(experiment_locked(experiment.pk))
    print(f"the end of the experiment took {time.monotonic() - began:.1f} s, its scores kept")
    return arms


_TRIALS = """
INSERT INTO evaluations_trial (tenant_id, experiment_id, arm_id, row_ref, position, content_id, repeat, state, answer, outcome,
  error, latency_ms, judge_usd)
SELECT tenant_id, %(experiment)s, %(arm)s, row_ref, position, content_id, 0, 'done', 'An answer.', '{}', '', 900 + random() * 300, 0
FROM datasets_versionrow WHERE version_id = %(version)s
"""
_SCORES = """
INSERT INTO evaluations_score (tenant_id, trial_id, name, value, reason, evidence, details, author_kind, author)
SELECT tenant_id, id, %(name)s, least(1, round(random() * 4) / 4 * 0.9 + %(gain)s), '', '', '{}', 'judge', 'judge:six@1:m'
FROM evaluations_trial WHERE arm_id = %(arm)s
"""


def _settle() -> None:
    """Do what autovacuum does within a minute after a load."""
    with as_login_role(), connection.cursor() as cursor:
        for table in (
            "datasets_datasetrow",
            "datasets_versionrow",
            "datasets_rowcontent",
            "evaluations_trial",
        ):
            cursor.execute(f"VACUUM ANALYZE {table}")


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
    began = time.monotonic()
    _load(cast, dataset.pk, options.rows)
    made_s = time.monotonic() - began
    with tenant_scope(cast.tenant.pk):
        began = time.monotonic()
        first = services.version_create(**who, dataset=dataset, only=RowFilter(status="approved"))
        second = services.version_create(**who, dataset=dataset)
        version_s = (time.monotonic() - began) / 2
        arms = _measured(cast, second)
    _settle()
    client = Client()
    client.force_login(cast.user("member"))
    root = f"/t/{cast.tenant.slug}/datasets"
    pages = {
        "list of datasets": f"{root}/",
        "rows": f"{root}/{dataset.pk}/",
        "rows, last page": f"{root}/{dataset.pk}/?before={2**62}",
        "rows, by status": f"{root}/{dataset.pk}/?status=approved",
        "rows, by type": f"{root}/{dataset.pk}/?type=comparison",
        "rows, by difficulty": f"{root}/{dataset.pk}/?difficulty=hard",
        "rows, by split": f"{root}/{dataset.pk}/?split=test",
        "rows, by all four": f"{root}/{dataset.pk}/?status=review&type=comparison&difficulty=hard&split=test",
        "rows, by words": f"{root}/{dataset.pk}/?text=heading+96",
        "rows, by a word in all": f"{root}/{dataset.pk}/?text=question",
        "rows, by words in none": f"{root}/{dataset.pk}/?text=question+zebra",
        "rows, words and type": f"{root}/{dataset.pk}/?text=question&type=comparison",
        "rows, by source": f"{root}/{dataset.pk}/?source=d1999.pdf",
        "sources": f"{root}/{dataset.pk}/sources/",
        "versions": f"{root}/{dataset.pk}/versions/",
        "version": f"{root}/{dataset.pk}/versions/{second.number}/",
        "review": f"{root}/{dataset.pk}/review/",
        "versions compared": f"{root}/{dataset.pk}/versions/{first.number}/{second.number}/?kind=added",
        "exports": f"{root}/{dataset.pk}/exports/",
        "checks": f"{root}/{dataset.pk}/checks/",
        "arms compared": f"/t/{cast.tenant.slug}/evaluations/compare/?a={arms[0].pk}&b={arms[1].pk}",
        "REST, rows": f"/api/v1/datasets/{dataset.pk}/rows",
        "REST, rows by words": f"/api/v1/datasets/{dataset.pk}/rows?text=heading+96",
    }
    found: dict[str, dict[str, float]] = {}
    for name, url in pages.items():
        times = []
        for _ in range(options.repeats + 1):
            began = time.monotonic()
            answer = client.get(url, headers={"X-Tenant": cast.tenant.slug})
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
