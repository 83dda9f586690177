"""What the jobs of a dataset do: bring rows in, write versions out, look over rows. Each is safe to run again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, Protocol, TypeVar, cast

from django.db import transaction
from django.utils import timezone

from apps.collections.embedding import default_setting, embedder_for, space_for
from apps.conversations.assistant_selectors import assistant_list
from apps.datasets import files
from apps.datasets.columns import record_columns, record_of
from apps.datasets.curation import contamination, duplicates, scan
from apps.datasets.curation.splits import SplitItem, divide, split_item
from apps.datasets.formats import Card, RowError, format_get, validate
from apps.datasets.models import (
    Acceptance,
    Dataset,
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetRow,
    RowStatus,
    Work,
    WorkStatus,
)
from apps.datasets.record import Record, Split
from apps.datasets.selectors import version_rows
from apps.datasets.services.rows import NewRow, rows_insert
from jobs.context import JobCancelled
from jobs.notify import notify
from tenancy.actors import system_actor
from tenancy.services import audit_record

W = TypeVar("W", bound=Work)
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


def export_run(ctx: WorkContext, pk: int) -> None:
    """Look for what must not leave, write the file, read it back, keep it."""
    row = _claim(ctx, DatasetExport, pk, "version", "dataset", "tenant")
    actor = system_actor(row.tenant_id)

    def records() -> Iterator[Record]:
        found = version_rows(actor=actor, version=row.version, split=row.split, batch=BATCH)
        for number, pinned in enumerate(found):
            if number % BATCH == 0:
                ctx.check()
            yield pinned.record

    findings, count = _findings(row, records)
    if count:
        _end(ctx, row, WorkStatus.BLOCKED, findings=findings, finding_count=count, error_code="decision_needed", error_message="Some rows hold what should not leave unseen. Decide about it, then export again.")  # fmt: skip
        return
    form = format_get(row.format)
    key = files.dataset_file_key(row.tenant_id, row.dataset_id, f"export-{row.pk}")
    written = files.dataset_file_write(key, form.write(records, _card(row, records)))
    result = validate(form, files.dataset_file_path(key), records)
    facts = {
        "size": written.size,
        "rows": result.rows,
        "left_out": result.left_out,
        "problems": list(result.problems),
        "findings": [],
        "finding_count": 0,
    }
    if result.is_good:
        _end(ctx, row, WorkStatus.COMPLETED, file=key, **facts)
        return
    files.dataset_file_remove(key)
    message = f"The file does not read back as it should in {result.failed:,} rows, so it is not offered."  # fmt: skip
    _end(ctx, row, WorkStatus.FAILED, error_code="export_differs", error_message=message, **facts)


def _findings(row: DatasetExport, records: Any) -> tuple[list[dict[str, Any]], int]:
    """Return the first findings that nobody has let pass, and how many there are."""
    accepted = set(
        Acceptance.objects.filter(dataset_id=row.dataset_id).values_list("fingerprint", flat=True)
    )
    listed: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()

    def take(name: str, **shown: Any) -> None:
        if name in accepted or name in seen:
            return
        seen.add(name)
        if len(listed) < LISTED:
            listed[name] = {"fingerprint": name, **shown}

    for record in records():
        for hit in scan.scan(record):
            take(hit.fingerprint, kind=hit.kind, row=record.id, field=hit.field, shown=hit.shown)
    for overlap in _overlaps(row.dataset, records):
        if overlap.is_contamination:
            where = f"training row {overlap.seen}" if overlap.seen.isdecimal() else overlap.seen
            shown = f"Shares “{overlap.text[:120]}” with {where}"
            take(overlap.fingerprint, kind="contamination", row=overlap.evaluated, field="question", shown=shown)  # fmt: skip
    return list(listed.values()), len(seen)


def _overlaps(dataset: Dataset, records: Any) -> Iterator[contamination.Overlap]:
    """Yield what rows for evaluation share with rows for training, other sets that were named, and prompts."""
    evaluated = (r for r in records() if r.split in (Split.TEST, Split.VALIDATION))
    trained = (r for r in records() if r.split == Split.TRAIN)
    named = dataset.options.get("against", [])
    others = Dataset.objects.filter(tenant_id=dataset.tenant_id, pk__in=named).order_by("pk")
    sets = (
        replace(record, id=f"row {record.id} of {other.name}")
        for other in others
        for record in _rows_of(other)
    )
    assistants = assistant_list(actor=system_actor(dataset.tenant_id))
    prompts = {
        f"the prompt of the assistant {row.name}": row.published.prompt
        for row in assistants
        if row.published is not None and row.published.prompt
    }
    return contamination.contamination(chain(trained, sets), evaluated, prompts)


def _card(row: DatasetExport, records: Any) -> Card:
    counts: dict[str, Counter[str]] = {n: Counter() for n in ("licenses", "splits", "types", "languages")}  # fmt: skip
    total = 0
    for record in records():
        total += 1
        counts["licenses"].update(record.licenses)
        counts["splits"][str(record.split)] += 1
        counts["types"][str(record.type)] += 1
        counts["languages"][record.language] += 1
    return Card(
        row.dataset.name,
        str(row.version.number),
        row.dataset.description,
        row.version.content_hash,
        total,
        **counts,
    )


def import_run(ctx: WorkContext, pk: int) -> None:
    """Read a file and add its rows, a batch at a time; what it added before a crash is counted as added."""
    row = _claim(ctx, DatasetImport, pk, "dataset", "tenant")
    actor = system_actor(row.tenant_id, row.created_by_id)
    found = 0
    problems: list[dict[str, Any]] = []
    failed = 0

    def errors() -> Iterator[bytes]:
        """Add the rows on the way; what comes out is the file of those that could not be read."""
        nonlocal found, failed
        batch: list[NewRow] = []
        for item in format_get(row.format).read(files.dataset_file_path(row.file)):
            if isinstance(item, RowError):
                failed += 1
                values = asdict(item)
                if len(problems) < LISTED:
                    problems.append(values)
                yield json.dumps(values, ensure_ascii=False).encode() + b"\n"
                continue
            found += 1
            lineage = {"import": row.pk, "row": found, "id": item.id}
            batch.append(NewRow(item, RowStatus.REVIEW, lineage))
            if len(batch) == BATCH:
                add(batch)
                batch = []
        add(batch)

    def add(batch: list[NewRow]) -> None:
        ctx.check()
        if batch and not row.is_trial:
            with transaction.atomic():
                ctx.hold()
                rows_insert(row.tenant, actor, row.dataset, batch)
        ctx.progress(found, 0, f"{found:,} rows")

    key = files.dataset_file_key(row.tenant_id, row.dataset_id, f"errors-{row.pk}.jsonl")
    files.dataset_file_write(key, errors())
    if not failed:
        files.dataset_file_remove(key)
    mine = DatasetRow.objects.filter(dataset=row.dataset, lineage__contains={"import": row.pk})
    created = 0 if row.is_trial else mine.count()
    _end(
        ctx,
        row,
        WorkStatus.COMPLETED,
        found=found,
        created=created,
        duplicates=0 if row.is_trial else found - created,
        failed=failed,
        problems=problems,
        errors_file=key if failed else "",
    )
    files.dataset_file_remove(row.file)


def check_run(ctx: WorkContext, pk: int) -> None:
    """Look over a dataset's rows, rejected ones left out."""
    row = _claim(ctx, DatasetCheck, pk, "dataset", "tenant")
    result = _CHECKS[DatasetCheck.Kind(row.kind)](ctx, row)
    _end(ctx, row, WorkStatus.COMPLETED, result=result)


