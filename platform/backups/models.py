"""How backups ended, for whoever asks whether there is one."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class BackupResult(models.Model):
    """The end of one attempt to write or to verify a backup; of no workspace, because it has all of them.

    Attributes:
        url: of the place, which holds no credentials.
        name: of the backup, "" when none was finished.
        size: bytes of the backup's own files; originals that it shares with earlier ones aren't among them.
        detail: what was found, or why it failed, in a sentence.
    """

    class Kind(models.TextChoices):
        CREATE = "create"
        VERIFY = "verify"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    url = models.CharField(max_length=500)
    name = models.CharField(max_length=40, blank=True)
    is_ok = models.BooleanField()
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(db_default=Now())
    row_count = models.BigIntegerField(default=0, db_default=0)
    original_count = models.BigIntegerField(default=0, db_default=0)
    size = models.BigIntegerField(default=0, db_default=0)
    detail = models.CharField(max_length=1000, blank=True)

    class Meta:
        indexes = [models.Index(fields=["kind", "ended_at"], name="backup_result_last")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
