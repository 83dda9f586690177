"""What a parked run waits for, as rows: written when it parks, read when it goes on."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.utils import timezone

from jobs.notify import notify
from notices.services import notice_put, notice_spread
from runs.approvals.argument_changes import argument_changes
from runs.approvals.deciders import APPROVALS, approver_labels, deciders_of
from runs.journal import call_key, name_storable
from runs.models import UNENDED, ApproverKind, DecisionStatus, PendingDecision, Run
from runs.models import ToolCall as Row
from toolloop.deferred import Decision, PendingCall
from toolloop.masking import masked
from toolloop.messages import ToolCall, Turn
from toolloop.storable import json_storable, text_storable
from webhooks.models import Event
from webhooks.services import webhook_emit


def pending_store(run: Run, step: int, pending: Iterable[PendingCall]) -> list[dict[str, Any]]:
    """Write what a run waits for, in the transaction that parks it; return it as the ``parked`` event tells it."""
    rows = PendingDecision.objects.bulk_create(_row(run, step, waiting) for waiting in pending)
    labels = approver_labels(rows)
    for row in rows:
        webhook_emit(
            tenant_id=run.tenant_id,
            event=Event.APPROVAL_NEEDED,
            object_key=f"run:{run.pk}",
            data={
                "run": run.pk,
                "decision": row.pk,
                "kind": str(row.kind),
                "tool": row.name,
                "approver": {"kind": str(row.approver_kind), "name": row.approver},
                "expires_at": row.expires_at.isoformat(),
            },
        )
        decision_tell(row)
    notify(run.tenant_id, APPROVALS)
    return [pending_data(row, label) for row, label in zip(rows, labels, strict=True)]


def decision_tell(row: PendingDecision, heir: int | None = None) -> None:
    """Tell those who decide about a call that it waits; ``heir`` for one of them alone.

    All of a role may be thousands: a job tells them, not the transaction that ends the step of a run.
    """
    if heir is None and row.approver_kind == ApproverKind.ROLE:
        notice_spread(tenant=row.run.tenant, kind="approval", pk=row.pk, state="pending")
        return
    people = deciders_of(row) if heir is None else [heir]
    notice_put(tenant_id=row.tenant_id, people=people, kind="approval", pk=row.pk, state="pending")


def pending_data(row: PendingDecision, approver: str) -> dict[str, Any]:
    """Return what a person needs to decide; ``approver`` says in words who that is."""
    return {
        "id": row.pk,
        "step": row.step,
        "call_id": row.call_id,
        "name": row.name,
        "arguments": masked(row.arguments),
        "kind": str(row.kind),
        "reason": row.reason,
        "approver_kind": str(row.approver_kind),
        "approver": approver,
        "needs_reason": row.needs_reason,
        "expires_at": row.expires_at.isoformat(),
    }


def decided_data(row: PendingDecision) -> dict[str, Any]:
    """Return what was decided, by whom and with which changes, as the ``decided`` event tells it."""
    return {
        "id": row.pk,
        "step": row.step,
        "call_id": row.call_id,
        "name": row.name,
        "status": str(row.status),
        "reason": row.decision_reason,
        "by": "" if row.decided_by is None else str(row.decided_by),
        "changes": [asdict(c) for c in argument_changes(row.arguments, row.edited_arguments)],
    }


def decisions_of(run: Run, turns: list[Turn], rows: Mapping[tuple[int, str], Row]) -> dict[str, Decision]:
    """Return what was decided about the open calls of a run's last turn, by call id."""
    if not turns:
        return {}
    step = len(turns) - 1
    decided = PendingDecision.objects.filter(run=run, step=step).exclude(
        status__in=(DecisionStatus.PENDING, DecisionStatus.CANCELLED)
    )
    newest = {(row.step, row.call_id): row for row in decided.order_by("pk")}
    found: dict[str, Decision] = {}
    for call in turns[-1].tool_calls:
        key = call_key(step, call.id)
        row = rows.get(key)
        if key in newest and (row is None or row.status in UNENDED):
            found[call.id] = _decision(newest[key], call)
    return found


def _decision(row: PendingDecision, call: ToolCall) -> Decision:
    if row.status == DecisionStatus.APPROVED:
        by = (str(row.approver_kind), row.approver)
        arguments = row.edited_arguments
        # Somebody edited it, and then somebody else had to approve that: what they saw is what runs.
        was_edited = row.state is None and row.arguments != json_storable(call.arguments)
        if arguments is None and was_edited and isinstance(row.arguments, dict):
            arguments = row.arguments
        return Decision("approve", arguments=arguments, state=row.state, by=by)
    if row.status == DecisionStatus.ANSWERED:
        return Decision("answer", content=row.answer, state=row.state)
    return Decision("reject", reason=row.decision_reason, state=row.state)


def _row(run: Run, step: int, waiting: PendingCall) -> PendingDecision:
    asked, approval = waiting.asked, waiting.approval
    hours = settings.APPROVAL_HOURS if approval.hours is None else approval.hours
    arguments: Any = asked.raw if asked.arguments is None else asked.arguments
    return PendingDecision(
        tenant_id=run.tenant_id,
        run=run,
        step=step,
        call_id=call_key(step, waiting.call.id)[1],
        name=name_storable(asked.name),
        arguments=json_storable(arguments),
        kind=waiting.kind,
        reason=text_storable(waiting.reason),
        state=json_storable(waiting.state),
        approver_kind=approval.approver_kind,
        approver=approval.approver,
        needs_reason=approval.needs_reason,
        expires_at=timezone.now() + datetime.timedelta(hours=hours),
    )
