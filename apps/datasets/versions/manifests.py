"""What the rows of a version were made of, and what they are like: generations, imports, documents; lengths, scores, duplicates."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import Any

from django.db.models import Count, QuerySet
from django.db.models.functions import Length

from apps.datasets.generation.corpus import fingerprint_of
from apps.datasets.models import (
    Dataset,
    DatasetCheck,
    DatasetImport,
    DatasetRow,
    GenerationItem,
    GenerationJob,
    WorkStatus,
)
from tenancy.actors import Actor

_COUNTED = ("status", "split", "type", "difficulty", "language")


def manifest_of(*, actor: Actor, dataset: Dataset, rows: QuerySet[DatasetRow]) -> dict[str, Any]:
    """Return the facts about rows that a version keeps and signs.

    Returns:
        ``counts``: rows by each value of a column. ``generations``: job, its rows, model, judge, prompts, and the
        fingerprint of the documents that it read. ``imports``: the files that rows came from. ``conversations``: rows
        that were asked in a chat. ``corpus``: the fingerprint of the generations' collections at this moment.
        ``lengths``, ``scores``: see ``_statistics``. ``duplicates``: what the last check found, None without one.
    """
    every = rows.order_by()
    counts = {name: dict(every.values_list(name).annotate(n=Count("pk")).order_by(name)) for name in _COUNTED}
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
        **_statistics(every),
        "duplicates": _duplicates(actor, dataset),
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
    }


def _statistics(rows: QuerySet[DatasetRow]) -> dict[str, Any]:
    """Return how long texts are, in characters, and how many rows have each level of each score.

    Returns:
        ``lengths``: text to its least, 5 %, median, 95 % and most. ``scores``: name to its mean (0 to 1, None without
        any), its rows at each level from 1 to 5, and its unscored ones.
    """
    lengths: dict[str, Counter[int]] = {"question": Counter(), "answer": Counter()}
    levels: dict[str, Counter[int | None]] = {}
    sums: Counter[str] = Counter()
    measured = rows.annotate(q=Length("question"), a=Length("answer")).values_list("q", "a", "scores")
    for question, answer, scores in measured.iterator(chunk_size=2_000):
        lengths["question"][question] += 1
        lengths["answer"][answer] += 1
        for score in scores:
            value, level = score.get("value"), score.get("level")
            if value is not None:
                sums[score["name"]] += value
                level = level or round(1 + 4 * value)
            levels.setdefault(score["name"], Counter())[None if value is None else level] += 1
    return {
        "lengths": {name: _quantiles(found) for name, found in lengths.items()},
        "scores": {
            name: {
                "mean": round(sums[name] / scored, 4) if (scored := found.total() - found[None]) else None,
                "levels": [found[level] for level in range(1, 6)],
                "unscored": found[None],
            }
            for name, found in sorted(levels.items())
        },
    }


def _quantiles(lengths: Counter[int]) -> list[int]:
    """Return the least, 5 %, median, 95 % and most of counted lengths."""
    values = sorted(lengths)
    upto = list(accumulate(lengths[value] for value in values))
    wanted = (max(1, math.ceil(share * upto[-1])) for share in (0, 0.05, 0.5, 0.95, 1))
    return [values[bisect_left(upto, count)] for count in wanted]


def _duplicates(actor: Actor, dataset: Dataset) -> dict[str, Any] | None:
    checks = DatasetCheck.objects.visible_to(actor).filter(dataset=dataset, status=WorkStatus.COMPLETED)
    last = checks.filter(kind=DatasetCheck.Kind.DUPLICATES).order_by("-pk").first()
    if last is None or last.finished_at is None:
        return None
    return {"checked_at": last.finished_at.isoformat(), "counts": last.result["counts"]}
