"""Datasets of a workspace that was imported: hashes that hold numbers of passages are made again, and versions signed again.

The file's signature has vouched for the rows, so this installation vouches for the versions.
"""

from __future__ import annotations

import hashlib

from django.utils import timezone
from django.utils.translation import gettext as _

from apps.datasets.models import (
    JOB_ACTIVE,
    WORK_ACTIVE,
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
from blobs.services import drop
from exports.moves import Arrival
from tenancy.database.base import as_login_role

_BATCH = 500


def datasets_arrived(arrival: Arrival) -> None:
    """Make hashes and signatures again, and end what was under way; in the transaction of the import."""
    now, why = timezone.now(), arrival.was_under_way
    mine = {"tenant": arrival.tenant}
    for model in (DatasetCheck, DatasetImport, DatasetExport):
        model.objects.filter(**mine, status__in=WORK_ACTIVE).update(
            status=WorkStatus.FAILED, error_code="workspace_moved", error_message=why, finished_at=now
        )
    open_jobs = GenerationJob.objects.filter(**mine, state__in=[*JOB_ACTIVE, GenerationState.PAUSED])
    open_jobs.update(state=GenerationState.STOPPED, reason=why[:300], finished_at=now)
    # What a division has moved is in a file with the numbers of the other server: it can't be undone here.
    for check in DatasetCheck.objects.filter(**mine, options__has_key="moves"):
        key = check.options.pop("moves")
        check.save(update_fields=["options"])
        drop(arrival.tenant.pk, key)
    with as_login_role():  # versions and contents are append-only for everybody else
        try:
            _hashes_make(arrival)
        except (Invalid, ValueError, TypeError, KeyError, AttributeError) as error:
            raise Invalid(
                "import_refused", _("This file can't be imported: a dataset has a row that can't be read.")
            ) from error


def _hashes_make(arrival: Arrival) -> None:
    tenant = arrival.tenant
    contents: dict[int, str] = {}
    became: dict[tuple[int, str], str] = {}
    for content in RowContent.objects.filter(tenant=tenant).iterator(chunk_size=_BATCH):
        made = hash_of(content.data)
        became[content.dataset_id, content.hash] = contents[content.pk] = made
        if made != content.hash:
            RowContent.objects.filter(tenant=tenant, pk=content.pk).update(hash=made)
    for row in DatasetRow.objects.filter(tenant=tenant).iterator(chunk_size=_BATCH):
        made = record_of(row).content_hash
        became[row.dataset_id, row.content_hash] = made
        if made != row.content_hash:
            DatasetRow.objects.filter(tenant=tenant, pk=row.pk).update(content_hash=made)
    for review in RowReview.objects.filter(tenant=tenant).select_related("row").iterator(chunk_size=_BATCH):
        made = became.get((review.row.dataset_id, review.content_hash), review.content_hash)
        if made != review.content_hash:
            RowReview.objects.filter(tenant=tenant, pk=review.pk).update(content_hash=made)
    for version in DatasetVersion.objects.filter(tenant=tenant):
        members = VersionRow.objects.filter(tenant=tenant, version=version).order_by("position")
        digest = hashlib.sha256()
        for pk in members.values_list("content_id", flat=True).iterator(chunk_size=2_000):
            digest.update(f"{contents[pk]}\n".encode())
        made = digest.hexdigest() if version.row_count else version.content_hash
        DatasetVersion.objects.filter(tenant=tenant, pk=version.pk).update(
            content_hash=made, signature=signature_of(made, version.manifest)
        )
