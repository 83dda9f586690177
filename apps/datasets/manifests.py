"""What the rows of a version were made of: generations with their models and prompts, imports, and the documents then and now."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, QuerySet

from apps.datasets.generation.corpus import fingerprint_of
from apps.datasets.models import Dataset, DatasetImport, DatasetRow, GenerationItem, GenerationJob
from tenancy.actors import Actor

_COUNTED = ("status", "split", "type", "difficulty", "language")


def manifest_of(*, actor: Actor, dataset: Dataset, rows: QuerySet[DatasetRow]) -> dict[str, Any]:
    """Return the facts about rows that a version keeps and signs.

    Returns:
        ``counts``: rows by each value of a column. ``generations``: job, its rows, model, judge, prompts, and the
        fingerprint of the documents that it read. ``imports``: the files that rows came from. ``conversations``: rows
        that were asked in a chat. ``corpus``: the fingerprint of the generations' collections at this moment.
    """
    every = rows.order_by()
    counts = {
        name: dict(every.values_list(name).annotate(n=Count("pk")).order_by(name)) for name in _COUNTED
    }  # fmt: skip
    items = GenerationItem.objects.visible_to(actor).filter(job__dataset=dataset)
    made = items.filter(row__in=every.values("pk"))
    by_job = dict(made.order_by().values_list("job").annotate(n=Count("pk")))
    jobs = GenerationJob.objects.visible_to(actor).filter(pk__in=by_job).order_by("pk")
    brought = every.filter(lineage__has_key="import").values_list("lineage__import")
    by_import = dict(brought.annotate(n=Count("pk")))
    files = DatasetImport.objects.visible_to(actor).filter(pk__in=by_import).order_by("pk")
    collections = {c["id"]: c["name"] for job in jobs for c in job.manifest.get("collections", ())}
    return {
        "counts": counts,
        "generations": [
            {
                "job": job.pk,
                "rows": by_job[job.pk],
                **{name: job.manifest.get(name) for name in ("model", "judge", "prompts", "corpus")},
            }
            for job in jobs
        ],
        "imports": [
            {"import": file.pk, "rows": by_import[file.pk], "name": file.name, "format": file.format}
            for file in files
        ],
        "conversations": every.filter(lineage__has_key="conversation").count(),
        "collections": [{"id": pk, "name": name} for pk, name in sorted(collections.items())],
        "corpus": fingerprint_of(actor, list(collections)) if collections else None,
    }  # fmt: skip
