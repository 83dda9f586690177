"""The retention rule of documents: those whose bytes haven't changed for so long are deleted with all their versions."""

from __future__ import annotations

from django.db.models import BigIntegerField, Exists, Min, OuterRef, Q, Subquery, Sum
from django.utils.translation import gettext_lazy

from apps.collections.documents.services import document_delete, path_lock
from apps.collections.models import Document, DocumentStatus
from apps.collections.storage.job_locks import collection_lock
from basics.errors import Missing
from blobs import services as blobs
from erasure.retention import RetentionKind, Rows, Use
from tenancy.actors import system_actor
from tenancy.models import Tenant

_ACTIVE = (DocumentStatus.QUEUED, DocumentStatus.PROCESSING)


def _same_path(**also: OuterRef | str) -> Rows:
    named = {name: OuterRef(name) for name in ("tenant_id", "collection_id", "path")}
    found: Rows = Document.objects.filter(**named, **also)
    return found.order_by()


def _rows() -> Rows:
    """Return the newest version of each document, since when its bytes are the same.

    Read again, or found unchanged by an import, a document isn't newer. Files attached to conversations, which are in
    private collections, go with those.
    """
    newer = _same_path(version__gt=OuterRef("version"))
    same_bytes = _same_path(sha256=OuterRef("sha256")).filter(
        ~Exists(_same_path(version__gt=OuterRef("version")).exclude(sha256=OuterRef("sha256")))
    )
    since = same_bytes.values("path").annotate(first=Min("created_at")).values("first")
    size = _same_path().values("path").annotate(bytes=Sum("size")).values("bytes")
    newest = Document.objects.filter(~Exists(newer), live_to=None, collection__owner=None)
    found: Rows = newest.annotate(since=Subquery(since), bytes=Subquery(size, output_field=BigIntegerField()))
    return found


def _is_read(_tenant_id: int) -> Q:
    return Q(Exists(_same_path().filter(status__in=_ACTIVE)))


def _remove(tenant: Tenant, rows: Rows) -> int:
    """Delete documents, unless somebody has changed them meanwhile."""
    removed, actor = 0, system_actor(tenant.pk)
    for row in rows:
        # In the order of all who change files: the tree, the path, the collection. Then nobody adds a version.
        blobs.key_lock(f"tree:{row.collection_id}")
        path_lock(row.collection_id, row.path)
        try:
            collection_lock(tenant, row.collection_id)
            current = rows.filter(pk=row.pk).first()
            if current is None:
                continue
            document_delete(tenant=tenant, actor=actor, document=current, action="document.expire")
        except Missing:
            continue  # deleted since we looked
        removed += 1
    return removed


DOCUMENTS = RetentionKind(
    name="documents",
    label=gettext_lazy("Documents"),
    what=gettext_lazy("documents with all versions and their originals"),
    since=gettext_lazy("the last new version with different content"),
    rows=_rows,
    column="",
    remove=_remove,
)
BEING_READ = Use(gettext_lazy("being read"), _is_read)
