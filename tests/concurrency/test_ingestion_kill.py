"""kill -9 in each stage of ingestion: the document becomes ready with its counts reconciled, or says why not."""

from __future__ import annotations

import psutil
from django.db import connection, transaction

from apps.collections.documents.services import document_retry
from apps.collections.models import Collection, Document, DocumentStatus
from blobs.services import placing_inside
from jobs.models import Job
from tenancy.database.base import as_login_role
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.concurrency.conftest import WORKERS, Site
from tests.concurrency.documents import make_collection, make_text_pdf, upload
from tests.concurrency.holds import POINTS
from tests.concurrency.ledger import (
    assert_nothing_runs,
    assert_ready_and_reconciled,
    assert_statistics_exact,
    wait_ended,
)
from tests.patience import PATIENCE_S
from tests.processes import is_gone, kill_hard
from tests.servers import wait_for

# More than one batch of vectors in chunks of 200 characters: the first is of 16.
SMALL = {"pages": 3, "chars_per_page": 2600}
# Too much for the pipe of the reader child, so that it cannot finish while its parent is held; few, large chunks.
LONG = {"pages": 40, "chars_per_page": 5000}


def _armed(site: Site, cast: Cast, point: str, **shape: int) -> tuple[Collection, Document]:
    """Upload a document whose ingestion will stand still at the point."""
    is_long = point == "parse"
    site.holds.quicken(is_quick=True)  # how many vectors there are matters, and not what they say
    collection = make_collection(cast, chunk_size=4000 if is_long else 200)
    # Armed in the upload's own transaction: no worker can look at the document before.
    with transaction.atomic(), placing_inside():
        document = upload(cast, collection, f"{point}.pdf", make_text_pdf(**(LONG if is_long else SMALL)))
        site.holds.arm(point, document.pk)
    return collection, document


def _attempts(document: Document) -> int:
    with tenant_scope(document.tenant_id):
        return int(Job.objects.values_list("attempts", flat=True).get(pk=document.job_id or 0))


def test_document_ends_ready_and_reconciled_when_its_worker_is_killed_in_any_stage(
    site: Site, cast: Cast
) -> None:
    held = {point: _armed(site, cast, point) for point in POINTS}
    pids = {point: site.holds.reached(point, doc.pk) for point, (_, doc) in held.items()}
    assert len(set(pids.values())) == len(POINTS), "each stands in a process of its own"
    for pid in pids.values():
        kill_hard(pid)
    for point, (_, document) in held.items():
        site.holds.release(point, document.pk)

    documents = wait_ended(cast.tenant, [document.pk for _, document in held.values()])

    for point, (collection, document) in held.items():
        assert_ready_and_reconciled(cast.tenant, document.pk)
        assert_statistics_exact(cast.tenant, collection)
        assert _attempts(document) == (1 if point == "done" else 2), point
    assert_nothing_runs(cast.tenant)
    assert len(documents) == len(POINTS)


def test_document_fails_with_a_reason_and_can_be_retried_when_every_worker_it_had_was_killed(
    site: Site, cast: Cast
) -> None:
    collection, document = _armed(site, cast, "chunk")
    for _ in range(3):
        kill_hard(site.holds.reached("chunk", document.pk))
    (failed,) = wait_ended(cast.tenant, [document.pk])
    site.holds.release("chunk", document.pk)

    assert (failed.status, failed.error_code) == (DocumentStatus.FAILED, "worker_lost")
    assert "crashed 3 times" in failed.error_message
    assert_nothing_runs(cast.tenant)
    assert_statistics_exact(cast.tenant, collection)

    with tenant_scope(cast.tenant.pk):
        document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=failed)
    wait_ended(cast.tenant, [document.pk])
    assert_ready_and_reconciled(cast.tenant, document.pk)
    assert_statistics_exact(cast.tenant, collection)


