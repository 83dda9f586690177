"""Look over the rows of a dataset: duplicates, contamination, secrets, splits, coverage. ``curation_jobs`` runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, replace
from typing import Any, Protocol

from django.db import transaction
from django.utils import timezone

from apps.collections.embedding import default_setting, embedder_for, space_for
from apps.conversations.assistant_selectors import assistant_list
from apps.datasets.columns import record_columns, record_of
from apps.datasets.coverage import coverage_of
from apps.datasets.curation import contamination, duplicates, scan
from apps.datasets.curation.splits import (
    SplitItem,
    divide,
    document_key,
    gathered,
    leaks,
    split_item,
)
from apps.datasets.models import Dataset, DatasetCheck, DatasetRow, RowStatus, Work
from apps.datasets.record import Record, Split
from apps.datasets.selectors import RowFilter, row_list
from tenancy.actors import system_actor

LISTED = 200
BATCH = 500


class WorkContext(Protocol):
    """What the work needs of ``jobs.context.JobContext``."""

    job_id: int
    topic: str

    def check(self) -> None:
        """Raise when the job must stop."""

    def hold(self) -> None:
        """Raise unless this worker still holds the job."""

    def complete(self) -> None:
        """End the job in the current transaction."""

    def progress(self, current: int, total: int, message: str = "") -> None:
        """Store and announce how far the job is."""


def overlaps(
    dataset: Dataset, records: Any, embed: contamination.Embed | None = None
) -> Iterator[contamination.Overlap]:
    """Yield what rows for evaluation share with rows for training, other sets that were named, and prompts.

    Args:
        embed: compares questions by meaning too; pairs that share words already are not told twice.
    """
    named = dataset.options.get("against", [])
    others = Dataset.objects.filter(tenant_id=dataset.tenant_id, pk__in=named).order_by("pk")
    assistants = assistant_list(actor=system_actor(dataset.tenant_id))
    prompts = {
        f"the prompt of the assistant {row.name}": row.published.prompt
        for row in assistants
        if row.published is not None and row.published.prompt
    }

    def evaluated() -> Iterator[Record]:
        return (r for r in records() if r.split in (Split.TEST, Split.VALIDATION))

    def seen() -> Iterator[Record]:
        yield from (r for r in records() if r.split == Split.TRAIN)
        for other in others:
            for record in _rows_of(other):
                yield replace(record, id=f"row {record.id} of {other.name}")

    told: set[tuple[str, str]] = set()
    for overlap in contamination.contamination(seen(), evaluated(), prompts):
        told.add((overlap.evaluated, overlap.seen))
        yield overlap
    if embed is not None:
        mine = [_question(record) for record in evaluated()]
        for overlap in contamination.same_meaning(seen(), mine, embed, prompts):
            if (overlap.evaluated, overlap.seen) not in told:
                yield overlap


def embedding(ctx: WorkContext, work: Work) -> contamination.Embed:
    """Return what makes vectors of questions, with the embedder that new collections get."""
    space = space_for(default_setting(), tenant=work.tenant)
    embedder = embedder_for(space, tenant=work.tenant)
    return lambda texts: embedder.embed_documents(texts, on_progress=lambda *_: ctx.check())


def _duplicates(ctx: WorkContext, check: DatasetCheck) -> dict[str, Any]:
    rows = [_question(record) for record in _records(ctx, check)]
    found = [*duplicates.exact(rows), *duplicates.near(rows), *duplicates.same_passage(rows)]
    notes: list[str] = []
    if check.options.get("with_meaning"):
        if len(rows) > duplicates.MAX_MEANING:
            notes.append(f"Meanings were not compared: that takes at most {duplicates.MAX_MEANING:,} rows.")  # fmt: skip
        elif rows:
            vectors = embedding(ctx, check)([row.question for row in rows])
            found += duplicates.same_meaning([row.id for row in rows], vectors)
    counts = Counter(pair.kind for pair in found)
    return {
        "rows": len(rows),
        "counts": dict(counts),
        "notes": notes,
        "pairs": [asdict(pair) for pair in found[:LISTED]],
    }


def _question(record: Record) -> Record:
    """Return what comparing needs of a record, so that a hundred thousand of them fit into memory."""
    sources = tuple(replace(s, quote=s.quote if not s.end else "") for s in record.sources)
    return Record(record.question, id=record.id, type=record.type, sources=sources)


def _contamination(ctx: WorkContext, check: DatasetCheck) -> dict[str, Any]:
    embed = embedding(ctx, check) if check.options.get("with_meaning") else None
    found = list(overlaps(check.dataset, lambda: _records(ctx, check), embed))
    found.sort(key=lambda hit: (not hit.is_contamination, -hit.words, -hit.similarity))
    return {
        "counts": {
            "contaminated": sum(hit.is_contamination for hit in found),
            "overlapping": sum(not hit.is_contamination for hit in found),
        },
        "overlaps": [asdict(hit) for hit in found[:LISTED]],
    }


def _secrets(ctx: WorkContext, check: DatasetCheck) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    listed: list[dict[str, Any]] = []
    total = 0
    for record in _records(ctx, check):
        total += 1
        for hit in scan.scan(record):
            counts[hit.kind] += 1
            if len(listed) < LISTED:
                listed.append({"row": record.id, "kind": hit.kind, "field": hit.field, "shown": hit.shown})  # fmt: skip
    return {"rows": total, "counts": dict(counts), "findings": listed}


def _splits(ctx: WorkContext, check: DatasetCheck) -> dict[str, Any]:
    """Divide all rows anew, or put chosen ones into a split with those that share a document with them."""
    items: list[SplitItem] = []
    before: dict[str, str] = {}
    names: dict[str, str] = {}
    for record in _records(ctx, check):
        items.append(split_item(record))
        before[record.id] = str(record.split)
        names.update((document_key(source), source.document) for source in record.sources)
    options = check.options
    more: dict[str, Any] = {}
    if "into" in options:
        chosen = _chosen(check) & set(before)
        together = gathered(items, chosen)
        wanted = {item.id: str(options["into"]) for item in together}
        along = [i for i in together if i.id not in chosen and before[i.id] != options["into"]]
        more = {
            "chosen": len(chosen),
            "along": len(along),
            "rows_along": _along(along[:LISTED], together, chosen, before, names),
        }
    else:
        wanted = divide(items, options["shares"], int(options["seed"]))
    moved, left = _moved(ctx, check, wanted)
    after = before | {name: split for name, split in wanted.items() if name not in left}
    return {
        "rows": len(items),
        "counts": dict(Counter(after.values())),
        "moved": moved,
        "left": len(left),
        "documents": len(names),
        "leaks": len(leaks((after[item.id], item.documents) for item in items)),
        **more,
    }


def _chosen(check: DatasetCheck) -> set[str]:
    if "rows" in check.options:
        return {str(pk) for pk in check.options["rows"]}
    actor = system_actor(check.tenant_id, check.created_by_id)
    rows = row_list(actor=actor, dataset=check.dataset, only=RowFilter(**check.options["only"]))
    return {str(pk) for pk in rows.values_list("pk", flat=True).iterator()}


def _along(
    along: Sequence[SplitItem],
    together: Sequence[SplitItem],
    chosen: Set[str],
    before: Mapping[str, str],
    names: Mapping[str, str],
) -> list[dict[str, str]]:
    """Return the rows that came along, where they were, and a document that they share; first with a chosen row."""
    direct = {name for item in together if item.id in chosen for name in item.documents}
    return [
        {
            "row": item.id,
            "before": before[item.id],
            "document": names[min(item.documents, key=lambda name: (name not in direct, name))],
        }
        for item in along
    ]


def _moved(ctx: WorkContext, check: DatasetCheck, wanted: Mapping[str, str]) -> tuple[int, set[str]]:  # fmt: skip
    """Write the splits; returns how many rows have moved, and which stay: the same content is in that split already."""
    moved, left = 0, set()
    ids = [int(name) for name in wanted]
    for start in range(0, len(ids), BATCH):
        ctx.check()
        with transaction.atomic():
            ctx.hold()
            batch = DatasetRow.objects.select_for_update().filter(
                dataset=check.dataset, pk__in=ids[start : start + BATCH]
            )
            changed = [row for row in batch if row.split != wanted[str(row.pk)]]
            new = {
                row.pk: replace(record_of(row), split=Split(wanted[str(row.pk)])) for row in changed
            }
            taken = set(
                DatasetRow.objects.filter(
                    dataset=check.dataset, content_hash__in=[r.content_hash for r in new.values()]
                ).values_list("content_hash", flat=True)
            )
            ready = []
            for row in changed:
                columns = record_columns(new[row.pk])
                if columns["content_hash"] in taken:
                    left.add(str(row.pk))
                    continue
                taken.add(columns["content_hash"])
                row.split, row.content_hash = columns["split"], columns["content_hash"]
                row.updated_at = timezone.now()
                ready.append(row)
            DatasetRow.objects.bulk_update(ready, ["split", "content_hash", "updated_at"])
            moved += len(ready)
    return moved, left


def _coverage(ctx: WorkContext, check: DatasetCheck) -> dict[str, Any]:
    actor = system_actor(check.tenant_id, check.created_by_id)
    records = _records(ctx, check)
    return coverage_of(actor=actor, dataset=check.dataset, records=records).to_json()


CHECKS = {
    DatasetCheck.Kind.DUPLICATES: _duplicates,
    DatasetCheck.Kind.CONTAMINATION: _contamination,
    DatasetCheck.Kind.SECRETS: _secrets,
    DatasetCheck.Kind.SPLITS: _splits,
    DatasetCheck.Kind.COVERAGE: _coverage,
}


def _records(ctx: WorkContext, check: DatasetCheck) -> Iterator[Record]:
    for number, record in enumerate(_rows_of(check.dataset)):
        if number % BATCH == 0:
            ctx.check()
        yield record


def _rows_of(dataset: Dataset) -> Iterator[Record]:
    rows = DatasetRow.objects.filter(dataset=dataset).exclude(status=RowStatus.REJECTED)
    last = 0
    while True:
        page = list(rows.filter(pk__gt=last).order_by("pk")[:BATCH])
        for row in page:
            yield record_of(row)
        if len(page) < BATCH:
            return
        last = page[-1].pk
