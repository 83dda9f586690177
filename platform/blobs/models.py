"""What stands between a file and the row that names it, so that a crash at any point leaves neither lost."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from tenancy.models import TenantModel


class PendingBlob(TenantModel):
    """A key whose bytes may be named by no row: they are being placed, or the row that named them went.

    Whoever places a file commits such a row first, and deletes it in the transaction that names the key. Whoever deletes
    the last row that names a key writes one in the same transaction. Once ``due_at`` has come, the bytes go unless a row
    names the key after all. A removed one is kept for a while: other machines read here what to drop from their caches.

    Attributes:
        key: of one file, or, with a slash at its end, of all below it.
        due_at: from then on nobody is placing it any more.
        removed_at: when the bytes went; None before.
    """

    key = models.CharField(max_length=300)
    due_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(
                fields=["due_at"], name="pending_blob_due", condition=models.Q(removed_at__isnull=True)
            ),
            models.Index(
                fields=["removed_at"], name="pending_blob_gone", condition=models.Q(removed_at__isnull=False)
            ),
            models.Index(fields=["tenant", "key"], name="pending_blob_key"),
        ]

    def __str__(self) -> str:
        return self.key
