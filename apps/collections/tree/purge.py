"""Deleting for good what the history of files keeps: bytes before and after each change."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.collections.models import Collection, FileBatch, FileBlob, FileRevision
from tenancy.models import Tenant


def revisions_remove(*, tenant: Tenant, collection: Collection, path: str | None = None) -> None:
    """Delete a collection's history of files with the bytes that no other history has.

    Args:
        path: only what the file at this path held, also under the paths it had before; None for all.
    """
    rows = FileRevision.objects.filter(tenant=tenant, collection=collection)
    if path is not None:
        rows = rows.filter(pk__in=_revisions_of(rows, path))
    batches = set(rows.values_list("batch_id", flat=True))
    blobs = {pk for pair in rows.values_list("before_id", "after_id") for pk in pair if pk}
    rows.delete()
    used = FileRevision.objects.filter(
        Q(before_id=OuterRef("pk")) | Q(after_id=OuterRef("pk")), tenant=tenant
    )
    FileBlob.objects.filter(~Exists(used), tenant=tenant, pk__in=blobs).delete()
    left = FileRevision.objects.filter(batch_id=OuterRef("pk"))
    FileBatch.objects.filter(~Exists(left), tenant=tenant, pk__in=batches).delete()


def _revisions_of(rows: QuerySet[FileRevision], path: str) -> set[int]:
    """Return the revisions of the file at a path: its own, and those up to the move that brought it from elsewhere."""
    found: set[int] = set()
    before: int | None = None
    while True:
        here = rows.filter(path=path) if before is None else rows.filter(path=path, pk__lt=before)
        found.update(here.values_list("pk", flat=True))
        arrival = here.filter(before=None).order_by("-pk").first()
        if arrival is None:
            return found
        # A move, or one taken back: the same bytes left another path in the same batch.
        source = rows.filter(batch=arrival.batch_id, after=None, before=arrival.after_id).first()
        if source is None:
            return found
        found.add(source.pk)
        path, before = source.path, source.pk
