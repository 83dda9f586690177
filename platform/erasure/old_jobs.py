"""The retention rule of jobs: entries of the queue that ended long ago, with their errors."""

from __future__ import annotations

from django.db.models import F
from django.utils.translation import gettext_lazy

from erasure.removal import ended_remove
from erasure.retention import UNKNOWN_SIZE, RetentionKind, Rows
from jobs.models import ACTIVE, Job

STEP = 1000


def _rows() -> Rows:
    ended = Job.objects.filter(finished_at__isnull=False).exclude(status__in=ACTIVE)
    found: Rows = ended.annotate(since=F("finished_at"), bytes=UNKNOWN_SIZE)
    return found


JOBS = RetentionKind(
    name="jobs",
    label=gettext_lazy("Ended jobs"),
    what=gettext_lazy("entries of the queue with their errors; failed ones can’t be retried then"),
    since=gettext_lazy("their end"),
    rows=_rows,
    column="finished_at",
    remove=ended_remove,
    fewest_days=7,
    step=STEP,
    batch=STEP,
)
