"""Which documents were searched, as one hash: results over different documents are not compared by a gate."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from apps.collections.models import Document, DocumentStatus
from tenancy.actors import Actor


def corpus_fingerprint(*, actor: Actor, collections: Sequence[int] | None) -> str:
    """Return the SHA-256 of the live documents' files, in an order of their own; None for every collection."""
    rows = Document.objects.visible_to(actor).current().filter(status=DocumentStatus.READY)
    if collections is not None:
        rows = rows.filter(collection_id__in=collections)
    digest = hashlib.sha256()
    for row in rows.order_by("collection_id", "path").values_list(
        "collection_id", "path", "sha256"
    ):
        digest.update(repr(row).encode())
    return digest.hexdigest()
