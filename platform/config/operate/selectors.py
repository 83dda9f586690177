"""What the operator's page shows: all of it read with the rights of the whole installation, for superusers alone."""

from __future__ import annotations

import platform as machine
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar, get_args

import django
from django.conf import settings
from django.db import connection
from django.db.models import Count
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from backups.models import BackupResult
from backups.results import last_result
from backups.schedule import last_backup
from config.doctor import examine
from config.operate.alerts import Alert, alerts_now
from jobs import registry
from jobs.models import Job, JobStatus, Worker
from jobs.registry import Lane
from jobs.selectors import WORKER_FRESH_S
from tenancy.health import Check
from tenancy.models import Membership, Tenant
from tenancy.readings import Figure, readings
from tenancy.scope import platform_scope
from tenancy.version import code_version

T = TypeVar("T")
FAILED_DAYS = 7
USAGE_DAYS = 30
_FAILED_READ = 500
_FAILED_SHOWN = 20
_WORKSPACES = 20
_WORKERS_SHOWN = 20
LANES = {
    "loop": gettext_lazy("Answers and calls"),
    "cpu": gettext_lazy("Documents and data"),
    "scan": gettext_lazy("Scanned pages"),
}

CHECKS = {
    "database": gettext_lazy("Database"),
    "postgres": gettext_lazy("PostgreSQL"),
    "vector": gettext_lazy("Vectors"),
    "walls": gettext_lazy("Isolation"),
    "replica": gettext_lazy("Read replica"),
    "queue": gettext_lazy("Queue"),
    "worker": gettext_lazy("Workers"),
    "backup": gettext_lazy("Backups"),
    "listen": gettext_lazy("Notifications"),
    "migrations": gettext_lazy("Migrations"),
    "storage": gettext_lazy("Data directory"),
    "embedder": gettext_lazy("Embedding"),
    "models": gettext_lazy("Models"),
    "files": gettext_lazy("File storage"),
    "disk": gettext_lazy("Disk"),
    "data directory": gettext_lazy("Access to data"),
}
"""What the page calls the checks of ``manage.py doctor``, whose names are short words for a terminal."""


def check_word(check: Check) -> str:
    """Return what the page calls a check."""
    return str(CHECKS.get(check.name, check.name.capitalize()))


def lasted(seconds: float) -> str:
    """Return a time as people say it: "40 s", "12 min", "3 h", "2 days"."""
    for unit, size, below in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < below:
            return f"{seconds / size:.0f} {unit}"
    days = round(seconds / 86_400)
    return ngettext("%(count)s day", "%(count)s days", days) % {"count": days}


@dataclass(frozen=True, slots=True)
class LaneState:
    """One lane of the queue: jobs that could start, jobs that run, and the oldest of each in seconds."""

    name: str
    label: str
    waiting: int
    waiting_s: float
    running: int
    running_s: float

    @property
    def waited(self) -> str:
        """For how long the oldest waits, in words."""
        return lasted(self.waiting_s) if self.waiting else ""

    @property
    def ran(self) -> str:
        """For how long the oldest runs, in words."""
        return lasted(self.running_s) if self.running else ""


@dataclass(slots=True)
class FailedJobs:
    """Failed jobs of one kind that ended with the same error, the newest of them as the example."""

    job: Job
    workspace: str
    is_retryable: bool
    count: int = 1
    workspaces: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class WorkspaceUse:
    """One workspace: members, documents with the bytes of their originals, and the last 30 days' model use."""

    tenant: Tenant
    members: int
    documents: int
    size: int
    tokens: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes: of the data directory's disk, of the database, and files that are due to be removed."""

    disk_free: float
    disk_size: float
    database: int
    files_due: int
    files_place: str

    @property
    def used_percent(self) -> int:
        """Of the disk, 0 to 100."""
        return round(100 * (1 - self.disk_free / self.disk_size)) if self.disk_size else 0


