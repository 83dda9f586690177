"""Reads of datasets, rows, versions and generation jobs; each starts from what the actor may see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum

from apps.datasets.models import (
    ITEM_OPEN,
    Dataset,
    DatasetRow,
    DatasetVersion,
    GenerationItem,
    GenerationJob,
    RowStatus,
    VersionRow,
)
from apps.datasets.records.record import Record, from_values
from apps.datasets.rows.page_values import number
from apps.datasets.rows.search import all_found, found_ids
from apps.datasets.rows.withheld import documents_hidden, rows_readable
from basics.errors import Missing
from batches.selectors import BatchRound, round_open
from tenancy.actors import Actor

MOST_COUNTED = 1_000
"""Of rows that fit a filter: counting on would cost more than the page."""
NARROWED = ("status", "type", "difficulty", "split")
"""Filters that are a column's value."""


def dataset_list(*, actor: Actor) -> QuerySet[Dataset]:
    """Return the workspace's datasets, latest change first, each with ``row_total``, ``approved_total`` and ``latest``.

    ``latest`` is the number of the newest version, None without one.
    """
    actor.require("dataset.read")
    rows_of = DatasetRow.objects.filter(dataset=OuterRef("pk")).order_by().values("dataset")
    approved = rows_of.filter(status=RowStatus.APPROVED)
    newest = DatasetVersion.objects.filter(dataset=OuterRef("pk")).order_by("-number")
    rows = (
        Dataset.objects.visible_to(actor)
        .annotate(
            row_total=Subquery(rows_of.annotate(n=Count("pk")).values("n")),
            approved_total=Subquery(approved.annotate(n=Count("pk")).values("n")),
            latest=Subquery(newest.values("number")[:1]),
        )
        .order_by("-updated_at", "-pk")
    )
    return cast("QuerySet[Dataset]", rows)


def dataset_get(*, actor: Actor, slug: str = "", pk: int | None = None) -> Dataset:
    """Return one dataset by its slug or id, with its counts. Raises Missing."""
    wanted = Q(pk=pk) if pk is not None else Q(slug=slug)
    dataset = dataset_list(actor=actor).filter(wanted).first()
    if dataset is None:
        raise Missing("dataset")
    return dataset


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows of a dataset; "" does not filter.

    Attributes:
        text: words, or their beginnings, that stand in the question, the answer or a source's document name.
        source: name of a document among the sources.
        job: id of the generation that made them.
    """

    status: str = ""
    type: str = ""
    difficulty: str = ""
    split: str = ""
    tag: str = ""
    text: str = ""
    source: str = ""
    job: str = ""

    @classmethod
    def read(cls, values: Mapping[str, str]) -> RowFilter:
        """Return what an address or a form narrows rows by; no text in Postgres holds a NUL."""
        return cls(**{name: values.get(name, "").replace("\x00", "").strip() for name in cls.__slots__})

    @property
    def equal(self) -> dict[str, str]:
        """Return the columns that must have a value."""
        return {name: value for name in NARROWED if (value := getattr(self, name))}

    @property
    def has_words(self) -> bool:
        """Tell whether the index of words finds the rows."""
        return bool(self.text.split() or self.source)

    @property
    def is_search(self) -> bool:
        """Tell whether that index finds them a page at a time."""
        return self.has_words and not self.job

    @property
    def asked_for(self) -> dict[str, str]:
        """Return what narrows the rows, by name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}

    @property
    def asked(self) -> dict[str, Any]:
        """Return the filter as ``row_search`` takes it."""
        return {"text": self.text, "equal": self.equal, "source": self.source, "tag": self.tag}


def row_list(*, actor: Actor, dataset: Dataset, only: RowFilter | None = None) -> QuerySet[DatasetRow]:
    """Return a dataset's rows in the order they came, without those that rest on documents limited to others."""
    actor.require("dataset.read")
    rows: QuerySet[DatasetRow] = rows_readable(
        DatasetRow.objects.visible_to(actor).filter(dataset=dataset), actor
    )
    only = only or RowFilter()
    if only.job:
        made = GenerationItem.objects.filter(job_id=number(only.job), row__isnull=False)
        rows = rows.filter(pk__in=made.values("row_id"))
    if only.has_words:
        return rows.filter(pk__in=all_found(dataset.pk, **only.asked)).order_by("pk")
    rows = rows.filter(**only.equal)
    if only.tag:
        rows = rows.filter(tags__contains=[only.tag])
    return rows.order_by("pk")


@dataclass(frozen=True, slots=True)
class RowPage:
    """Rows in the order they came, and whether there may be others before and after them."""

    rows: list[DatasetRow]
    has_before: bool
    has_after: bool


def row_page(
    *,
    actor: Actor,
    dataset: Dataset,
    only: RowFilter | None = None,
    after: int = 0,
    before: int = 0,
    most: int = 50,
) -> RowPage:
    """Return a page of a dataset's rows; what it costs does not grow with the rows before it.

    Args:
        after, before: a row's id to go on from, forwards or backwards; 0 for the beginning.
    """
    only = only or RowFilter()
    is_back = bool(before and not after)
    past = after or before
    if only.is_search:
        ids = row_ids(actor=actor, dataset=dataset, only=only, past=past, is_back=is_back, most=most + 1)
        rows = row_list(actor=actor, dataset=dataset).filter(pk__in=ids)
    else:
        rows = row_list(actor=actor, dataset=dataset, only=only)
        if past:
            rows = rows.filter(pk__lt=past) if is_back else rows.filter(pk__gt=past)
    found = list(rows.order_by("-pk" if is_back else "pk")[: most + 1])
    page, is_more = found[:most], len(found) > most
    if is_back:
        return RowPage(page[::-1], is_more, True)
    return RowPage(page, bool(after), is_more)


