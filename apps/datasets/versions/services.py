"""Freeze a dataset's rows into an immutable version."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from apps.datasets.models import Dataset, DatasetRow, DatasetVersion, RowContent, VersionRow
from apps.datasets.records.columns import record_of
from apps.datasets.records.record import to_values
from apps.datasets.rows.selectors import RowFilter, row_list
from apps.datasets.versions.manifests import manifest_of
from basics.errors import Conflict
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record

BATCH = 500


def version_create(
    *,
    tenant: Tenant,
    actor: Actor,
    dataset: Dataset,
    only: RowFilter | None = None,
    note: str = "",
    manifest: Mapping[str, Any] | None = None,
) -> DatasetVersion:
    """Freeze rows into the next version, with a signed manifest of what they were made of.

    Args:
        only: which rows; all without it. Usually ``RowFilter(status="approved")``.
        manifest: facts that the rows do not tell themselves; kept and signed with the others, and in their place.

    Raises:
        Conflict: no row fits.
    """
    actor.require("dataset.write")
    only = only or RowFilter()
    with transaction.atomic():
        Dataset.objects.visible_to(actor).select_for_update().get(pk=dataset.pk)
        rows = row_list(actor=actor, dataset=dataset, only=only)
        ids = list(rows.values_list("pk", "content_hash", "split"))
        if not ids:
            raise Conflict("dataset_empty", _("There are no matching rows to put into a version."))
        digest = hashlib.sha256()
        for _pk, content_hash, _split in ids:
            digest.update(f"{content_hash}\n".encode())
        facts = {
            "filter": only.asked_for,
            **manifest_of(actor=actor, dataset=dataset, rows=rows),
            **(manifest or {}),
        }
        last = DatasetVersion.objects.filter(dataset=dataset).aggregate(n=Max("number"))["n"] or 0
        version = DatasetVersion.objects.create(
            tenant=tenant,
            dataset=dataset,
            number=last + 1,
            content_hash=digest.hexdigest(),
            row_count=len(ids),
            manifest=facts,
            signature=signature_of(digest.hexdigest(), facts),
            note=note.strip()[:200],
            created_by_id=actor.user_id,
        )
        for start in range(0, len(ids), BATCH):
            _members_write(tenant, dataset, version, ids[start : start + BATCH], start)
        audit_record(
            tenant=tenant,
            actor=actor,
            action="dataset.version",
            object=dataset,
            data={"number": version.number, "hash": version.content_hash},
        )
    return version


def signature_of(content_hash: str, manifest: Mapping[str, Any]) -> str:
    """Return the HMAC-SHA-256 of a version's hash and manifest, with the installation's key, in hexadecimal."""
    text = json.dumps([content_hash, manifest], sort_keys=True, ensure_ascii=False)
    return hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()


def version_is_intact(version: DatasetVersion) -> bool:
    """Tell whether hash and manifest are those that were signed, with the installation's present key."""
    return hmac.compare_digest(version.signature, signature_of(version.content_hash, version.manifest))


def _members_write(
    tenant: Tenant, dataset: Dataset, version: DatasetVersion, ids: list[tuple[int, str, str]], start: int
) -> None:
    hashes = {content_hash for _pk, content_hash, _split in ids}
    known = RowContent.objects.filter(dataset=dataset, hash__in=hashes)
    missing = hashes - set(known.values_list("hash", flat=True))
    fresh = [pk for pk, content_hash, _ in ids if content_hash in missing]
    RowContent.objects.bulk_create(
        [
            RowContent(tenant=tenant, dataset=dataset, hash=row.content_hash, data=to_values(record_of(row)))
            for row in DatasetRow.objects.filter(pk__in=fresh)
        ]
    )
    contents = dict(known.values_list("hash", "pk"))
    VersionRow.objects.bulk_create(
        [
            VersionRow(
                tenant=tenant,
                version=version,
                position=start + place,
                content_id=contents[content_hash],
                row_ref=pk,
                split=split,
            )
            for place, (pk, content_hash, split) in enumerate(ids)
        ]
    )
