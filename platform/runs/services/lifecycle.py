"""Create, stop and end runs, whether a worker has them, nobody yet, or they wait for a decision."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from basics.errors import Invalid
from basics.metrics import RUNS_ENDED
from basics.texts import gettext as _
from budgets.ledger import BudgetExceeded, budget_require, run_holds_release
from jobs import registry
from jobs.models import Job, JobStatus
from jobs.notify import notify
from jobs.services import job_cancel
from runs.actors import gone_of
from runs.approvals.deciders import APPROVALS
from runs.models import ACTIVE, DecisionStatus, Run, RunStatus, ToolCallStatus
from runs.providers import model_is_free
from runs.reservations import run_billing_account
from runs.selectors import transcript_read
from runs.standing import RIGHTS
from runs.stopping import stop_tell
from runs.transcript import FINISHED
from runs.writes import event_append
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import platform_scope, tenant_scope
from toolloop.errors import ConfigurationError
from toolloop.models import LOCAL_PROVIDERS
from toolloop.providers.registry import parse_model
from toolloop.storable import json_storable
from webhooks.models import Event
from webhooks.services import webhook_emit


def run_create(
    *, tenant: Tenant, actor: Actor, kind: str, model: str, request: Mapping[str, Any] | None = None
) -> Run:
    """Create a queued run in the current transaction; the caller enqueues the job that carries it and sets ``run.job``.

    Args:
        kind: what it is for, for example ``conversation``.
        model: with its routing prefix, ``anthropic/claude-...``.
        request: facts to keep with it; what the loop was started with is added when it starts.

    Raises:
        Invalid: ``model`` names none.
        BudgetExceeded: the model may cost money, and there is none left.
    """
    run = run_new(tenant=tenant, actor=actor, kind=kind, model=model, request=request)
    run.save()
    return run


def run_new(
    *,
    tenant: Tenant,
    actor: Actor,
    kind: str,
    model: str,
    request: Mapping[str, Any] | None = None,
    checks_budget: bool = True,
) -> Run:
    """Return what ``run_create`` creates, checked and not stored yet; other arguments and errors are the same.

    Args:
        checks_budget: refuse it where no money is left; otherwise the run fails at its first call, and says why.
    """
    try:
        provider, _ = parse_model(model)
    except ConfigurationError as error:
        raise Invalid("unknown_model", error.message, data={"fields": {"model": [error.message]}}) from error
    run = Run(
        tenant=tenant,
        user_id=actor.user_id,
        kind=kind,
        model=model,
        request=json_storable(dict(request or {})),
    )
    if checks_budget and provider not in LOCAL_PROVIDERS:
        try:
            budget_require(run_billing_account(run))
        except BudgetExceeded:
            if not model_is_free(tenant, model):
                raise
    return run


def run_stop(*, tenant: Tenant, actor: Actor, run: Run) -> Run:
    """Ask a run to stop and keep what it has said; one that nobody works on ends at once. Harmless when it has ended."""
    with transaction.atomic():
        # Job before run: the order in which everybody locks them. A decision may have given the run a new job.
        carrier = Run.objects.filter(tenant=tenant, pk=run.pk).values("job_id")
        job: Job | None = Job.objects.select_for_update().filter(tenant=tenant, pk__in=carrier).first()
        row: Run = Run.objects.select_for_update().get(tenant=tenant, pk=run.pk)
        if row.status not in ACTIVE:
            return row
        if row.stop_requested_at is None:
            row.stop_requested_at = timezone.now()
            row.save(update_fields=["stop_requested_at"])
        if row.status == RunStatus.PARKED:
            parked_end(row)
            row.refresh_from_db()
            return row
        if job is None or job.status != JobStatus.QUEUED:
            stop_tell(tenant.pk, row.pk, "stop")
            return row
        job_cancel(tenant=tenant, actor=actor, job=job)
        row.refresh_from_db()
        if row.status in ACTIVE:  # a job kind whose on_end does not end runs
            run_abandon(job=job)
            row.refresh_from_db()
    return row


def runs_stop(*, tenant: Tenant, actor: Actor, runs: QuerySet[Run]) -> None:
    """Ask those of some runs that are under way to stop, as ``run_stop`` does, in the current transaction.

    All their jobs are locked before any of them ends. What closes with one (a turn, and the other answer to its question)
    may be rows that the worker of another waits for, while it holds the job that we would wait for.
    """
    going = runs.filter(tenant=tenant, status__in=ACTIVE)
    carriers = Job.objects.filter(tenant=tenant, pk__in=going.values("job_id"))
    list(carriers.select_for_update().order_by("pk").values_list("pk"))
    for run in list(going):
        run_stop(tenant=tenant, actor=actor, run=run)


def parked_end(run: Run) -> None:
    """End a parked run, whose lock is held, with everything that hangs on it.

    Its job has ended long ago; what the job's kind does at a bad end is what closes the turn (or whatever it is) here.
    """
    job = run.job
    if job is None:
        _abandon(run, "job_ended", _("The job was given up."))
        return
    try:
        on_end = registry.get(job.kind).on_end
    except LookupError:
        on_end = None
    if on_end is not None:
        on_end(job)
    run_abandon(job=job)


def run_abandon(*, job: Job) -> list[Run]:
    """End the runs whose job has ended without them, in the current transaction; for ``on_end`` of job kinds.

    What was streamed is kept. A stop that somebody asked for makes the run ``stopped``, anything else ``failed`` with
    the job's reason.
    """
    runs: list[Run] = list(
        Run.objects.select_for_update().filter(tenant_id=job.tenant_id, job_id=job.pk, status__in=ACTIVE)
    )
    for run in runs:
        _abandon(run, job.error_code or "job_ended", job.error_message or _("The job was given up."))
    return runs


_FAULTS_OF_OURS = frozenset({"internal_error", "worker_lost", "job_ended", "database_busy", "disk_full"})
"""How a job ends that may go better another time; every other reason is a refusal, which stays one."""


def runs_bereave(tenant_id: int, user_id: int, api_key_id: int | None) -> None:
    """End what waits in the name of somebody who has just lost their access, and tell what runs to look; see ``losses``.

    What waits ends after the commit, each run in a transaction of its own: the current one holds the membership, which who
    ends a run wants after its job. Should that be lost with the process, ``orphans_end`` finds them.

    Args:
        api_key_id: the key that was lost; None when the person has left, with all their keys.
    """
    notify(tenant_id, RIGHTS)
    rows = Run.objects.filter(tenant_id=tenant_id, user_id=user_id, status__in=ACTIVE)
    if api_key_id is not None:
        rows = rows.filter(request__actor__kind="api_key", request__actor__api_key_id=api_key_id)
    for pk, status in rows.order_by("pk").values_list("pk", "status"):
        if status == RunStatus.PARKED:
            transaction.on_commit(partial(_orphan_end, tenant_id, pk), robust=True)
        stop_tell(tenant_id, pk, "gone")  # a queued one finds out when it begins


def orphans_end(limit: int = 100) -> int:
    """End the parked runs of people who were deactivated, whose workspace was closed or whose key has expired.

    Nothing tells of these at the moment they happen. For the sweeper; returns how many.
    """
    with platform_scope():
        rows = Run.objects.raw(_ORPHANS, [limit])
        found = [(row.tenant_id, row.pk) for row in rows]
    for tenant_id, pk in found:
        _orphan_end(tenant_id, pk)
    return len(found)


def _orphan_end(tenant_id: int, pk: int) -> None:
    """End a run if it is still parked and its person or key has no access."""
    with tenant_scope(tenant_id), transaction.atomic():
        # Job before run: the order in which everybody locks them.
        carrier = Run.objects.filter(tenant_id=tenant_id, pk=pk).values("job_id")
        Job.objects.select_for_update().filter(tenant_id=tenant_id, pk__in=carrier).first()
        row = Run.objects.select_for_update().filter(tenant_id=tenant_id, pk=pk).first()
        if row is not None and row.status == RunStatus.PARKED and gone_of(row) is not None:
            parked_end(row)


_ORPHANS = """
SELECT r.id, r.tenant_id, r.job_id FROM runs_run r
WHERE r.id IN (SELECT run_id FROM runs_pendingdecision WHERE status = 'pending') AND r.status = 'parked'
    AND coalesce(r.request->'actor'->>'kind', '') <> 'system' AND (
    NOT EXISTS (SELECT FROM tenancy_membership m JOIN tenancy_user u ON u.id = m.user_id
        JOIN tenancy_tenant t ON t.id = m.tenant_id
        WHERE m.tenant_id = r.tenant_id AND m.user_id = r.user_id AND u.is_active AND t.is_active)
    OR r.request->'actor'->>'kind' = 'api_key' AND NOT EXISTS (SELECT FROM tenancy_apikey k
        WHERE k.tenant_id = r.tenant_id AND k.id = (r.request->'actor'->>'api_key_id')::bigint
        AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())))