def test_document_fails_with_a_reason_when_only_its_reader_is_killed(site: Site, cast: Cast) -> None:
    _, document = _armed(site, cast, "parse")
    worker = site.holds.reached("parse", document.pk)
    readers = [
        child
        for child in psutil.Process(worker).children()
        if not is_gone(child.pid) and "apps.collections.ingestion.child" in child.cmdline()
    ]
    assert len(readers) == 1
    kill_hard(readers[0].pid)
    site.holds.release("parse", document.pk)

    (failed,) = wait_ended(cast.tenant, [document.pk])

    assert (failed.status, failed.stage) == (DocumentStatus.FAILED, "parse")
    assert failed.error_code == "out_of_memory"
    assert "stopped by the system" in failed.error_message, failed.error_message
    assert psutil.pid_exists(worker), "the worker itself lives on"
    assert _attempts(document) == 1
    assert_nothing_runs(cast.tenant)
    with tenant_scope(cast.tenant.pk):
        document_retry(tenant=cast.tenant, actor=cast.actor("member"), document=failed)
    wait_ended(cast.tenant, [document.pk])
    assert_ready_and_reconciled(cast.tenant, document.pk)


def test_documents_end_ready_when_the_worker_command_is_killed_and_started_again(
    site: Site, cast: Cast
) -> None:
    held = {point: _armed(site, cast, point) for point in ("parse", "embed", "index")}
    for point, (_, document) in held.items():
        site.holds.reached(point, document.pk)
    waiting = upload(cast, held["embed"][0], "waiting.pdf", make_text_pdf(pages=1, chars_per_page=500))
    command = site.stack.worker
    assert command is not None
    family = [command.pid, *(p.pid for p in psutil.Process(command.pid).children(recursive=True))]
    command.kill()
    command.wait(PATIENCE_S)
    wait_for(lambda: all(is_gone(pid) for pid in family), "the command's processes to end")
    for point, (_, document) in held.items():
        site.holds.release(point, document.pk)
    site.stack.start_worker()

    wait_ended(cast.tenant, [waiting.pk, *(document.pk for _, document in held.values())])

    for collection, document in held.values():
        assert_ready_and_reconciled(cast.tenant, document.pk)
        assert_statistics_exact(cast.tenant, collection)
    assert_ready_and_reconciled(cast.tenant, waiting.pk)
    assert_nothing_runs(cast.tenant)


def test_documents_end_ready_when_every_database_connection_is_cut_in_the_middle(
    site: Site, cast: Cast
) -> None:
    held = {point: _armed(site, cast, point) for point in ("pages", "embed", "index")}
    for point, (_, document) in held.items():
        site.holds.reached(point, document.pk)
    with as_login_role(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        (cut,) = cursor.fetchone()
    assert cut >= 2 * len(held), "each held process has its own connection and its heartbeat's"
    for point, (_, document) in held.items():
        site.holds.release(point, document.pk)
    after = upload(cast, held["embed"][0], "after.pdf", make_text_pdf(pages=1, chars_per_page=500))

    wait_ended(cast.tenant, [after.pk, *(document.pk for _, document in held.values())])

    for collection, document in held.values():
        assert_ready_and_reconciled(cast.tenant, document.pk)
        assert_statistics_exact(cast.tenant, collection)
    assert_ready_and_reconciled(cast.tenant, after.pk)
    assert_nothing_runs(cast.tenant)
    wait_for(lambda: site.stack.get("/readyz") == 200, "the web server to connect again")


def test_queue_goes_on_when_its_own_processes_are_killed(site: Site, cast: Cast) -> None:
    assert site.stack.worker is not None
    command = psutil.Process(site.stack.worker.pid)
    (sentinel,) = (p for p in command.children() if p.children())
    family = sentinel.children()
    assert len(family) == WORKERS
    for process in family:  # idle or not
        process.kill()
    collection = make_collection(cast)
    document = upload(cast, collection, "next.pdf", make_text_pdf(pages=1, chars_per_page=900))
    wait_ended(cast.tenant, [document.pk])
    assert_ready_and_reconciled(cast.tenant, document.pk)
    wait_for(lambda: len(sentinel.children()) >= len(family), "all processes to be replaced")