def _duplicates(ctx: WorkContext, check: DatasetCheck) -> dict[str, Any]:
    rows = [_question(record) for record in _records(ctx, check)]
    found = [*duplicates.exact(rows), *duplicates.near(rows), *duplicates.same_passage(rows)]
    notes: list[str] = []
    if check.options.get("with_meaning"):
        if len(rows) > duplicates.MAX_MEANING:
            notes.append(f"Meanings were not compared: that takes at most {duplicates.MAX_MEANING:,} rows.")  # fmt: skip
        elif rows:
            embedder = embedder_for(
                space_for(default_setting(), tenant=check.tenant), tenant=check.tenant
            )
            vectors = embedder.embed_documents(
                [row.question for row in rows], on_progress=lambda *_: ctx.check()
            )
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
    found = list(_overlaps(check.dataset, lambda: _records(ctx, check)))
    found.sort(key=lambda hit: (not hit.is_contamination, -hit.words))
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
    items: list[SplitItem] = [split_item(record) for record in _records(ctx, check)]
    wanted = divide(items, check.options["shares"], int(check.options["seed"]))
    moved = kept_apart = 0
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
                # The same content would be there twice in one split: the row stays where it is.
                if columns["content_hash"] in taken:
                    kept_apart += 1
                    continue
                taken.add(columns["content_hash"])
                row.split, row.content_hash = columns["split"], columns["content_hash"]
                row.updated_at = timezone.now()
                ready.append(row)
            DatasetRow.objects.bulk_update(ready, ["split", "content_hash", "updated_at"])
            moved += len(ready)
    return {
        "rows": len(wanted),
        "counts": dict(Counter(wanted.values())),
        "moved": moved,
        "left": kept_apart,
        "documents": len({name for item in items for name in item.documents}),
    }


_CHECKS = {
    DatasetCheck.Kind.DUPLICATES: _duplicates,
    DatasetCheck.Kind.CONTAMINATION: _contamination,
    DatasetCheck.Kind.SECRETS: _secrets,
    DatasetCheck.Kind.SPLITS: _splits,
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


def _claim(ctx: WorkContext, model: type[W], pk: int, *related: str) -> W:
    with transaction.atomic():
        ctx.hold()
        rows = model.objects.select_related(*related).select_for_update(of=("self",))
        row = cast("W | None", rows.filter(pk=pk, job_id=ctx.job_id).first())
        if row is None:
            raise JobCancelled(f"work {pk} is gone or has another job")
        row.status = WorkStatus.RUNNING
        row.save(update_fields=["status"])
    return row


def _end(ctx: WorkContext, row: Work, status: WorkStatus, **facts: Any) -> None:
    """End the work and its job in one transaction."""
    with transaction.atomic():
        ctx.hold()
        row.status, row.finished_at = status, timezone.now()
        row.error_code = row.error_message = ""
        for name, value in facts.items():
            setattr(row, name, value)
        row.save()
        audit_record(
            tenant=row.tenant,
            actor=system_actor(row.tenant_id, row.created_by_id),
            action="dataset.work_end",
            object=row,
            data={"status": status.value},
        )
        if ctx.topic:
            notify(row.tenant_id, ctx.topic)
        ctx.complete()
