"""Each fault moves its figure past the threshold of its rule, and raises no other alert."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from audit.models import AuditStream
from backups.models import BackupResult
from basics import metrics
from blobs.errors import StoreAway
from blobs.models import PendingBlob
from blobs.stores import FolderStore, store_open
from budgets.models import BudgetSpend
from budgets.services import budget_set
from jobs.models import Job, JobStatus, Worker
from jobs.runner import run_here
from jobs.services import job_enqueue
from runs.models import Run, RunStatus
from runs.providers import TenantProvider
from runs.services.lifecycle import parked_end
from tenancy import readings as module
from tenancy.database.direct import direct_connection
from tenancy.scope import platform_scope, tenant_scope
from tests.cast import Cast, make_cast
from tests.deploy.firing import added, firing, moved, of, raised
from tests.deploy.promql import crosses
from tests.exposition import Said, said_here
from tests.jobs import tasks  # noqa: F401 - registers the kinds of jobs
from tests.permissions.world import Side
from tests.servers import free_port
from toolloop.errors import ProviderError
from toolloop.messages import UserMessage
from toolloop.models import get_model_info
from toolloop.providers.base import ModelRequest
from toolloop.providers.registry import make_provider


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    return make_cast()


def job_row(cast: Cast, **columns: Any) -> None:
    with tenant_scope(cast.tenant.pk):
        job = job_enqueue(
            tenant=cast.tenant, actor=cast.actor("member"), kind="tests.refuse", payload={"path": "/dev/null"}
        )
        Job.objects.filter(pk=job.pk).update(**columns)


def test_old_queue(cast: Cast) -> None:
    old = timezone.now() - timedelta(seconds=400)
    moved(
        "GroundworkQueueOld",
        of("groundwork_queue_oldest_seconds", lane="cpu"),
        lambda: job_row(cast, run_after=old),
    )
    assert said_here().value("groundwork_queue_jobs", lane="cpu") == 1
    assert said_here().value("groundwork_queue_jobs", lane="loop") == 0


def test_jobs_that_wait_for_their_time_are_not_late(cast: Cast) -> None:
    job_row(cast, run_after=timezone.now() + timedelta(hours=1))
    assert said_here().value("groundwork_queue_jobs") == 0


def test_stuck_job(cast: Cast) -> None:
    now = timezone.now()
    stuck = {
        "status": JobStatus.RUNNING,
        "started_at": now - timedelta(hours=2),
        "lease_expires_at": now + timedelta(seconds=30),
    }
    moved(
        "GroundworkJobStuck",
        of("groundwork_jobs_running_oldest_seconds", lane="cpu"),
        lambda: job_row(cast, **stuck),
    )
    assert not crosses("GroundworkJobAbandoned", of("groundwork_jobs_lease_expired")(said_here()))


def test_abandoned_job(cast: Cast) -> None:
    now = timezone.now()
    left = {"status": JobStatus.RUNNING, "started_at": now, "lease_expires_at": now - timedelta(seconds=20)}
    moved("GroundworkJobAbandoned", of("groundwork_jobs_lease_expired"), lambda: job_row(cast, **left))


def test_failing_jobs(cast: Cast) -> None:
    def fault() -> None:
        for _ in range(21):
            with tenant_scope(cast.tenant.pk):
                job = job_enqueue(
                    tenant=cast.tenant,
                    actor=cast.actor("member"),
                    kind="tests.refuse",
                    payload={"path": "/dev/null"},
                )
            assert run_here(cast.tenant.pk, job.pk).status == JobStatus.FAILED

    moved(
        "GroundworkJobsFail",
        added("groundwork_jobs_ended_total", kind="tests.refuse", outcome="failed"),
        fault,
    )


async def test_provider_that_is_down(cast: Cast) -> None:
    from asgiref.sync import sync_to_async

    info = get_model_info("compatible/default/llama")
    before = await sync_to_async(said_here)()
    adapter = make_provider("compatible", api_key="no-key", base_url=f"http://127.0.0.1:{free_port()}/v1")
    provider = TenantProvider(adapter, replace(info))
    request = ModelRequest(
        model="llama", system="", messages=[UserMessage("Are you there?")], tools=[], timeout_s=5
    )
    try:
        with pytest.raises(ProviderError):
            async for _ in provider.stream(request):
                pass
    finally:
        await provider.aclose()
    after = await sync_to_async(said_here)()

    def grown(**labels: str) -> float:
        read = of("groundwork_model_call_seconds_count", provider="compatible", **labels)
        return read(after) - read(before)

    assert crosses("GroundworkProviderFails", grown(outcome="error") / grown())
    assert raised(before, after) == {"GroundworkProviderFails"}
    assert "llama" not in after.label_values(), "workspaces name models as they like"


def test_store_that_is_away(cast: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    bucket = store_open(
        f"s3://bucket/pre?endpoint=http://127.0.0.1:{free_port()}&region=us-east-1&style=path"
    )
    file = tmp_path / "file"
    file.write_text("bytes")

    def fault() -> None:
        with pytest.raises(StoreAway):
            bucket.put("a/key", file)

    moved("GroundworkFilesAway", added("groundwork_blob_store_errors_total"), fault)


def test_folder_that_is_no_folder(cast: Cast, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("bytes")

    def fault() -> None:
        with pytest.raises(OSError, match="Not a directory"):
            FolderStore(file).put("a/key", file)

    moved("GroundworkFilesAway", added("groundwork_blob_store_errors_total"), fault)


def test_files_that_nobody_sweeps(cast: Cast) -> None:
    def fault() -> None:
        with tenant_scope(cast.tenant.pk):
            PendingBlob.objects.create(
                tenant=cast.tenant, key="a/key", due_at=timezone.now() - timedelta(hours=2)
            )

    moved("GroundworkFilesNotSwept", of("groundwork_blobs_due_oldest_seconds"), fault)


def test_budget_that_is_used_up(cast: Cast) -> None:
    budget = budget_set(tenant=cast.tenant, actor=cast.actor("owner"), kind="tenant", amount_usd=Decimal(1))

    def spent(**columns: Any) -> None:
        with connection.cursor() as cursor, platform_scope():
            cursor.execute("SELECT date_trunc('month', now(), 'UTC')")
            (starts_at,) = cursor.fetchone()
        with tenant_scope(cast.tenant.pk):
            BudgetSpend.objects.create(
                tenant=cast.tenant, budget=budget, subject_id=0, **{"starts_at": starts_at, **columns}
            )

    spent(spent_usd=Decimal(5), starts_at=timezone.now() - timedelta(days=70))  # another month's
    moved("GroundworkBudgetUsedUp", of("groundwork_budgets_used_up"), lambda: spent(spent_usd=Decimal(1)))
    assert cast.tenant.slug not in said_here().label_values()


@pytest.mark.parametrize("is_scheduled", [True, False])
def test_backups_that_fail(cast: Cast, settings: Any, *, is_scheduled: bool) -> None:
    settings.BACKUP_URL = "file:///backups" if is_scheduled else ""
    failed, late = of("groundwork_backup_failed"), of("groundwork_backup_overdue_seconds")

    def ended(hours_ago: float, *, is_ok: bool) -> None:
        moment = timezone.now() - timedelta(hours=hours_ago)
        BackupResult.objects.create(
            kind=BackupResult.Kind.CREATE,
            url="file:///backups",
            is_ok=is_ok,
            began_at=moment,
            ended_at=moment,
        )

    assert (failed(said_here()), late(said_here())) == (0, 0), "none was tried yet"
    ended(35, is_ok=True)
    assert not crosses("GroundworkBackupOverdue", late(said_here()))
    if not is_scheduled:
        ended(1, is_ok=False)
        assert failed(said_here()) == 0, "somebody wrote one by hand"
        return
    moved("GroundworkBackupFailed", failed, lambda: ended(1, is_ok=False))
    BackupResult.objects.filter(is_ok=True).delete()
    moved("GroundworkBackupOverdue", late, lambda: ended(37, is_ok=False))
    ended(2, is_ok=True)
    assert not crosses("GroundworkBackupOverdue", late(said_here()))


def test_verifications_that_fail(cast: Cast, settings: Any) -> None:
    settings.BACKUP_URL, settings.BACKUP_VERIFY_DAYS = "file:///backups", 1

    def ended(kind: str, hours_ago: float, *, is_ok: bool = True) -> None:
        moment = timezone.now() - timedelta(hours=hours_ago)
        BackupResult.objects.create(
            kind=kind, url="file:///backups", name="b", is_ok=is_ok, began_at=moment, ended_at=moment
        )

    ended("create", 1)
    late, failed = of("groundwork_backup_verify_overdue_seconds"), of("groundwork_backup_verify_failed")
    moved("GroundworkBackupVerifyOverdue", late, lambda: ended("create", 49))
    ended("verify", 2)
    moved("GroundworkBackupUnproven", failed, lambda: ended("verify", 1, is_ok=False))


def test_stream_of_audit_events_that_is_not_taken(cast: Cast) -> None:
    stream = Side(cast.tenant).row("audit.AuditStream", "owner")

    def lost(failures: int) -> None:
        with platform_scope():
            AuditStream.objects.filter(pk=stream.pk).update(is_enabled=True, failures=failures)

    lost(2)
    moved("GroundworkAuditStreamFails", of("groundwork_audit_stream_failures"), lambda: lost(3))


def test_runs_that_fail(cast: Cast) -> None:
    run = Side(cast.tenant).row("runs.Run", "owner")

    def fault() -> None:
        with tenant_scope(cast.tenant.pk), transaction.atomic():
            Run.objects.filter(pk=run.pk).update(status=RunStatus.PARKED)
            parked_end(Run.objects.select_for_update().get(pk=run.pk))

    before = said_here()
    fault()
    assert raised(before, said_here()) == {"GroundworkRunsFail"}


def test_pool_that_is_used_up(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = {"pool_size": 4, "pool_available": 0, "requests_waiting": 3}
    full = SimpleNamespace(copy=connection.copy, pool=SimpleNamespace(get_stats=lambda: stats))
    moved(
        "GroundworkPoolUsedUp",
        of("groundwork_database_pool_waiting"),
        lambda: monkeypatch.setattr(module, "connection", full),
    )


def test_connections_that_are_used_up(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """As told by a server that allows as many as there are: those of a real one would be hundreds."""
    read = module.database_read

    def full(cursor: Any) -> Iterator[Any]:
        figures = {figure.name: figure for figure in read(cursor)}
        used = figures["database_connections"].value
        figures["database_connections_most"] = replace(figures["database_connections_most"], value=used)
        return iter(figures.values())

    def part(said: Said) -> float:
        return of("groundwork_database_connections")(said) / of("groundwork_database_connections_most")(said)

    moved(
        "GroundworkDatabaseConnections",
        part,
        lambda: monkeypatch.setattr(module._readers[read], "read", full),
    )


def test_process_that_does_not_answer() -> None:
    target = frozenset({("job", "groundwork"), ("instance", "web-1:8000")})
    up, down = (Said({("up", target): value}, frozenset()) for value in (1.0, 0.0))
    assert firing(up, up) == set()
    assert firing(up, down) == {"GroundworkProcessAway"}


def test_disk_that_is_nearly_full(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    found = shutil.disk_usage("/")._replace(total=1000, free=500)
    monkeypatch.setattr("tenancy.readings.shutil.disk_usage", lambda path: found)

    def part(said: Said) -> float:
        return of("groundwork_disk_free_bytes")(said) / of("groundwork_disk_size_bytes")(said)

    def fault() -> None:
        monkeypatch.setattr("tenancy.readings.shutil.disk_usage", lambda path: found._replace(free=90))

    moved("GroundworkDiskNearlyFull", part, fault)


def test_database_that_is_slow(cast: Cast) -> None:
    """Somebody holds a table: the statement is given up after two seconds, the other figures stay."""
    with direct_connection() as holder:
        holder.autocommit = False
        moved(
            "GroundworkDatabaseSlow",
            of("groundwork_database_reading_seconds"),
            lambda: holder.execute("LOCK TABLE blobs_pendingblob IN ACCESS EXCLUSIVE MODE"),
        )
        said = said_here()
        assert not crosses("GroundworkDatabaseAway", said.value("groundwork_database_up"))
        assert "groundwork_blobs_due" not in said.names()
        assert "groundwork_queue_jobs" in said.names()
    assert "groundwork_blobs_due" in said_here().names()


@pytest.mark.parametrize("how", ["refused", "silent"])
def test_database_that_is_away(cast: Cast, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Nobody listens at its port, or whoever does says nothing: the answer comes all the same, without old figures."""
    Worker.objects.create(name="alive")
    assert said_here().value("groundwork_workers") == 1
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if how == "silent":
            silent.listen()
        away = {"HOST": "127.0.0.1", "PORT": str(silent.getsockname()[1])}

        def copy() -> Any:
            own = connection.copy()
            own.settings_dict.update(away)
            return own

        moved(
            "GroundworkDatabaseAway",
            of("groundwork_database_up"),
            lambda: monkeypatch.setattr(module, "connection", SimpleNamespace(copy=copy)),
        )
        assert "groundwork_workers" not in said_here().names(), (
            "an old figure would tell of a worker that is gone"
        )
        assert not crosses("GroundworkDatabaseSlow", said_here().value("groundwork_database_reading_seconds"))
    monkeypatch.undo()
    assert said_here().value("groundwork_workers") == 1


def test_clock_that_is_off(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault() -> None:
        clock = SimpleNamespace(**{**vars(time), "time": lambda: time.time() - 60})
        monkeypatch.setattr("tenancy.readings.time", clock)

    moved("GroundworkClockOff", lambda said: abs(of("groundwork_database_clock_offset_seconds")(said)), fault)


@pytest.mark.parametrize("most", [metrics.MOST_SERIES, 0], ids=["as-usual", "after-every-route-was-tried"])
def test_requests_that_fail(cast: Cast, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(metrics, "MOST_SERIES", most)
    monkeypatch.setattr(metrics.HTTP_SECONDS, "_children", {})
    before = said_here()

    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("web.views.health.readiness", broken)
    assert Client(raise_request_exception=False).get("/readyz").status_code == 500
    after = said_here()

    def grown(**labels: str) -> float:
        read = of("groundwork_http_request_seconds_count", **labels)
        return read(after) - read(before)

    assert crosses("GroundworkRequestsFail", grown(status="5xx") / grown())
    assert raised(before, after) == {"GroundworkRequestsFail"}
