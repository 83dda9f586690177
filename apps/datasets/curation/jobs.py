"""What the jobs of a dataset do: bring rows in, write versions out, look over rows. Each is safe to run again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar, cast

from django.db import transaction
from django.utils import timezone

from apps.datasets.checks import scan
from apps.datasets.checks.contamination import Overlap
from apps.datasets.checks.coverage import coverage_of
from apps.datasets.checks.looking import BATCH, CHECKS, LISTED, WorkContext, embedding, overlaps
from apps.datasets.checks.splits import document_key
from apps.datasets.curation.dividing import splits_run
from apps.datasets.curation.stopping import import_note
from apps.datasets.formats import Card, Format, RowError, format_get, validate
from apps.datasets.models import (
    Acceptance,
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetRow,
    RowStatus,
    Work,
    WorkStatus,
)
from apps.datasets.records.record import Record
from apps.datasets.rows import files
from apps.datasets.rows.selectors import version_rows
from apps.datasets.rows.services import NewRow, rows_insert
from basics.texts import gettext as _
from basics.texts import ngettext, number_told
from blobs.leases import is_kept
from blobs.services import ReceivedFile
from blobs.services import drop as blob_drop
from blobs.services import name as blob_name
from jobs.context import JobCancelled
from jobs.notify import notify
from tenancy.actors import system_actor
from tenancy.services import audit_record
from toolloop.storable import json_storable

W = TypeVar("W", bound=Work)


def export_run(ctx: WorkContext, pk: int) -> None:
    """Look for what must not leave, write the file, read it back, keep it."""
    row = _claim(ctx, DatasetExport, pk, "version", "dataset", "tenant")
    is_kept(files.written_key(row, "export"))  # a store that is away is heard of before the work
    actor = system_actor(row.tenant_id)

    def rows_of(split: str) -> Iterator[Record]:
        found = version_rows(actor=actor, version=row.version, split=split, batch=BATCH)
        for number, pinned in enumerate(found):
            if number % BATCH == 0:
                ctx.check()
            yield pinned.record

    records = partial(rows_of, row.split)
    # What was trained on stands in another split than what is evaluated: both are looked at, whatever leaves.
    findings, count = _findings(ctx, row, partial(rows_of, ""))
    if count:
        _end(
            ctx,
            row,
            WorkStatus.BLOCKED,
            findings=findings,
            finding_count=count,
            error_code="decision_needed",
            error_message=_(
                "Some rows contain data that needs a decision before export. Decide, then export again."
            ),
        )
        return
    form = format_get(row.format)
    key = files.written_key(row, "export")
    written = files.dataset_file_write(row.tenant_id, key, form.write(records, _card(row, records)))
    try:
        _export_end(ctx, row, key, written, form, records)
    finally:
        written.discard()


def _export_end(
    ctx: WorkContext,
    row: DatasetExport,
    key: str,
    written: ReceivedFile,
    form: Format,
    records: Callable[[], Iterator[Record]],
) -> None:
    """Read the file back, and name it where it says what the rows say."""
    with files.dataset_file(key) as path:
        result = validate(form, path, records)
    facts: dict[str, Any] = {
        "size": written.size,
        "rows": result.rows,
        "left_out": result.left_out,
        "problems": list(result.problems),
        "findings": [],
        "finding_count": 0,
    }
    if result.is_good:
        _end(ctx, row, WorkStatus.COMPLETED, names=(written, key), file=key, **facts)
        return
    message = _(
        "%(rows)s rows didn't read back correctly, so the file can't be downloaded. Export again."
    ) % {"rows": number_told(result.failed)}
    _end(ctx, row, WorkStatus.FAILED, error_code="export_differs", error_message=message, **facts)


def _findings(
    ctx: WorkContext, row: DatasetExport, records: Callable[[], Iterator[Record]]
) -> tuple[list[dict[str, Any]], int]:
    """Return the first findings that nobody has let pass, and how many there are.

    Args:
        records: all rows of the version; secrets are looked for in those that leave.
    """
    accepted = set(Acceptance.objects.filter(dataset_id=row.dataset_id).values_list("fingerprint", flat=True))
    listed: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()

    def take(name: str, **shown: Any) -> None:
        if name in accepted or name in seen:
            return
        seen.add(name)
        if len(listed) < LISTED:
            listed[name] = {"fingerprint": name, **shown}

    splits: dict[str, set[str]] = {}
    first: tuple[str, str] | None = None
    for record in records():
        if row.split in ("", record.split):
            for hit in scan.scan(record):
                take(hit.fingerprint, kind=hit.kind, row=record.id, field=hit.field, shown=hit.shown)
        for source in record.sources if record.split else ():
            seen_in = splits.setdefault(document_key(source), set())
            seen_in.add(str(record.split))
            if first is None and len(seen_in) > 1:
                first = record.id, source.document
    if first is not None:
        leaking = sorted(name for name, found in splits.items() if len(found) > 1)
        shown = ngettext(
            "%(n)s document is in more than one split: “%(name)s”. Divide the rows again to fix this.",
            "%(n)s documents are in more than one split, such as “%(name)s”. Divide the rows again to fix this.",
            len(leaking),
        ) % {"n": number_told(len(leaking)), "name": first[1][:100]}
        name = hashlib.sha256("\0".join(["leak", *leaking]).encode()).hexdigest()
        take(name, kind="leak", row=first[0], field="split", shown=shown)
    embed = embedding(ctx, row) if row.dataset.options.get("with_meaning") else None
    for overlap in overlaps(row.dataset, records, embed):
        if overlap.is_contamination:
            take(
                overlap.fingerprint,
                kind="contamination",
                row=overlap.evaluated,
                field="question",
                shown=_overlap_words(overlap),
            )
    return list(listed.values()), len(seen)


def _overlap_words(overlap: Overlap) -> str:
    """Say what an evaluation row shares with what models may have seen; ``versions.arriving`` reads these sentences."""
    is_row = overlap.seen.isdecimal()
    if overlap.similarity and is_row:
        text = _("Means the same as “%(text)s” of training row %(seen)s")
    elif overlap.similarity:
        text = _("Means the same as “%(text)s” of %(seen)s")
    elif is_row:
        text = _("Shares “%(text)s” with training row %(seen)s")
    else:
        text = _("Shares “%(text)s” with %(seen)s")
    return text % {"text": overlap.text[:120], "seen": overlap.seen}


def _card(row: DatasetExport, records: Any) -> Card:
    counts: dict[str, Counter[str]] = {n: Counter() for n in ("licenses", "splits", "types", "languages")}
    total = 0
    for record in records():
        total += 1
        counts["licenses"].update(record.licenses)
        counts["splits"][str(record.split)] += 1
        counts["types"][str(record.type)] += 1
        counts["languages"][record.language] += 1
    actor = system_actor(row.tenant_id)
    found = coverage_of(actor=actor, dataset=row.dataset, records=records())
    return Card(
        row.dataset.name,
        str(row.version.number),
        row.dataset.description,
        row.version.content_hash,
        total,
        statistics=row.version.manifest,
        coverage=tuple((one.document, one.chunks, one.asked) for one in found.documents),
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
        for item in format_get(row.format).read(path):
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
                if any(rows_insert(row.tenant, actor, row.dataset, batch)):
                    ctx.advanced()
        ctx.progress(found, 0, f"{found:,} rows")

    key = files.written_key(row, "errors")
    with files.dataset_file(row.file) as path:
        written = files.dataset_file_write(row.tenant_id, key, errors())
    try:
        mine = DatasetRow.objects.filter(dataset=row.dataset, lineage__contains={"import": row.pk})
        created = 0 if row.is_trial else mine.count()
        _end(
            ctx,
            row,
            WorkStatus.COMPLETED,
            names=(written, key) if failed else None,
            drops=row.file,
            file="",
            found=found,
            created=created,
            duplicates=0 if row.is_trial else found - created,
            failed=failed,
            problems=problems,
            errors_file=key if failed else "",
        )
    finally:
        written.discard()


def check_run(ctx: WorkContext, pk: int) -> None:
    """Look over a dataset's rows, rejected ones left out, or divide them into splits."""
    row = _claim(ctx, DatasetCheck, pk, "dataset", "tenant")
    run = splits_run if row.kind == DatasetCheck.Kind.SPLITS else CHECKS[DatasetCheck.Kind(row.kind)]
    result = run(ctx, row)
    _end(ctx, row, WorkStatus.COMPLETED, result=result)


