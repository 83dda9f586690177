"""Decide about the calls a parked run waits for; the last decision sends it back to work, exactly once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma
from django.db import transaction
from django.utils import timezone

from basics.errors import Conflict, Denied, Invalid, Missing
from basics.texts import gettext as _
from jobs.notify import notify
from jobs.services import job_enqueue
from runs.approvals.deciders import APPROVALS, approver_labels, decidable, heirs, readable
from runs.approvals.parking import decided_data, decision_tell
from runs.models import ApproverKind, DecisionStatus, PendingDecision, Run, RunStatus
from runs.transcript import DECIDED
from runs.withheld import NOTHING, runs_withheld
from runs.writes import event_append
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.deferred import Decision
from toolloop.masking import unmasked
from toolloop.storable import json_storable, text_storable

MAX_ARGUMENTS = 200_000
MAX_REASON = 4_000
MAX_ANSWER = 200_000
_STATUS = {
    "approve": DecisionStatus.APPROVED,
    "reject": DecisionStatus.REJECTED,
    "answer": DecisionStatus.ANSWERED,
}


def decider_require(*, actor: Actor, waiting: PendingDecision) -> None:
    """Let only those pass who decide about a call; see ``runs.approvals.deciders``.

    Raises:
        Denied: ``approver_needed``, somebody else decides, and the actor may know of it.
        Missing: the call is none of the actor's business, or another workspace's.
    """
    rows = PendingDecision.objects.visible_to(actor).filter(pk=waiting.pk)
    if rows.filter(decidable(actor)).exists():
        return
    if not rows.filter(readable(actor)).exists():
        raise Missing("decision")
    (label,) = approver_labels([waiting])
    raise Denied(
        "approver_needed",
        _("You can't decide about this call. It is up to %(decider)s.") % {"decider": label},
    )


def call_decide(
    *, tenant: Tenant, actor: Actor, run: Run, decision_id: int, decision: Decision
) -> PendingDecision:
    """Record what somebody decided about a call; after the last open one the run goes back to work.

    Args:
        decision_id: the ``PendingDecision``. Not the call's id: a program waits several times under one, and what was
            decided about one step of it must not count for the next.
        decision: ``state`` is ignored, the stored one counts. Edited arguments are checked like a model's own when the
            run goes on; ones that do not fit make it wait again, with the problem as the reason.

    Raises:
        Missing: no such decision waits for this actor.
        Denied: somebody else decides about it; ``call_withheld``, the actor may not read what it says.
        Conflict: ``call_decided``, it was decided before, has expired, or the run has ended.
        Invalid: the decision does not fit what is waited for.
    """
    with transaction.atomic():
        row = Run.objects.select_for_update().filter(tenant=tenant, pk=run.pk).first()
        if row is None:
            raise Missing("run")
        # The run's lock is held, so nobody decides beside us.
        waiting = PendingDecision.objects.filter(tenant=tenant, run=row, pk=decision_id).first()
        if waiting is None:
            raise Missing("decision")
        decider_require(actor=actor, waiting=waiting)
        found = runs_withheld(actor, [row.pk]).get(row.pk, NOTHING)
        if decision.kind != "reject" and found.value(waiting.arguments) != waiting.arguments:
            raise Denied(
                "call_withheld",
                _("This call uses a document you can't read. Reject it, or hand it over."),
            )
        now = timezone.now()
        if waiting.status == DecisionStatus.PENDING and waiting.expires_at <= now:
            raise _decided(waiting, "expired")
        if waiting.status != DecisionStatus.PENDING or row.status != RunStatus.PARKED:
            raise _decided(waiting, waiting.get_status_display())
        _take(waiting, decision)
        waiting.decided_by_id, waiting.decided_at = actor.user_id, now
        waiting.save()
        audit_record(
            tenant=tenant, actor=actor, action="run.decide", object=row, data=decision_facts(waiting, row)
        )
        decided_tell(row, waiting)
        run_resume(tenant, actor, row)
    return waiting


def call_hand_over(*, tenant: Tenant, actor: Actor, run: Run, decision_id: int, to: int) -> PendingDecision:
    """Hand a decision over to another member, who may take it from then on; who could before still can.

    Args:
        to: id of the person.

    Raises:
        Missing, Denied: the actor neither decides about it nor manages tools.
        Conflict: ``call_decided``.
        Invalid: that person asked for it, is no member, or stands below who decides.
    """
    with transaction.atomic():
        row = Run.objects.select_for_update().filter(tenant=tenant, pk=run.pk).first()
        rows = PendingDecision.objects.visible_to(actor).select_related("run")
        waiting = rows.filter(run=row, pk=decision_id).first()
        if row is None or waiting is None:
            raise Missing("decision")
        if waiting.approver_kind == ApproverKind.SELF or not actor.can("tool.manage"):
            decider_require(actor=actor, waiting=waiting)
        if waiting.status != DecisionStatus.PENDING or row.status != RunStatus.PARKED:
            raise _decided(waiting, waiting.get_status_display())
        heir = heirs(waiting).filter(user_id=to).first()
        if heir is None:
            raise _invalid(
                "to", _("Choose a member who can decide in your place and didn't make the request.")
            )
        waiting.assigned_to_id = heir.user_id
        waiting.save(update_fields=["assigned_to"])
        audit_record(
            tenant=tenant,
            actor=actor,
            action="run.hand_over",
            object=row,
            data=decision_facts(waiting, row) | {"to": heir.user_id},
        )
        decision_tell(waiting, heir.user_id)
        notify(tenant.pk, APPROVALS)
    return waiting


def decided_tell(run: Run, waiting: PendingDecision) -> None:
    """Tell who follows a run what was decided about a call; the run's lock is held."""
    event_append(run, DECIDED, decided_data(waiting))
    notify(run.tenant_id, APPROVALS)