@dataclass(frozen=True, slots=True)
class Backups:
    """The last good backup, the last attempt, and the last verification; None where there was none."""

    is_scheduled: bool
    verify_days: int
    good: BackupResult | None
    last: BackupResult | None
    proof: BackupResult | None


@dataclass(frozen=True, slots=True)
class Installation:
    """All of the page."""

    checks: Sequence[Check]
    alerts: Sequence[Alert]
    workers: Sequence[Worker]
    lanes: Sequence[LaneState]
    failed: Sequence[FailedJobs]
    failed_count: int
    workspaces: Sequence[WorkspaceUse]
    workspace_count: int
    storage: Storage
    backups: Backups
    versions: Sequence[tuple[str, str]]
    read_at: datetime

    @property
    def wrong(self) -> list[Check]:
        """The checks that are not well."""
        return [check for check in self.checks if not check.ok]

    @property
    def state(self) -> str:
        """ "bad" when something critical is wrong, "warn" when something needs a look, as backups that nobody makes do, else "ok"."""
        if self.wrong or any(alert.rule.severity == "critical" for alert in self.alerts):
            return "bad"
        is_warned = any(alert.rule.severity == "warning" for alert in self.alerts)
        return "warn" if is_warned or not self.backups.is_scheduled else "ok"


class Kept(Generic[T]):
    """What was read last, for so many seconds: the page asks again and again, and some of it costs."""

    def __init__(self, read: Callable[[], T], seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._lock = threading.Lock()
        self._found: tuple[float, T] | None = None

    def get(self) -> T:
        """Return it, read again when it is too old; one thread reads, others wait for it."""
        with self._lock:
            if self._found is None or time.monotonic() - self._found[0] >= self._seconds:
                self._found = time.monotonic(), self._read()
            return self._found[1]

    def forget(self) -> None:
        """Read again when asked next."""
        with self._lock:
            self._found = None


def installation_read() -> Installation:
    """Return how the installation is now. Checks are up to 30 seconds old, workspaces and sizes a minute."""
    with platform_scope():
        figures = readings.figures()
        failed, count = _failed()
        used = workspaces_kept.get()
        return Installation(
            checks=checks_kept.get(),
            alerts=alerts_now(figures),
            workers=_workers(),
            lanes=_lanes(figures),
            failed=failed,
            failed_count=count,
            workspaces=used.rows,
            workspace_count=used.count,
            storage=_storage(figures, used.database_size),
            backups=_backups(),
            versions=_versions(),
            read_at=timezone.now(),
        )


def worker_is_alive(worker: Worker) -> bool:
    """Tell whether a worker command was seen lately."""
    return worker.seen_at > timezone.now() - timedelta(seconds=WORKER_FRESH_S)


def _workers() -> list[Worker]:
    return list(Worker.objects.order_by("-seen_at")[:_WORKERS_SHOWN])


def _lanes(figures: Sequence[Figure]) -> list[LaneState]:
    told = {(one.name, one.labels.get("lane", "")): one.value for one in figures}
    return [
        LaneState(
            lane,
            str(LANES[lane]),
            int(told.get(("queue_jobs", lane), 0)),
            told.get(("queue_oldest_seconds", lane), 0.0),
            int(told.get(("jobs_running", lane), 0)),
            told.get(("jobs_running_oldest_seconds", lane), 0.0),
        )
        for lane in sorted(get_args(Lane), key=list(LANES).index)
    ]


def _failed() -> tuple[list[FailedJobs], int]:
    since = timezone.now() - timedelta(days=FAILED_DAYS)
    rows = (
        Job.objects.filter(status=JobStatus.FAILED, retried_at__isnull=True, finished_at__gt=since)
        .select_related("tenant")
        .order_by("-finished_at")[:_FAILED_READ]
    )
    groups: dict[tuple[str, str], FailedJobs] = {}
    count = 0
    for job in rows:
        count += 1
        found = groups.get((job.kind, job.error_code))
        if found is None:
            found = FailedJobs(job, job.tenant.name, _is_retryable(job.kind), count=0)
            groups[job.kind, job.error_code] = found
        found.count += 1
        found.workspaces.add(job.tenant_id)
    return list(groups.values())[:_FAILED_SHOWN], count


def _is_retryable(kind: str) -> bool:
    try:
        return registry.get(kind).is_retryable
    except LookupError:
        return False


@dataclass(frozen=True, slots=True)
class _Used:
    rows: list[WorkspaceUse]
    count: int
    database_size: int


# Spending of the last days decides the order; the rest is counted for those shown alone.
_SPENT = """
SELECT t.id, coalesce(u.cost, 0), coalesce(u.tokens, 0) FROM tenancy_tenant t
LEFT JOIN (
    SELECT tenant_id, sum(charged_usd) AS cost, sum(input_tokens + output_tokens) AS tokens
    FROM runs_usagerecord WHERE at > now() - make_interval(days => %s) GROUP BY tenant_id
) u ON u.tenant_id = t.id
ORDER BY 2 DESC, 3 DESC, t.id LIMIT %s
"""
_DOCUMENTS = """
SELECT tenant_id, count(*), coalesce(sum(size), 0)::bigint FROM collections_document
WHERE tenant_id = ANY(%s) GROUP BY tenant_id
"""


def _workspaces() -> _Used:
    with connection.cursor() as cursor:
        cursor.execute(_SPENT, [USAGE_DAYS, _WORKSPACES])
        spent = {pk: (Decimal(cost), int(tokens)) for pk, cost, tokens in cursor.fetchall()}
        cursor.execute(_DOCUMENTS, [list(spent)])
        documents = {pk: (count, size) for pk, count, size in cursor.fetchall()}
        cursor.execute("SELECT pg_database_size(current_database())")
        (database_size,) = cursor.fetchone()
    counted = Membership.objects.filter(tenant_id__in=spent).values("tenant_id").annotate(count=Count("pk"))
    members = {row["tenant_id"]: row["count"] for row in counted}
    tenants = Tenant.objects.in_bulk(list(spent))
    rows = [
        WorkspaceUse(
            tenant=tenants[pk],
            members=members.get(pk, 0),
            documents=documents.get(pk, (0, 0))[0],
            size=documents.get(pk, (0, 0))[1],
            tokens=tokens,
            cost_usd=cost,
        )
        for pk, (cost, tokens) in spent.items()
        if pk in tenants
    ]
    return _Used(rows, Tenant.objects.count(), database_size)


checks_kept: Kept[list[Check]] = Kept(examine, 30.0)
workspaces_kept: Kept[_Used] = Kept(_workspaces, 60.0)


def _storage(figures: Sequence[Figure], database: int) -> Storage:
    told: dict[str, float] = {one.name: one.value for one in figures}
    return Storage(
        disk_free=told.get("disk_free_bytes", 0.0),
        disk_size=told.get("disk_size_bytes", 0.0),
        database=database,
        files_due=int(told.get("blobs_due", 0)),
        files_place=settings.FILES_URL.partition("?")[0],
    )


def _backups() -> Backups:
    return Backups(
        is_scheduled=bool(settings.BACKUP_URL),
        verify_days=settings.BACKUP_VERIFY_DAYS,
        good=last_backup(),
        last=last_result(BackupResult.Kind.CREATE),
        proof=last_result(BackupResult.Kind.VERIFY),
    )


def _versions() -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version'), (SELECT extversion FROM pg_extension WHERE extname = 'vector')"
        )
        row: Any = cursor.fetchone()
    return [
        ("Groundwork", code_version()),
        ("PostgreSQL", str(row[0]).partition(" ")[0]),
        ("pgvector", row[1] or _("not installed")),
        ("Python", machine.python_version()),
        ("Django", django.get_version()),
    ]