def row_ids(
    *, actor: Actor, dataset: Dataset, only: RowFilter, past: int = 0, is_back: bool = False, most: int
) -> list[int]:
    """Return the ids of the first rows that a search finds, in the order they came, or backwards.

    Args:
        past: only rows after this one (before it, backwards); 0 for all.
    """
    actor.require("dataset.read")
    hidden = documents_hidden(actor)
    if hidden:  # what may not be read is not found either: else its words could be guessed
        rows = rows_readable(DatasetRow.objects.visible_to(actor).filter(dataset=dataset), actor)
        rows = rows.filter(pk__in=all_found(dataset.pk, **only.asked))
        if past:
            rows = rows.filter(pk__lt=past) if is_back else rows.filter(pk__gt=past)
        return list(rows.order_by("-pk" if is_back else "pk").values_list("pk", flat=True)[:most])
    return found_ids(dataset.pk, **only.asked, past=past or None, is_back=is_back, most=most)


def row_count(*, actor: Actor, dataset: Dataset, only: RowFilter) -> int:
    """Return how many rows fit, ``MOST_COUNTED`` + 1 for more than that."""
    actor.require("dataset.read")
    if only.is_search:
        return len(row_ids(actor=actor, dataset=dataset, only=only, most=MOST_COUNTED + 1))
    return row_list(actor=actor, dataset=dataset, only=only)[: MOST_COUNTED + 1].count()


def row_get(*, actor: Actor, dataset: Dataset, pk: int) -> DatasetRow:
    """Return one row. Raises Missing."""
    row = row_list(actor=actor, dataset=dataset).filter(pk=pk).first()
    if row is None:
        raise Missing("row")
    return row


def version_list(*, actor: Actor, dataset: Dataset) -> QuerySet[DatasetVersion]:
    """Return a dataset's versions, newest first."""
    actor.require("dataset.read")
    rows: QuerySet[DatasetVersion] = DatasetVersion.objects.visible_to(actor).filter(dataset=dataset)
    return rows.order_by("-number")


def version_get(*, actor: Actor, dataset: Dataset, number: int | None = None) -> DatasetVersion:
    """Return a version by its number, the newest without one. Raises Missing."""
    rows = version_list(actor=actor, dataset=dataset)
    version = (rows if number is None else rows.filter(number=number)).first()
    if version is None:
        raise Missing("version")
    return version


def version_splits(*, actor: Actor, version: DatasetVersion) -> dict[str, int]:
    """Return how many rows of a version stand in each split; "" is for those in none."""
    actor.require("dataset.read")
    rows = VersionRow.objects.visible_to(actor).filter(version=version).values("split")
    return dict(rows.annotate(n=Count("pk")).order_by("split").values_list("split", "n"))


@dataclass(frozen=True, slots=True)
class PinnedRow:
    """A row as a version has it.

    Attributes:
        ref: the id of the row it was made of; the same row has the same one in every version.
        content_id: of the stored content; equal in versions where the row did not change.
    """

    ref: int
    position: int
    split: str
    content_id: int
    hash: str
    record: Record


def version_rows(
    *, actor: Actor, version: DatasetVersion, split: str = "", batch: int = 500
) -> Iterator[PinnedRow]:
    """Yield a version's rows in their order, a batch at a time, so that memory does not grow with the version."""
    actor.require("dataset.read")
    members = VersionRow.objects.visible_to(actor).filter(version=version)
    if split:
        members = members.filter(split=split)
    last = -1
    while True:
        page = list(members.filter(position__gt=last).select_related("content").order_by("position")[:batch])
        for member in page:
            yield PinnedRow(
                member.row_ref,
                member.position,
                member.split,
                member.content_id,
                member.content.hash,
                replace(from_values(member.content.data), id=str(member.row_ref)),
            )
        if len(page) < batch:
            return
        last = page[-1].position


def job_list(*, actor: Actor, dataset: Dataset | None = None) -> QuerySet[GenerationJob]:
    """Return generation jobs, newest first, each with ``open_spent_usd``: what its open items have cost, None without."""
    actor.require("dataset.read")
    open_items = GenerationItem.objects.filter(job=OuterRef("pk"), state__in=ITEM_OPEN)
    spent = open_items.order_by().values("job").annotate(n=Sum("spent_usd")).values("n")
    rows: QuerySet[GenerationJob] = (
        GenerationJob.objects.visible_to(actor)
        .select_related("dataset")
        .annotate(open_spent_usd=Subquery(spent))
    )
    if dataset is not None:
        rows = rows.filter(dataset=dataset)
    return rows.order_by("-pk")


def job_get(*, actor: Actor, pk: int, dataset: Dataset | None = None) -> GenerationJob:
    """Return one generation job, of a dataset if one is given. Raises Missing."""
    job = job_list(actor=actor, dataset=dataset).filter(pk=pk).first()
    if job is None:
        raise Missing("generation job")
    return job


def job_batch(*, actor: Actor, job: GenerationJob) -> BatchRound | None:
    """Return what of a job is with a provider's batch API, None while nothing is."""
    if not job.is_batched:
        return None
    return round_open(actor=actor, owner=job.topic)


def job_rows(*, actor: Actor, job: GenerationJob) -> Iterator[DatasetRow]:
    """Yield the rows that a job has made, in the order of its quotas."""
    actor.require("dataset.read")
    items = (
        GenerationItem.objects.visible_to(actor)
        .filter(job=job, row__isnull=False)
        .select_related("row")
        .order_by("slot", "round")
    )
    for item in items.iterator(chunk_size=500):
        yield item.row
