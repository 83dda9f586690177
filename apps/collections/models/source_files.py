"""The history of a collection's source tree: every change with what was there before and after."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import pgettext_lazy

from apps.collections.models.collection import Collection
from tenancy.fields import RESTRICT, SET_NULL, TenantForeignKey
from tenancy.models import TenantModel


class FileBlob(TenantModel):
    """The bytes of a file at some moment, once per tenant and content."""

    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()
    content = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "sha256"], name="file_blob_once")]

    def __str__(self) -> str:
        return self.sha256[:12]


class FileBatch(TenantModel):
    """Changes that were made together or not at all; ``undoes`` names the batch that this one takes back."""

    class Action(models.TextChoices):
        WRITE = "write", pgettext_lazy("change of files", "Write")
        EDIT = "edit", pgettext_lazy("change of files", "Edit")
        DELETE = "delete", pgettext_lazy("change of files", "Delete")
        MOVE = "move", pgettext_lazy("change of files", "Move")
        UNDO = "undo", pgettext_lazy("change of files", "Undo")
        REDO = "redo", pgettext_lazy("change of files", "Redo")
        RESTORE = "restore", pgettext_lazy("change of files", "Restore")

    collection = TenantForeignKey(Collection, related_name="file_batches", db_index=False)
    action = models.CharField(max_length=10, choices=Action.choices)
    note = models.CharField(max_length=255, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    run = TenantForeignKey("runs.Run", db_on_delete=SET_NULL, null=True, related_name="+")
    undoes = TenantForeignKey("self", db_on_delete=SET_NULL, null=True, related_name="undone_by")
    is_undone = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "file batches"
        indexes = [models.Index(fields=["collection", "-id"], name="file_batch_newest")]

    def __str__(self) -> str:
        return f"{self.action} #{self.pk}"


class FileRevision(TenantModel):
    """One file's part in a batch; no blob means that there was no file."""

    batch = TenantForeignKey(FileBatch, related_name="revisions", db_index=False)
    collection = TenantForeignKey(Collection, related_name="+", db_index=False)
    path = models.CharField(max_length=1000)
    before = TenantForeignKey(FileBlob, db_on_delete=RESTRICT, null=True, related_name="+")
    after = TenantForeignKey(FileBlob, db_on_delete=RESTRICT, null=True, related_name="+")
    is_indexed = models.BooleanField(
        default=True, help_text="The file is also a document, and exists as long as that document does."
    )
    is_restricted = models.BooleanField(
        default=False, help_text="The document was restricted when this revision was written."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["batch", "path"], name="file_revision_once")]
        indexes = [models.Index(fields=["collection", "path", "-id"], name="file_revision_path")]

    def __str__(self) -> str:
        return f"{self.path} in batch {self.batch_id}"
