"""Reads of what is done with rows: the review queue, exports, imports, checks; each starts from what the actor may see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Exists, OuterRef, QuerySet

from apps.datasets.models import (
    WORK_ACTIVE,
    Dataset,
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetRow,
    RowReview,
    RowStatus,
    Work,
    WorkStatus,
)
from apps.datasets.rows.selectors import MOST_COUNTED
from apps.datasets.rows.withheld import ShownChecks, exports_readable, rows_readable
from basics.errors import Missing
from tenancy.actors import Actor

W = TypeVar("W", DatasetExport, DatasetImport, DatasetCheck)
OTHERS = 30
"""Datasets that are offered to hold evaluation rows against."""
WAITING = (RowStatus.DRAFT, RowStatus.REVIEW)


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A row that waits for the actor's verdict.

    Attributes:
        left: how many wait, this one included, up to ``MOST_COUNTED``.
        approvals: by others, of its present content.
    """

    row: DatasetRow
    left: int
    approvals: int


def review_queue(*, actor: Actor, dataset: Dataset) -> QuerySet[DatasetRow]:
    """Return the rows that wait for the actor: not decided, and not approved by this person as they are now."""
    actor.require("dataset.read")
    said = RowReview.objects.filter(
        row=OuterRef("pk"), content_hash=OuterRef("content_hash"), user_id=actor.user_id or 0
    )
    rows: QuerySet[DatasetRow] = DatasetRow.objects.visible_to(actor).filter(
        dataset=dataset, status__in=WAITING
    )
    return rows_readable(rows.filter(~Exists(said)), actor).order_by("pk")


def review_next(*, actor: Actor, dataset: Dataset, after: int = 0) -> QueuePlace | None:
    """Return the first waiting row after a number, from the beginning again when there is none; None for an empty queue."""
    queue = review_queue(actor=actor, dataset=dataset)
    row = queue.filter(pk__gt=after).first() or queue.first()
    if row is None:
        return None
    approvals = RowReview.objects.filter(
        row=row, content_hash=row.content_hash, verdict=RowReview.Verdict.APPROVE
    )
    people = approvals.values("user_id").distinct().count()
    return QueuePlace(row, queue[:MOST_COUNTED].count(), people)


def work_list(*, actor: Actor, model: type[W], dataset: Dataset | None = None) -> QuerySet[W]:
    """Return exports, imports or checks, the newest first."""
    actor.require("dataset.read")
    found: Any = model.objects.visible_to(actor)
    if issubclass(model, DatasetCheck):
        found = ShownChecks.of(DatasetCheck, actor)
    rows: QuerySet[W] = found.select_related("dataset", "job")
    if dataset is not None:
        rows = rows.filter(dataset=dataset)
    if issubclass(model, DatasetExport):
        rows = exports_readable(rows.select_related("version"), actor)
    return rows.order_by("-pk")


def work_get(*, actor: Actor, model: type[W], pk: int, dataset: Dataset | None = None) -> W:
    """Return one export, import or check. Raises Missing."""
    found = work_list(actor=actor, model=model, dataset=dataset).filter(pk=pk).first()
    if found is None:
        raise Missing(_NOUNS[model])
    return found


def others_named(*, actor: Actor, dataset: Dataset) -> list[tuple[int, str, bool]]:
    """Return other datasets of the workspace, id and name, and whether evaluation rows are held against them already.

    The named ones come first, then the latest changed; at most ``OTHERS``.
    """
    actor.require("dataset.read")
    named = set(dataset.options.get("against", []))
    rows = Dataset.objects.visible_to(actor).exclude(pk=dataset.pk)
    latest = rows.exclude(pk__in=named).order_by("-updated_at", "-pk")[:OTHERS]
    found = [*rows.filter(pk__in=named).order_by("name", "pk"), *latest]
    return [(row.pk, row.name, row.pk in named) for row in found]


def checks_latest(*, actor: Actor, dataset: Dataset) -> dict[str, DatasetCheck]:
    """Return the newest check of each kind."""
    rows = work_list(actor=actor, model=DatasetCheck, dataset=dataset)
    return {row.kind: row for row in rows.order_by("kind", "-pk").distinct("kind")}


def division_latest(*, actor: Actor, dataset: Dataset) -> DatasetCheck | None:
    """Return the newest division into splits that is no trial and has ended, None without one."""
    rows = work_list(actor=actor, model=DatasetCheck, dataset=dataset)
    done = rows.filter(kind=DatasetCheck.Kind.SPLITS).exclude(status__in=WORK_ACTIVE)
    return done.exclude(options__contains={"is_trial": True}).first()


def coverage_latest(*, actor: Actor, dataset: Dataset) -> DatasetCheck | None:
    """Return the newest look at the coverage of a dataset that has ended well, None without one."""
    rows = work_list(actor=actor, model=DatasetCheck, dataset=dataset)
    done = rows.filter(kind=DatasetCheck.Kind.COVERAGE, status=WorkStatus.COMPLETED)
    return done.first()


def rows_named(*, actor: Actor, dataset: Dataset, pks: Iterable[int]) -> dict[int, DatasetRow]:
    """Return rows of a dataset by their ids, with what a list shows of them; those that are gone are left out."""
    actor.require("dataset.read")
    rows = rows_readable(DatasetRow.objects.visible_to(actor).filter(dataset=dataset), actor)
    return rows.only("question", "status", "split", "updated_at", "dataset").in_bulk(list(pks))


_NOUNS: dict[type[Work], str] = {DatasetExport: "export", DatasetImport: "import", DatasetCheck: "check"}
