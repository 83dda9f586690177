"""Expiry of approvals: what nobody decided in time is rejected, and its run goes on."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from runs.approvals.services import decided_tell, decision_facts, run_resume
from runs.models import DecisionStatus, PendingDecision, Run, RunStatus
from tenancy.actors import system_actor
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record

EXPIRED = "No one decided about this call in time."


def decisions_expire(limit: int = 100) -> int:
    """Reject what nobody decided in time and send those runs on; returns how many runs. For the sweeper."""
    with platform_scope():
        due = list(
            PendingDecision.objects.filter(status=DecisionStatus.PENDING, expires_at__lte=timezone.now())
            .order_by("expires_at")
            .values_list("tenant_id", "run_id")[:limit]
        )
    runs = dict.fromkeys(due)
    for tenant_id, run_id in runs:
        with tenant_scope(tenant_id), transaction.atomic():
            _expire(run_id)
    return len(runs)


def _expire(run_id: int) -> None:
    run = (
        Run.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("tenant")
        .filter(pk=run_id, status=RunStatus.PARKED)
        .first()
    )
    if run is None:
        return
    now = timezone.now()
    rows = PendingDecision.objects.filter(run=run, status=DecisionStatus.PENDING, expires_at__lte=now)
    for waiting in rows.order_by("pk"):
        waiting.status, waiting.decided_at = DecisionStatus.EXPIRED, now
        waiting.decision_reason = EXPIRED
        waiting.save()
        audit_record(
            tenant=run.tenant,
            actor=system_actor(run.tenant_id),
            action="run.decision_expired",
            object=run,
            data=decision_facts(waiting, run),
        )
        decided_tell(run, waiting)
    run_resume(run.tenant, system_actor(run.tenant_id, run.user_id), run)
