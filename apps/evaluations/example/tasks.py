"""The job that makes what a sample collection comes with."""

from __future__ import annotations

from apps.evaluations.example.services import MAKE_JOB, example_fail, example_go_on
from basics.texts import gettext as _
from jobs.context import JobContext, JobPostponed
from jobs.models import Job
from jobs.registry import job


def example_ended(ended: Job) -> None:
    """Keep why the sample isn't complete."""
    example_fail(
        pk=int(ended.payload["example_id"]), message=ended.error_message or _("The worker was lost.")
    )


@job(MAKE_JOB, lane="cpu", max_attempts=5, on_end=example_ended)
def example_make(ctx: JobContext, *, example_id: int) -> None:
    """Go on with an example where it stands; safe to run again at any point.

    Raises:
        JobPostponed: documents are being read, or the experiment runs; no worker is held meanwhile.
        DomainError: a step was refused, or the person has left.
    """
    while (wait_s := example_go_on(ctx, pk=example_id)) is not None:
        ctx.check()
        if wait_s:
            raise JobPostponed(wait_s)