def decision_facts(waiting: PendingDecision, run: Run) -> dict[str, Any]:
    """Return what the audit log keeps of a decision."""
    return {
        "decision": waiting.pk,
        "status": str(waiting.status),
        "tool": waiting.name,
        "is_edited": waiting.edited_arguments is not None,
        "approver": {str(waiting.approver_kind): waiting.approver},
        "requested_by": run.user_id,
    }


def run_resume(tenant: Tenant, actor: Actor, run: Run) -> None:
    """Enqueue the job that goes on with a parked run when nothing is left to decide; the run's lock is held.

    The run leaves the parked state in the same transaction, so nobody comes here twice for one parking.

    Raises:
        Conflict: ``run_not_resumable``, its job is gone.
    """
    if PendingDecision.objects.filter(run=run, status=DecisionStatus.PENDING).exists():
        return
    before = run.job
    if before is None:
        raise Conflict(
            "run_not_resumable", _("This answer can't continue. Stop it and ask the question again.")
        )
    run.job = job_enqueue(
        tenant=tenant,
        actor=actor,
        kind=before.kind,
        payload=before.payload,
        dedupe_key=f"run:{run.pk}",
        topic=before.topic,
    )
    run.status = RunStatus.QUEUED
    run.save(update_fields=["job", "status"])


def _take(waiting: PendingDecision, decision: Decision) -> None:
    """Write a decision into its row. Raises Invalid when it does not fit."""
    if decision.kind == "approve" and waiting.kind == PendingDecision.Kind.EXTERNAL:
        raise _invalid("decision", _("This call can be answered or rejected, not approved."))
    waiting.status = _STATUS[decision.kind]
    if decision.kind == "approve":
        waiting.edited_arguments = _edited(waiting, decision.arguments)
    elif decision.kind == "reject":
        if waiting.needs_reason and not decision.reason.strip():
            raise _invalid("reason", _("Say why you reject this call: its rule asks for a reason."))
        if len(decision.reason) > MAX_REASON:
            raise _invalid(
                "reason", _("A reason has at most %(most)s characters.") % {"most": intcomma(MAX_REASON)}
            )
        waiting.decision_reason = text_storable(decision.reason.strip())
    else:
        if not decision.content.strip() or len(decision.content) > MAX_ANSWER:
            raise _invalid(
                "answer",
                _("Write an answer of at most %(most)s characters.") % {"most": intcomma(MAX_ANSWER)},
            )
        waiting.answer = text_storable(decision.content)


def _edited(waiting: PendingDecision, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(json.dumps(dict(given))) > MAX_ARGUMENTS:
        raise _invalid(
            "arguments",
            _("Arguments must be one JSON object of at most %(most)s characters.")
            % {"most": intcomma(MAX_ARGUMENTS)},
        )
    # Secrets were shown masked: where the mask was left, the true value stays.
    arguments: dict[str, Any] = json_storable(unmasked(dict(given), waiting.arguments))
    return None if arguments == waiting.arguments else arguments


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("decision_invalid", message, data={"fields": {field: [message]}})


def _decided(waiting: PendingDecision, how: str) -> Conflict:
    return Conflict(
        "call_decided",
        _("This call has already been decided: it is %(state)s. Reload to see the answer's state.")
        % {"state": how},
        data={"decision": waiting.pk, "status": str(waiting.status)},
    )
