"""Datasets of a workspace that was imported: hashes that hold numbers of passages are made again, and versions signed again.

The file's signature has vouched for the rows, so this installation vouches for the versions.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from django.utils import timezone

from apps.datasets.models import (
    JOB_ACTIVE,
    WORK_ACTIVE,
    Acceptance,
    DatasetCheck,
    DatasetExport,
    DatasetImport,
    DatasetRow,
    DatasetVersion,
    GenerationJob,
    GenerationState,
    RowContent,
    RowReview,
    VersionRow,
    WorkStatus,
)
from apps.datasets.records.columns import record_of
from apps.datasets.records.record import hash_of
from apps.datasets.versions.services import signature_of
from basics.errors import Invalid
from basics.texts import gettext as _
from blobs.services import drop
from exports.moves import Arrival
from tenancy.database.base import as_login_role

_BATCH = 500
_ROW = "datasets.DatasetRow"
# How ``checks.looking`` names a row of another dataset, and ``curation.jobs`` a row among the findings of an export.
_SEEN = re.compile(r"(row )(\d{1,18})( of .*)", re.DOTALL)
_SHOWN = re.compile(
    r"((?:Shares|Means the same as) “.*?” (?:with|of) (?:training )?row )(\d{1,18})(.*)", re.DOTALL
)


def datasets_arrived(arrival: Arrival) -> None:
    """Make hashes and signatures again, and end what was under way; in the transaction of the import."""
    now, why = timezone.now(), arrival.was_under_way
    mine = {"tenant": arrival.tenant}
    for model in (DatasetCheck, DatasetImport, DatasetExport):
        model.objects.filter(**mine, status__in=WORK_ACTIVE).update(
            status=WorkStatus.FAILED, error_code="workspace_moved", error_message=why, finished_at=now
        )
    open_jobs = GenerationJob.objects.filter(**mine, state__in=[*JOB_ACTIVE, GenerationState.PAUSED])
    open_jobs.update(state=GenerationState.STOPPED, reason=why, finished_at=now)
    # What a division has moved is in a file with the numbers of the other server: it can't be undone here.
    for check in DatasetCheck.objects.filter(**mine, options__has_key="moves"):
        key = check.options.pop("moves")
        check.save(update_fields=["options"])
        drop(arrival.tenant.pk, key)
    with as_login_role():  # versions and contents are append-only for everybody else
        try:
            _overlaps_name(arrival)
            _hashes_make(arrival)
        except (Invalid, ValueError, TypeError, KeyError, AttributeError) as error:
            raise Invalid(
                "import_refused", _("This file can't be imported: a dataset has a row that can't be read.")
            ) from error


def _overlaps_name(arrival: Arrival) -> None:
    """Let sentences about rows that models may have seen name the rows by their numbers here."""
    mine = {"tenant": arrival.tenant}
    found = DatasetCheck.objects.filter(**mine, result__has_key="overlaps")
    for check in found.iterator(chunk_size=_BATCH):
        named = [_renamed(arrival, one, "seen", _SEEN) for one in check.result["overlaps"]]
        if any(named):
            check.save(update_fields=["result"])
    for export in DatasetExport.objects.filter(**mine).exclude(findings=[]).iterator(chunk_size=_BATCH):
        named = [_renamed(arrival, one, "shown", _SHOWN) for one in export.findings]
        if any(named):
            export.save(update_fields=["findings"])
    for waiver in Acceptance.objects.filter(**mine, kind="contamination").iterator(chunk_size=_BATCH):
        shown = {"shown": waiver.shown}
        if _renamed(arrival, shown, "shown", _SHOWN):
            Acceptance.objects.filter(**mine, pk=waiver.pk).update(shown=shown["shown"][:200])


def _renamed(arrival: Arrival, finding: dict[str, Any], name: str, pattern: re.Pattern[str]) -> bool:
    """Put the number here into a text of a finding; tells whether it names a row."""
    match = pattern.fullmatch(str(finding.get(name, "")))
    if match is not None:
        finding[name] = f"{match[1]}{arrival.number(_ROW, int(match[2])) or 0}{match[3]}"
    return match is not None


def _hashes_make(arrival: Arrival) -> None:
    tenant = arrival.tenant
    reviewed = set(RowReview.objects.filter(tenant=tenant).values_list("row__dataset_id", "content_hash"))
    became: dict[tuple[int, str], str] = {}

    def note(dataset_id: int, old: str, made: str) -> None:
        if (dataset_id, old) in reviewed:
            became[dataset_id, old] = made

    for content in RowContent.objects.filter(tenant=tenant).iterator(chunk_size=_BATCH):
        made = hash_of(content.data)
        note(content.dataset_id, content.hash, made)
        if made != content.hash:
            RowContent.objects.filter(tenant=tenant, pk=content.pk).update(hash=made)
    for row in DatasetRow.objects.filter(tenant=tenant).iterator(chunk_size=_BATCH):
        made = record_of(row).content_hash
        note(row.dataset_id, row.content_hash, made)
        if made != row.content_hash:
            DatasetRow.objects.filter(tenant=tenant, pk=row.pk).update(content_hash=made)
    for review in RowReview.objects.filter(tenant=tenant).select_related("row").iterator(chunk_size=_BATCH):
        made = became.get((review.row.dataset_id, review.content_hash), review.content_hash)
        if made != review.content_hash:
            RowReview.objects.filter(tenant=tenant, pk=review.pk).update(content_hash=made)
    for version in DatasetVersion.objects.filter(tenant=tenant):
        members = VersionRow.objects.filter(tenant=tenant, version=version).order_by("position")
        digest = hashlib.sha256()
        for known in members.values_list("content__hash", flat=True).iterator(chunk_size=2_000):
            digest.update(f"{known}\n".encode())
        made = digest.hexdigest() if version.row_count else version.content_hash
        DatasetVersion.objects.filter(tenant=tenant, pk=version.pk).update(
            content_hash=made, signature=signature_of(made, version.manifest)
        )
