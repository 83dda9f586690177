"""What an operator does from their page."""

from __future__ import annotations

from basics.errors import Missing
from jobs.models import Job, JobStatus
from jobs.services import job_retry
from tenancy.actors import Actor
from tenancy.models import User
from tenancy.permissions import ACTIONS
from tenancy.scope import platform_scope

MOST_AT_ONCE = 100


def operator_actor(user: User, tenant_id: int) -> Actor:
    """Return the operator as one who acts in a workspace: with every right, and by their name in its audit trail."""
    return Actor("system", tenant_id, ACTIONS, user_id=user.pk, role="system", name=user.email)


def failed_retry(*, user: User, pk: int) -> Job:
    """Retry one failed job of whatever workspace.

    Args:
        user: a superuser, which the caller has made sure of.

    Raises:
        Missing: there is none of that id.
        Conflict: see ``jobs.services.job_retry``.
    """
    with platform_scope():
        job: Job | None = Job.objects.select_related("tenant").filter(pk=pk, status=JobStatus.FAILED).first()
    if job is None:
        raise Missing("job")
    job_retry(tenant=job.tenant, actor=operator_actor(user, job.tenant_id), job=job)
    return job
