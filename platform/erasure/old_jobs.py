"""The retention rule of jobs: entries of the queue that ended long ago, with their errors."""

from __future__ import annotations

from django.db.models import F

from erasure.removal import removal_round
from erasure.retention import UNKNOWN_SIZE, RetentionKind, Rows
from jobs.models import ACTIVE, Job
from tenancy.models import Tenant

STEP = 1000


def _rows() -> Rows:
    ended = Job.objects.filter(finished_at__isnull=False).exclude(status__in=ACTIVE)
    found: Rows = ended.annotate(since=F("finished_at"), bytes=UNKNOWN_SIZE)
    return found


def _remove(tenant: Tenant, rows: Rows) -> int:
    ended = list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True))
    Job.objects.filter(tenant=tenant, pk__in=ended).delete()
    return len(ended)


JOBS = RetentionKind(
    name="jobs",
    label="Ended jobs",
    what="entries of the queue with their errors; failed ones can’t be retried then",
    since="their end",
    rows=_rows,
    column="finished_at",
    remove=_remove,
    fewest_days=7,
    step=STEP,
    batch=STEP,
)


def jobs_expire() -> int:
    """Delete ended jobs that a workspace keeps no longer; returns how many."""
    return removal_round(JOBS)
