"""Start work on a dataset: imports, exports, checks. Jobs do it; ``apps.datasets.curation.jobs`` says how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TypeVar
from uuid import uuid4

from django.conf import settings
from django.db import transaction

from apps.datasets.checks.splits import SHARES, divide
from apps.datasets.curation.dividing import is_kept
from apps.datasets.formats import format_get
from apps.datasets.models import (
    WORK_ACTIVE,
    Acceptance,
    Dataset,
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetVersion,
    RowStatus,
    Split,
    Work,
    WorkStatus,
)
from apps.datasets.rows import files
from apps.datasets.rows.selectors import RowFilter, row_list
from apps.datasets.rows.withheld import version_require
from basics.errors import Conflict, Denied, Invalid
from basics.texts import gettext as _
from basics.texts import number_told
from blobs import services as blobs
from jobs.services import job_enqueue
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

W = TypeVar("W", bound=Work)
MAX_NOTE = 300
MAX_CHOSEN = 1_000
"""Rows that are named by their ids for a split."""
WORK_NOUNS: Mapping[type[Work], str] = {
    DatasetExport: "dataset_export",
    DatasetImport: "dataset_import",
    DatasetCheck: "dataset_check",
}
"""What the audit trail calls the kinds of work."""


def dataset_topic(dataset_id: int) -> str:
    """Return the channel that is told when work on a dataset moves."""
    return f"dataset:{dataset_id}"


def export_start(
    *, tenant: Tenant, actor: Actor, dataset: Dataset, version: DatasetVersion, form: str, split: str = ""
) -> DatasetExport:
    """Start writing a version as a file.

    Args:
        form: a name of ``apps.datasets.formats.FORMATS``.
        split: only these rows; all with "".

    Raises:
        Denied: ``sources_limited``, the file would hold what the actor may not read.
        Invalid: an unknown split, or a format that is unknown or only read.
    """
    actor.require("dataset.write")
    version_require(actor=actor, version=version)
    if not format_get(form).is_export:
        raise _wrong("format", _("This format can only be imported. Choose another one."))
    if split not in ("", *Split.values):
        raise _wrong(
            "split",
            _("“%(split)s” isn't a split. Choose one of: %(values)s.")
            % {"split": split[:40], "values": ", ".join(Split.values)},
        )
    with transaction.atomic():
        row: DatasetExport = DatasetExport.objects.create(
            tenant=tenant,
            dataset=dataset,
            version=version,
            format=form,
            split=split,
            created_by_id=actor.user_id,
        )
        return _begin(tenant, actor, row, "datasets.export_run", dataset, format=form, version=version.number)


def import_start(
    *,
    tenant: Tenant,
    actor: Actor,
    dataset: Dataset,
    form: str,
    name: str,
    chunks: Iterable[bytes],
    is_trial: bool = False,
) -> DatasetImport:
    """Take a file and start reading its rows.

    Args:
        name: of the file, to show.
        chunks: its bytes in pieces.
        is_trial: read it all and report, but add nothing.

    Raises:
        Invalid: an unknown format, or a file that is too large.
    """
    actor.require("dataset.write")
    format_get(form)
    received = blobs.receive(chunks, max_bytes=settings.MAX_UPLOAD_BYTES)
    try:
        key = files.dataset_file_key(tenant.pk, dataset.pk, f"import-{uuid4().hex}")
        blobs.keep(tenant.pk, key, received)
        with transaction.atomic():
            row: DatasetImport = DatasetImport.objects.create(
                tenant=tenant,
                dataset=dataset,
                format=form,
                name=(PurePath(name.replace("\\", "/")).name or "file")[:255],
                is_trial=is_trial,
                created_by_id=actor.user_id,
                file=key,
            )
            blobs.name(received, key)
            return _begin(tenant, actor, row, "datasets.import_run", dataset, format=form, name=row.name)
    finally:
        received.discard()


def check_start(
    *,
    tenant: Tenant,
    actor: Actor,
    dataset: Dataset,
    kind: str,
    shares: Mapping[str, float] | None = None,
    seed: int = 0,
    with_meaning: bool = False,
    against: Sequence[int] | None = None,
    is_trial: bool = False,
) -> DatasetCheck:
    """Start a look over all rows of a dataset, or their division into splits.

    Args:
        kind: of ``DatasetCheck.Kind``.
        shares: for ``splits``: split to its share of the rows.
        seed: for ``splits``: the same seed divides the same rows in the same way.
        with_meaning: for ``duplicates`` and ``contamination``: compare questions by their embeddings too; exports of this
            dataset look at contamination in the same way from then on.
        against: for ``contamination``: ids of other datasets, such as imported public sets, that a model may have been
            trained on; exports of this dataset look at them from then on. None keeps those that were named before.
        is_trial: for ``splits``: say what would come of it, and move nothing.

    Raises:
        Invalid: an unknown kind, shares that do not sum to 1, or a dataset that is not there.
        Conflict: a check of this kind is under way.
    """
    actor.require("dataset.write")
    if kind not in DatasetCheck.Kind.values:
        raise _wrong(
            "kind",
            _("There is no check “%(kind)s”: %(values)s.")
            % {"kind": kind[:40], "values": ", ".join(DatasetCheck.Kind.values)},
        )
    options: dict[str, object] = {}
    if kind == DatasetCheck.Kind.SPLITS:
        chosen = dict(SHARES if shares is None else shares)
        if set(chosen) - set(Split.values):
            raise _wrong("shares", _("A split is one of %(values)s.") % {"values": ", ".join(Split.values)})
        divide([], chosen)
        options = {"shares": chosen, "seed": seed} | ({"is_trial": True} if is_trial else {})
    elif kind == DatasetCheck.Kind.DUPLICATES:
        options = {"with_meaning": with_meaning}
    elif kind == DatasetCheck.Kind.CONTAMINATION:
        named = _named_sets(actor, dataset, against)
        options = {"against": named, "with_meaning": with_meaning}
    return _check_begin(tenant, actor, dataset, kind, options)


def split_assign(
    *,
    tenant: Tenant,
    actor: Actor,
    dataset: Dataset,
    into: str,
    only: RowFilter | None = None,
    row_pks: Sequence[int] = (),
    is_trial: bool = False,
) -> DatasetCheck:
    """Start putting rows into a split. Rows that share a document with them move along, so that no document is in two.

    Args:
        only: which rows; ``row_pks`` names them instead. Rejected rows stay out.
        is_trial: say what would move, and move nothing.

    Raises:
        Invalid: an unknown split, rows that are not narrowed at all, none that fits, or more than ``MAX_CHOSEN`` ids.
        Conflict: rows are being divided already.
    """
    actor.require("dataset.write")
    if into not in Split.values:
        raise _wrong("into", _("Choose a split: %(values)s.") % {"values": ", ".join(Split.values)})
    only = only or RowFilter()
    if bool(only.asked_for) == bool(row_pks) or len(row_pks) > MAX_CHOSEN:
        raise _wrong(
            "rows",
            _("Choose rows by a filter, or list up to %(max_chosen)s ids.")
            % {"max_chosen": number_told(MAX_CHOSEN)},
        )
    options: dict[str, object] = {"into": into}
    options |= {"rows": sorted(set(row_pks))} if row_pks else {"only": only.asked_for}
    options |= {"is_trial": True} if is_trial else {}
    found = row_list(actor=actor, dataset=dataset, only=only)
    if row_pks:
        found = found.filter(pk__in=row_pks)
    if not found.exclude(status=RowStatus.REJECTED).exists():
        raise _wrong("rows", _("No rows match, or all that match are rejected."))
    return _check_begin(tenant, actor, dataset, DatasetCheck.Kind.SPLITS.value, options)


def split_apply(*, tenant: Tenant, actor: Actor, check: DatasetCheck) -> DatasetCheck:
    """Start what a trial of a division has shown. It goes by the rows as they are then.

    Raises:
        Conflict: it was no trial, it has not ended well, or rows are being divided already.
    """
    actor.require("dataset.write")
    if not check.options.get("is_trial") or check.status != WorkStatus.COMPLETED:
        raise Conflict("no_trial", _("Preview the division first."))
    options = {name: value for name, value in check.options.items() if name != "is_trial"}
    return _check_begin(tenant, actor, check.dataset, DatasetCheck.Kind.SPLITS.value, options)


def split_undo(*, tenant: Tenant, actor: Actor, check: DatasetCheck) -> DatasetCheck:
    """Start taking rows back to the splits from which a division has moved them. Rows that were moved since stay.

    A division that was stopped is taken back in the same way.

    Raises:
        Conflict: it has moved nothing, has not ended, or rows are being divided already.
    """
    actor.require("dataset.write")
    if check.is_active or not is_kept(check):
        raise Conflict("nothing_moved", _("This division moved no rows, so there is nothing to undo."))
    return _check_begin(tenant, actor, check.dataset, DatasetCheck.Kind.SPLITS.value, {"undo": check.pk})


def _check_begin(
    tenant: Tenant, actor: Actor, dataset: Dataset, kind: str, options: Mapping[str, object]
) -> DatasetCheck:
    with transaction.atomic():
        locked = Dataset.objects.visible_to(actor).select_for_update().get(pk=dataset.pk)
        if kind == DatasetCheck.Kind.CONTAMINATION and {**locked.options, **options} != locked.options:
            locked.options = {**locked.options, **options}
            locked.save(update_fields=["options"])
        if DatasetCheck.objects.filter(dataset=dataset, kind=kind, status__in=WORK_ACTIVE).exists():
            raise Conflict("check_active", _("This check is already running."))
        row: DatasetCheck = DatasetCheck.objects.create(
            tenant=tenant, dataset=dataset, kind=kind, options=dict(options), created_by_id=actor.user_id
        )
        return _begin(tenant, actor, row, "datasets.check_run", dataset, check=kind)


def _named_sets(actor: Actor, dataset: Dataset, against: Sequence[int] | None) -> list[int]:
    wanted = set(dataset.options.get("against", []) if against is None else against) - {dataset.pk}
    there = Dataset.objects.visible_to(actor).filter(pk__in=wanted).values_list("pk", flat=True)
    if against is not None and wanted - set(there):
        raise _wrong("against", _("Choose datasets of this workspace by their ids."))
    return sorted(there)


def finding_accept(
    *,
    tenant: Tenant,
    actor: Actor,
    dataset: Dataset,
    export: DatasetExport,
    fingerprints: Sequence[str],
    note: str,
) -> list[Acceptance]:
    """Let findings of a blocked export pass, for this and later exports of the dataset.

    Raises:
        Denied: the actor stands for no person.
        Invalid: no reason is given, nothing is chosen, or the export has no such finding.
    """
    actor.require("dataset.write")
    if actor.user_id is None:
        raise Denied(
            "person_needed", _("Only a person can approve an export. Use a key that acts for a person.")
        )
    note = note.strip()[:MAX_NOTE]
    if not note:
        raise _wrong("note", _("Say why this is safe to export."))
    known = {found["fingerprint"]: found for found in export.findings}
    chosen = list(dict.fromkeys(fingerprints))
    if not chosen or set(chosen) - set(known):
        raise _wrong("findings", _("Choose findings of this export."))
    with transaction.atomic():
        rows = [
            Acceptance(
                tenant=tenant,
                dataset=dataset,
                fingerprint=name,
                kind=known[name]["kind"],
                shown=known[name]["shown"][:200],
                note=note,
                user_id=actor.user_id,
            )
            for name in chosen
        ]
        Acceptance.objects.bulk_create(rows, ignore_conflicts=True)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="dataset.finding_accept",
            object=dataset,
            data={
                "export": export.pk,
                "findings": [{"kind": row.kind, "shown": row.shown} for row in rows][:100],
                "count": len(rows),
                "note": note,
            },
        )
    return rows


def _begin(tenant: Tenant, actor: Actor, row: W, kind: str, dataset: Dataset, **facts: str | int) -> W:
    row.job = job_enqueue(
        tenant=tenant, actor=actor, kind=kind, payload={"pk": row.pk}, topic=dataset_topic(dataset.pk)
    )
    row.save(update_fields=["job"])
    audit_record(
        tenant=tenant,
        actor=actor,
        action=f"{WORK_NOUNS[type(row)]}.start",
        object=dataset,
        data={"id": row.pk, **facts},
    )
    return row


def _wrong(field: str, message: str) -> Invalid:
    return Invalid(f"{field}_wrong", message, data={"fields": {field: [message]}})
