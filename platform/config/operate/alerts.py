"""Which of the alert rules would fire now, told from the same figures as ``/metrics``, for those who run no Prometheus.

``deploy/prometheus/alerts.yaml`` has the rules; a test compares names, figures and thresholds. Rules over what processes
count in some minutes (failing requests, jobs, runs, providers) need Prometheus and are not here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from django.utils.translation import gettext_lazy

from tenancy.readings import Figure

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Severity = Literal["critical", "warning", "info"]
_ORDER: Final = {"critical": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class AlertRule:
    """A rule over one figure, or over one as a part of another.

    Attributes:
        name: as in ``alerts.yaml``.
        figure: whose value counts, without the prefix; over several labels the most extreme.
        sign: "<" or ">" or "=="; "abs>" ignores the figure's sign.
        threshold: in the figure's unit.
        part_of: figure that it is divided by.
        summary, action: what happened and what to do, for people.
    """

    name: str
    severity: Severity
    figure: str
    sign: Literal["<", ">", "==", "abs>"]
    threshold: float
    summary: StrOrPromise
    action: StrOrPromise
    part_of: str = ""

    def crossed_by(self, value: float) -> bool:
        """Tell whether a value is beyond the threshold."""
        if self.sign == "==":
            return value == self.threshold
        if self.sign == "<":
            return value < self.threshold
        return (abs(value) if self.sign == "abs>" else value) > self.threshold


RULES: Final = (
    AlertRule(
        "GroundworkNoWorker",
        "critical",
        "workers",
        "==",
        0,
        gettext_lazy("No worker is alive: no answer is written and no document read."),
        gettext_lazy("Start a worker: python manage.py worker"),
    ),
    AlertRule(
        "GroundworkWorkerLost",
        "warning",
        "workers_lost",
        ">",
        0,
        gettext_lazy("A worker ended without shutting down properly."),
        gettext_lazy(
            "Check whether it ran out of memory or its machine went away. Its jobs were taken over."
        ),
    ),
    AlertRule(
        "GroundworkQueueOld",
        "warning",
        "queue_oldest_seconds",
        ">",
        300,
        gettext_lazy("A job has waited for five minutes."),
        gettext_lazy("Add workers, or see what keeps those that run busy."),
    ),
    AlertRule(
        "GroundworkJobStuck",
        "warning",
        "jobs_running_oldest_seconds",
        ">",
        3600,
        gettext_lazy("A job has run for an hour without a pause."),
        gettext_lazy("Find it in the admin under Jobs; cancel it, or end its worker process."),
    ),
    AlertRule(
        "GroundworkJobAbandoned",
        "critical",
        "jobs_lease_expired",
        ">",
        0,
        gettext_lazy("A job has lost its worker, and no other worker has taken it over."),
        gettext_lazy("Check that a worker is alive and reaches the database."),
    ),
    AlertRule(
        "GroundworkBudgetUsedUp",
        "info",
        "budgets_used_up",
        ">",
        0,
        gettext_lazy("A budget is used up: its calls are refused until its period ends."),
        gettext_lazy("The workspace's usage page names it. Raise it, or wait."),
    ),
    AlertRule(
        "GroundworkFilesNotSwept",
        "warning",
        "blobs_due_oldest_seconds",
        ">",
        3600,
        gettext_lazy("Files that should have been removed an hour ago are still there."),
        gettext_lazy("The workers' log (blobs) has the store's response."),
    ),
    AlertRule(
        "GroundworkBackupFailed",
        "warning",
        "backup_failed",
        ">",
        0,
        gettext_lazy("The last backup failed."),
        gettext_lazy("The Installation page has the reason, under Backups. It is tried again an hour later."),
    ),
    AlertRule(
        "GroundworkBackupOverdue",
        "critical",
        "backup_overdue_seconds",
        ">",
        43200,
        gettext_lazy("There is no good backup of the last 36 hours."),
        gettext_lazy("Check that a worker is running, then see Backups on the Installation page."),
    ),
    AlertRule(
        "GroundworkBackupUnproven",
        "critical",
        "backup_verify_failed",
        ">",
        0,
        gettext_lazy("The last verification found that a backup can't be restored whole."),
        gettext_lazy(
            "The Installation page has the reason, under Backups. Write a new backup and verify it."
        ),
    ),
    AlertRule(
        "GroundworkBackupVerifyOverdue",
        "warning",
        "backup_verify_overdue_seconds",
        ">",
        86400,
        gettext_lazy("No backup was verified in time."),
        gettext_lazy("Check that a worker is running and has as much free disk space as the database takes."),
    ),
    AlertRule(
        "GroundworkAuditStreamFails",
        "warning",
        "audit_stream_failures",
        ">",
        2,
        gettext_lazy("A receiver of audit events doesn't take them."),
        gettext_lazy("The log has the reason (audit_stream_not_taken). Events wait; none is lost."),
    ),
    AlertRule(
        "GroundworkDiskNearlyFull",
        "critical",
        "disk_free_bytes",
        "<",
        0.1,
        gettext_lazy("Less than a tenth of the data directory's disk is free."),
        gettext_lazy("Free space, or move the data directory to a larger disk."),
        part_of="disk_size_bytes",
    ),
    AlertRule(
        "GroundworkDatabaseAway",
        "critical",
        "database_up",
        "==",
        0,
        gettext_lazy("The database doesn't answer."),
        gettext_lazy("Start it, or check DATABASE_URL. Web and workers reconnect automatically."),
    ),
    AlertRule(
        "GroundworkDatabaseSlow",
        "warning",
        "database_reading_seconds",
        ">",
        1,
        gettext_lazy("The database takes more than a second for a few small statements."),
        gettext_lazy("Look for long transactions (pg_stat_activity), locks, and a disk that is busy."),
    ),
    AlertRule(
        "GroundworkDatabaseConnections",
        "warning",
        "database_connections",
        ">",
        0.9,
        gettext_lazy("More than nine tenths of the database's connections are in use."),
        gettext_lazy("Put PgBouncer in front (GROUNDWORK_LISTEN_URL), or raise max_connections."),
        part_of="database_connections_most",
    ),
    AlertRule(
        "GroundworkPoolUsedUp",
        "warning",
        "database_pool_waiting",
        ">",
        0,
        gettext_lazy("Requests wait for a database connection."),
        gettext_lazy("Add web processes, and see whether the database is slow."),
    ),
    AlertRule(
        "GroundworkClockOff",
        "warning",
        "database_clock_offset_seconds",
        "abs>",
        5,
        gettext_lazy("The clock of this machine is more than five seconds away from the database's."),
        gettext_lazy(
            "Check that both machines synchronize their clocks (NTP): leases and sign-in codes depend on them."
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule that would fire, with where: the labels of its figure, "" for a figure without any."""

    rule: AlertRule
    where: str


def alerts_now(figures: Iterable[Figure]) -> list[Alert]:
    """Return the rules that the figures are beyond, the critical ones first.

    A rule whose figure is missing says nothing: while the database is away, only that is told.
    """
    by_name: dict[str, list[Figure]] = {}
    for figure in figures:
        by_name.setdefault(figure.name, []).append(figure)
    found = []
    for rule in RULES:
        whole = by_name.get(rule.part_of, []) if rule.part_of else []
        for figure in by_name.get(rule.figure, []):
            if rule.part_of and not (whole and whole[0].value):
                continue
            value = figure.value / whole[0].value if rule.part_of else figure.value
            if rule.crossed_by(value):
                found.append(Alert(rule, ", ".join(f"{k} {v}" for k, v in figure.labels.items())))
    return sorted(found, key=lambda alert: _ORDER[alert.rule.severity])