LIMIT %s
"""


def _abandon(run: Run, code: str, message: str) -> None:
    said = transcript_read(run)
    is_stop = run.stop_requested_at is not None
    if (gone := gone_of(run)) is not None:
        code, message = gone.code, gone.message
    run.status = RunStatus.STOPPED if is_stop else RunStatus.FAILED
    run.stop_reason = "stopped" if is_stop else "error"
    run.error_code = "" if is_stop else code
    run.error_message = "" if is_stop else message
    run.is_retryable = not is_stop and code in _FAULTS_OF_OURS
    run.answer = said.text
    run.finished_at = timezone.now()
    run.save()
    open_ends_close(run)
    run_holds_release(run.pk)
    event_append(run, FINISHED, finished_data(run))
    finished_tell(run)


def finished_tell(run: Run, *, has_webhooks: bool = True) -> None:
    """Tell webhooks and ``/metrics`` that a run has ended, in the transaction that ends it; never what was said in it.

    Args:
        has_webhooks: False where the caller's statement has found that none wants to know.
    """
    data = {
        "run": run.pk,
        "kind": run.kind,
        "model": run.model,
        "status": str(run.status),
        "error_code": run.error_code,
    }
    kind, outcome = run.kind, str(run.status)
    transaction.on_commit(lambda: RUNS_ENDED.add(kind, outcome))
    if has_webhooks:
        webhook_emit(tenant_id=run.tenant_id, event=Event.RUN_FINISHED, object_key=f"run:{run.pk}", data=data)


_CLOSE = """
WITH calls AS (
    UPDATE runs_toolcall SET finished_at = %(now)s,
        status = CASE status WHEN %(running)s THEN %(unknown)s ELSE %(denied)s END,
        error_code = CASE status WHEN %(running)s THEN 'outcome_unknown' ELSE 'cancelled' END,
        content = CASE status WHEN %(running)s THEN content ELSE %(not_run)s || %(why)s END
    WHERE tenant_id = %(tenant)s AND run_id = %(run)s AND status IN (%(running)s, %(waiting)s)
), questions AS (
    UPDATE runs_pendingdecision SET status = %(cancelled)s, decided_at = %(now)s,
        decision_reason = %(reason)s
    WHERE tenant_id = %(tenant)s AND run_id = %(run)s AND status = %(pending)s
    RETURNING id
)
SELECT count(*) FROM questions
"""


def open_ends_close(run: Run) -> None:
    """Close what an ended run has left open: calls that did not come back in time, and questions to people."""
    values = {
        "now": run.finished_at,
        "tenant": run.tenant_id,
        "run": run.pk,
        "running": ToolCallStatus.RUNNING.value,
        "waiting": ToolCallStatus.WAITING.value,
        "unknown": ToolCallStatus.UNKNOWN.value,
        "denied": ToolCallStatus.DENIED.value,
        "not_run": "This call was not run: the run ended before anyone decided about it.",
        "why": f" {run.error_message}" if run.error_code == "actor_gone" else "",
        "reason": run.error_message if run.error_code == "actor_gone" else "",
        "pending": DecisionStatus.PENDING.value,
        "cancelled": DecisionStatus.CANCELLED.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLOSE, values)
        (cancelled,) = cursor.fetchone()
    if cancelled:
        notify(run.tenant_id, APPROVALS)


def finished_data(run: Run) -> dict[str, Any]:
    """Return the data of the ``finished`` event."""
    return {
        "status": str(run.status),
        "error_code": run.error_code,
        "error_message": run.error_message,
        "limit": run.limit_reached,
        "usage": run.usage,
    }
