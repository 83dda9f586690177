"""What is done with the rows of a dataset: imports, exports, checks, and what a reviewer has let pass."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from apps.datasets.models.dataset import Dataset, DatasetVersion
from tenancy.fields import SET_NULL, TenantForeignKey, ToldJSONField, ToldTextField
from tenancy.models import TenantModel


class WorkStatus(models.TextChoices):
    """How far work on a dataset is; the last four are ends."""

    QUEUED = "queued", gettext_lazy("Waiting")
    RUNNING = "running", gettext_lazy("Running")
    COMPLETED = "completed", gettext_lazy("Completed")
    BLOCKED = "blocked", gettext_lazy("Needs a decision")
    FAILED = "failed", gettext_lazy("Failed")
    CANCELLED = "cancelled", gettext_lazy("Stopped")


WORK_ACTIVE = (WorkStatus.QUEUED, WorkStatus.RUNNING)


class Work(TenantModel):
    """What all work on a dataset has: a state, its job, and why it did not end well."""

    status = models.CharField(max_length=9, choices=WorkStatus.choices, default=WorkStatus.QUEUED)
    error_code = models.CharField(max_length=60, blank=True)
    error_message = ToldTextField(blank=True)
    job = TenantForeignKey("jobs.Job", db_on_delete=SET_NULL, null=True, related_name="+")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @property
    def is_active(self) -> bool:
        """Tell whether it waits or runs."""
        return self.status in WORK_ACTIVE

    @property
    def is_stopping(self) -> bool:
        """Tell whether somebody has asked it to stop and it has not ended yet."""
        return self.is_active and self.job is not None and self.job.cancel_requested_at is not None


class DatasetExport(Work):
    """A version written in a format, read back and compared, and kept as a file to download."""

    dataset = TenantForeignKey(Dataset, related_name="exports")
    version = TenantForeignKey(DatasetVersion, related_name="exports")
    format = models.CharField(max_length=20)
    split = models.CharField(max_length=10, blank=True, help_text="Empty: all rows.")
    file = models.CharField(max_length=255, blank=True, help_text="Key in the file storage.")
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes.")
    rows = models.PositiveIntegerField(default=0, help_text="Rows read back from the file unchanged.")
    left_out = models.PositiveIntegerField(default=0, help_text="Rows that the format can't hold.")
    problems = ToldJSONField(default=list, help_text="What the validator found.")
    findings = ToldJSONField(
        default=list,
        told=("shown",),
        help_text="Findings to decide on before exporting: kind, row, field, shown, fingerprint.",
    )
    finding_count = models.PositiveIntegerField(
        default=0, help_text="Total number of findings, listed or not."
    )

    def __str__(self) -> str:
        return f"{self.format} of version {self.version_id}"


class DatasetImport(Work):
    """A file whose rows come into a dataset; a trial reads it and changes nothing."""

    dataset = TenantForeignKey(Dataset, related_name="imports")
    format = models.CharField(max_length=20)
    name = models.CharField(max_length=255, help_text="Name of the file, as given.")
    file = models.CharField(max_length=255, blank=True, help_text="Key in the file storage.")
    is_trial = models.BooleanField(default=False)
    found = models.PositiveIntegerField(default=0, help_text="Rows that could be read.")
    created = models.PositiveIntegerField(default=0)
    duplicates = models.PositiveIntegerField(
        default=0, help_text="Rows that already existed or occur twice in the file."
    )
    failed = models.PositiveIntegerField(default=0, help_text="Rows that could not be read.")
    problems = ToldJSONField(
        told=("message",), default=list, help_text="The first unreadable rows: row, message, text."
    )
    errors_file = models.CharField(
        max_length=255, blank=True, help_text="Key of the file that lists all unreadable rows."
    )

    def __str__(self) -> str:
        return self.name


class DatasetCheck(Work):
    """A look over all rows of a dataset, or their division into splits, with what came of it."""

    class Kind(models.TextChoices):
        DUPLICATES = "duplicates", gettext_lazy("Duplicates")
        CONTAMINATION = "contamination", gettext_lazy("Contamination")
        SECRETS = "secrets", gettext_lazy("Personal data and secrets")
        SPLITS = "splits", gettext_lazy("Splits by document")
        COVERAGE = "coverage", gettext_lazy("Coverage of the collections")

    dataset = TenantForeignKey(Dataset, related_name="checks")
    kind = models.CharField(max_length=13, choices=Kind.choices)
    options = models.JSONField(default=dict)
    result = models.JSONField(default=dict, help_text="Counts, and the first findings.")

    def __str__(self) -> str:
        return f"{self.kind} of dataset {self.dataset_id}"


class Acceptance(TenantModel):
    """A finding that a person has let pass: exports of the dataset no longer wait for it. Append-only."""

    append_only = True

    dataset = TenantForeignKey(Dataset, related_name="acceptances", db_index=False)
    fingerprint = models.CharField(max_length=64)
    kind = models.CharField(max_length=20)
    shown = models.CharField(max_length=200, help_text="The finding, masked.")
    note = models.CharField(max_length=300, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dataset", "fingerprint"], name="acceptance_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.shown}"
