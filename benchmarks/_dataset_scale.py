"""Makes the rows that ``dataset_scale`` measures, and measures them. Import it when the database is chosen."""

from __future__ import annotations

import json
import statistics
import time
import tracemalloc
from collections.abc import Sequence
from itertools import islice
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.test import Client

from apps.datasets.formats import FORMATS, Card
from apps.datasets.models import DatasetVersion
from apps.datasets.records import parts
from apps.datasets.records import record as r
from apps.datasets.records.columns import record_columns
from apps.datasets.rows import dataset_services
from apps.datasets.rows.selectors import RowFilter, version_rows
from apps.datasets.versions import services as versions_services
from apps.evaluations.models import Arm, Experiment
from apps.evaluations.trials.services import experiment_locked, trials_start
from tenancy.database.base import as_login_role
from tenancy.scope import tenant_scope
from tests.cast import Cast, make_cast

BAR_MS, MEMORY_BAR = 300, 1.5
"""Of a page in milliseconds; of the peak of an export over that of one with a tenth of its rows."""

EXPORTS = tuple(name for name, form in FORMATS.items() if form.is_export)


def _load(cast: Cast, dataset_id: int, rows: int) -> None:
    """Bring the rows in by COPY; their hashes are those of what they hold."""
    words = "An answer of usual length. " * 12
    kinds = (parts.RowType.FACTUAL, parts.RowType.MULTI_HOP, parts.RowType.COMPARISON)
    levels = (parts.Difficulty.EASY, parts.Difficulty.MEDIUM, parts.Difficulty.HARD)
    splits = (*[parts.Split.TRAIN] * 8, parts.Split.VALIDATION, parts.Split.TEST)

    def row(n: int) -> dict[str, Any]:
        record = r.Record(
            f"Question {n} about heading {n % 97}?",
            words,
            type=kinds[n % 3],
            difficulty=levels[n % 7 % 3],
            split=splits[n % 10],
            sources=(
                parts.RecordSource(f"d{n % 2000}.pdf", f"Passage {n} of the document.", start=n, end=n + 30),
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
        Arm.objects.create(
            tenant=cast.tenant,
            experiment=experiment,
            position=n,
            name=f"Arm {n}",
            target={"kind": "model", "model": "extractive"},
        )
        for n in range(2)
    ]
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.5)")
        for arm in arms:
            cursor.execute(_TRIALS, {"arm": arm.pk, "version": version.pk, "experiment": experiment.pk})
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
  error, latency_ms, judge_usd, judge_asked, judge_cached)
SELECT tenant_id, %(experiment)s, %(arm)s, row_ref, position, content_id, 0, 'done', 'An answer.', '{}', '', 900 + random() * 300, 0, 0, 0
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


def measured(count: int, repeats: int, forms: Sequence[str] = EXPORTS) -> dict[str, Any]:
    """Make a workspace with so many rows; return the times of its pages and the memory of its exports in ``forms``."""
    settings.ALLOWED_HOSTS = ["*"]
    cast = make_cast()
    who: dict[str, Any] = {"tenant": cast.tenant, "actor": cast.actor("member")}
    with tenant_scope(cast.tenant.pk):
        dataset = dataset_services.dataset_create(**who, name="Scale")
    began = time.monotonic()
    _load(cast, dataset.pk, count)
    made_s = time.monotonic() - began
    with tenant_scope(cast.tenant.pk):
        began = time.monotonic()
        first = versions_services.version_create(**who, dataset=dataset, only=RowFilter(status="approved"))
        second = versions_services.version_create(**who, dataset=dataset)
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
        "versions compared, same": f"{root}/{dataset.pk}/versions/{first.number}/{second.number}/?kind=changed",
        "exports": f"{root}/{dataset.pk}/exports/",
        "checks": f"{root}/{dataset.pk}/checks/",
        "arms compared": f"/t/{cast.tenant.slug}/evaluations/compare/?a={arms[0].pk}&b={arms[1].pk}",
        "REST, rows": f"/api/v1/datasets/{dataset.pk}/rows",
        "REST, rows by words": f"/api/v1/datasets/{dataset.pk}/rows?text=heading+96",
    }
    found: dict[str, dict[str, float]] = {}
    for name, url in pages.items():
        times = []
        for _ in range(repeats + 1):
            began = time.monotonic()
            answer = client.get(url, headers={"X-Tenant": cast.tenant.slug})
            times.append((time.monotonic() - began) * 1000)
            assert answer.status_code == 200, (name, answer.status_code)
        found[name] = {
            "median_ms": round(statistics.median(times[1:]), 1),
            "worst_ms": round(max(times[1:]), 1),
        }
    print(f"{count:,} rows made in {made_s:.1f} s, a version in {version_s:.1f} s")
    for name, row in found.items():
        print(
            f"{name:22} median {row['median_ms']:8.1f} ms  worst {row['worst_ms']:8.1f} ms  {'ok' if row['median_ms'] < BAR_MS else 'over the bar'}"
        )
    exports: dict[str, dict[str, float]] = {}
    with tenant_scope(cast.tenant.pk):
        for name in forms:
            began = time.monotonic()
            size = _exported(cast, second, name, count)
            seconds = time.monotonic() - began
            few, many = (_peak(cast, second, name, most) for most in (max(count // 10, 1000), count))
            exports[name] = {
                "seconds": round(seconds, 1),
                "megabytes": round(size / 1e6, 1),
                "peak_of_a_tenth_mb": round(few / 1e6, 2),
                "peak_mb": round(many / 1e6, 2),
                "ratio": round(many / few, 2),
            }
            print(f"export {name:15} {exports[name]}")
    is_fast = all(row["median_ms"] < BAR_MS for row in found.values())
    is_constant = all(row["ratio"] <= MEMORY_BAR for row in exports.values())
    return {
        "rows": count,
        "made_s": made_s,
        "version_s": version_s,
        "pages": found,
        "exports": exports,
        "ok": is_fast and is_constant,
    }


def _exported(cast: Cast, version: DatasetVersion, name: str, most: int) -> int:
    """Write an export and forget it; returns its bytes."""

    def rows() -> Any:
        pinned = version_rows(actor=cast.actor("member"), version=version)
        return (row.record for row in islice(pinned, most))

    return sum(len(piece) for piece in FORMATS[name].write(rows, Card("Scale", rows=most)))


def _peak(cast: Cast, version: DatasetVersion, name: str, most: int) -> int:
    """Return the most bytes of Python's memory that an export held at once."""
    tracemalloc.start()
    try:
        _exported(cast, version, name, most)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
