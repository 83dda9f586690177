"""Look over the rows of a dataset: duplicates, contamination, secrets, coverage. ``curation_jobs`` runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, Protocol

from apps.collections.index.embedding import default_setting, embedder_for, space_for
from apps.conversations.assistants.selectors import assistant_list
from apps.datasets.checks import contamination, duplicates, scan
from apps.datasets.checks.coverage import coverage_of
from apps.datasets.models import Dataset, DatasetCheck, DatasetRow, RowStatus, Work
from apps.datasets.records.columns import record_of
from apps.datasets.records.parts import Split
from apps.datasets.records.record import Record
from basics.texts import gettext_noop
from tenancy.actors import system_actor

_NOT_COMPARED = gettext_noop("Meanings weren't compared: there are too many rows.")
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

    def advanced(self) -> None:
        """Say that a step is finished for good."""

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
    rows = [_question(record) for record in records_read(ctx, check)]
    found = [*duplicates.exact(rows), *duplicates.near(rows), *duplicates.same_passage(rows)]
    notes: list[str] = []
    if check.options.get("with_meaning"):
        if len(rows) > duplicates.MAX_MEANING:
            notes.append(_NOT_COMPARED)
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
    found = list(overlaps(check.dataset, lambda: records_read(ctx, check), embed))
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
    for record in records_read(ctx, check):
        total += 1
        for hit in scan.scan(record):
            counts[hit.kind] += 1
            if len(listed) < LISTED:
                listed.append({"row": record.id, "kind": hit.kind, "field": hit.field, "shown": hit.shown})
    return {"rows": total, "counts": dict(counts), "findings": listed}


def _coverage(ctx: WorkContext, check: DatasetCheck) -> dict[str, Any]:
    actor = system_actor(check.tenant_id, check.created_by_id)
    records = records_read(ctx, check)
    return coverage_of(actor=actor, dataset=check.dataset, records=records).to_json()


CHECKS = {
    DatasetCheck.Kind.DUPLICATES: _duplicates,
    DatasetCheck.Kind.CONTAMINATION: _contamination,
    DatasetCheck.Kind.SECRETS: _secrets,
    DatasetCheck.Kind.COVERAGE: _coverage,
}


def records_read(ctx: WorkContext, check: DatasetCheck) -> Iterator[Record]:
    """Yield the rows of a check's dataset, rejected ones left out, as long as the job may go on."""
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
