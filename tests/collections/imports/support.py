"""Start imports and run their jobs as the worker does."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import Any

from apps.collections.imports import services
from apps.collections.imports.services import ImportOptions
from apps.collections.models import Collection, Document, Import
from jobs import registry, runner
from jobs.context import JobContext
from jobs.models import Job
from tests.cast import Cast
from tests.collections.conftest import attempt


def make_zip(files: dict[str, bytes], **options: Any) -> bytes:
    """Return a ZIP archive of these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def make_tar(files: dict[str, bytes], mode: str = "w:gz") -> bytes:
    """Return a TAR archive of these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def start(
    cast: Cast,
    collection: Collection,
    source: str,
    *,
    data: bytes | None = None,
    name: str = "docs.zip",
    role: str = "member",
    **options: Any,
) -> Import:
    """Start an import; the caller is in the tenant's scope."""
    return services.import_start(
        tenant=cast.tenant,
        actor=cast.actor(role),
        collection=collection,
        source=source,
        options=ImportOptions(**options),
        name=name if data is not None else "",
        chunks=None if data is None else [data],
    )


def run(row: Import) -> Import:
    """Run one attempt of an import's job; returns the fresh row."""
    row.refresh_from_db()
    assert row.job_id is not None
    Job.objects.filter(pk=row.job_id).update(run_after="2000-01-01T00:00Z")
    job = runner.claim(row.tenant_id, row.job_id)
    assert job is not None, "the job is not waiting"
    context = JobContext(job)
    error: BaseException | None = None
    try:
        registry.get(job.kind).handler(context, **job.payload)
    except Exception as raised:  # noqa: BLE001 - recorded as the runner does
        error = raised
    runner._finish(context, job, error)
    row.refresh_from_db()
    return row


def ingest_all(collection: Collection) -> list[Document]:
    """Run the jobs of all documents that wait; returns the documents by path."""
    for document in Document.objects.filter(collection=collection, status="queued"):
        attempt(document)
    return list(Document.objects.filter(collection=collection).order_by("path", "version"))


def paths(collection: Collection) -> list[str]:
    """Return the paths of the current documents."""
    rows = Document.objects.filter(collection=collection, live_to=None)
    return sorted(rows.values_list("path", flat=True))


def reasons(row: Import) -> dict[str, str]:
    """Return the reason of each listed problem by its path."""
    return {problem["path"]: problem["reason"] for problem in row.problems}
