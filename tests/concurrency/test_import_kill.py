"""kill -9 in the middle of an import: it goes on by itself, every entry is accounted for, nothing is there twice."""

from __future__ import annotations

import io
import zipfile
from collections import Counter

from django.db import transaction

from apps.collections.imports.services import ImportOptions, import_start
from apps.collections.models import Collection, Document, Import, ImportStatus
from blobs.services import placing_inside
from jobs.models import Job
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.concurrency.conftest import Site
from tests.concurrency.documents import make_collection
from tests.concurrency.holds import HELD_FILE, IMPORT
from tests.concurrency.ledger import (
    assert_nothing_runs,
    assert_ready_and_reconciled,
    assert_statistics_exact,
    wait_ended,
)
from tests.processes import kill_hard
from tests.servers import wait_for

BEFORE = [f"a/{number}.md" for number in range(6)]
AFTER = [f"z/{number}.md" for number in range(6)]
LEFT_OUT = {"b.png": b"\x89PNG\r\n\x1a\n", "c/.hidden": b"x", "y.png": b"\x89PNG\r\n\x1a\n"}
REFUSED = {"../out.md": b"x"}


def _archive() -> bytes:
    files = {
        name: f"# Page\n\nThis is the page {name} of the handbook.".encode()
        for name in (*BEFORE, f"m/{HELD_FILE}", *AFTER)
    } | LEFT_OUT
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in sorted((files | REFUSED).items()):
            archive.writestr(name, data)
    return out.getvalue()


def _held(site: Site, cast: Cast) -> tuple[Collection, Import]:
    """Start an import that will stand still at its middle file."""
    collection = make_collection(cast)
    with tenant_scope(cast.tenant.pk), transaction.atomic(), placing_inside():
        row = import_start(
            tenant=cast.tenant,
            actor=cast.actor("member"),
            collection=collection,
            source="archive",
            options=ImportOptions(),
            name="book.zip",
            chunks=[_archive()],
        )
        site.holds.arm(IMPORT, row.pk)
    return collection, row


def _now(row: Import) -> Import:
    with tenant_scope(row.tenant_id):
        found: Import = Import.objects.get(pk=row.pk)
        return found


def _paths(row: Import) -> Counter[str]:
    with tenant_scope(row.tenant_id):
        return Counter(Document.objects.filter(batch=row).values_list("path", flat=True))


def _attempts(row: Import) -> int:
    with tenant_scope(row.tenant_id):
        return Job.objects.get(pk=row.job_id or 0).attempts


def test_import_goes_on_and_doubles_nothing_when_its_worker_is_killed_twice(site: Site, cast: Cast) -> None:
    collection, row = _held(site, cast)
    first = site.holds.reached(IMPORT, row.pk)
    assert set(_paths(row)) == {f"book/{name}" for name in BEFORE}, "what came before is kept"
    kill_hard(first)
    second = site.holds.reached(IMPORT, row.pk)
    assert second != first
    assert _now(row).status == ImportStatus.RUNNING
    kill_hard(second)
    site.holds.release(IMPORT, row.pk)

    wait_for(lambda: _now(row).finished_at is not None, "the import to end")

    ended = _now(row)
    assert (ended.status, ended.error_code, ended.file) == (ImportStatus.COMPLETED, "", "")
    assert _attempts(ended) == 3
    wanted = {f"book/{name}" for name in (*BEFORE, f"m/{HELD_FILE}", *AFTER)}
    assert _paths(row) == Counter(wanted)
    found = ended.entries
    assert found["found"] == len(wanted) + len(LEFT_OUT) + len(REFUSED)
    assert (found["created"], found["skipped"], found["problems"]) == (
        len(wanted),
        len(LEFT_OUT),
        len(REFUSED),
    )
    assert (found["updated"], found["unchanged"], found["retried"]) == (0, 0, 0)
    assert len(ended.problems) == len(LEFT_OUT) + len(REFUSED)
    with tenant_scope(cast.tenant.pk):
        documents = list(Document.objects.values_list("pk", flat=True))
    wait_ended(cast.tenant, documents)
    for pk in documents:
        assert_ready_and_reconciled(cast.tenant, pk)
    assert_statistics_exact(cast.tenant, collection)
    assert_nothing_runs(cast.tenant)
