"""Jobs of curation: imports, exports, checks."""

from __future__ import annotations

from apps.datasets.curation import jobs as curation_jobs
from apps.datasets.curation.stopping import work_ended
from apps.datasets.models import DatasetCheck, DatasetExport, DatasetImport
from jobs.context import JobContext
from jobs.models import Job
from jobs.registry import job


def export_ended(ended: Job) -> None:
    """End the export together with a job that did not succeed."""
    work_ended(DatasetExport, ended)


def import_ended(ended: Job) -> None:
    """End the import together with a job that did not succeed."""
    work_ended(DatasetImport, ended)


def check_ended(ended: Job) -> None:
    """End the check together with a job that did not succeed."""
    work_ended(DatasetCheck, ended)


@job("datasets.export_run", lane="cpu", max_attempts=3, on_end=export_ended)
def export_run(ctx: JobContext, *, pk: int) -> None:
    """Write one export; safe to run again after a crash."""
    curation_jobs.export_run(ctx, pk)


@job("datasets.import_run", lane="cpu", max_attempts=3, on_end=import_ended)
def import_run(ctx: JobContext, *, pk: int) -> None:
    """Bring in the rows of one file; safe to run again after a crash."""
    curation_jobs.import_run(ctx, pk)


@job("datasets.check_run", lane="cpu", max_attempts=3, on_end=check_ended)
def check_run(ctx: JobContext, *, pk: int) -> None:
    """Make one check; safe to run again after a crash."""
    curation_jobs.check_run(ctx, pk)