def _claim(ctx: WorkContext, model: type[W], pk: int, *related: str) -> W:
    with transaction.atomic():
        ctx.hold()
        rows = model.objects.select_related(*related).select_for_update(of=("self",))
        row = cast("W | None", rows.filter(pk=pk, job_id=ctx.job_id).first())
        if row is None:
            raise JobCancelled(f"work {pk} is gone or has another job")
        row.status = WorkStatus.RUNNING
        row.save(update_fields=["status"])
        if ctx.topic:
            notify(row.tenant_id, ctx.topic)
    return row


def _end(
    ctx: WorkContext,
    row: Work,
    status: WorkStatus,
    *,
    names: tuple[ReceivedFile, str] | None = None,
    drops: str = "",
    **facts: Any,
) -> None:
    """End the work and its job in one transaction, with the file that it names from now on and the key that it drops."""
    with transaction.atomic():
        ctx.hold()
        if names is not None:
            blob_name(*names)
        if drops:
            blob_drop(row.tenant_id, drops)
        row.status, row.finished_at = status, timezone.now()
        row.error_code = row.error_message = ""
        for name, value in facts.items():
            setattr(row, name, json_storable(value))
        row.save()
        audit_record(
            tenant=row.tenant,
            actor=system_actor(row.tenant_id, row.created_by_id),
            action="dataset.work_end",
            object=row,
            data={"status": status.value},
        )
        if isinstance(row, DatasetImport):
            import_note(row)
        if ctx.topic:
            notify(row.tenant_id, ctx.topic)
        ctx.complete()
