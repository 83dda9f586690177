"""Remove what was said in runs that ended long ago: events, model turns, arguments and results of tools.

What stays: the run and its calls with their facts (who, when, which tool, which rule, how it ended), answers and citations,
usage, the audit trail, and which passages were read. So pages of old conversations show their answers as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.conf import settings
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy

from basics.errors import Invalid
from erasure.retention import UNKNOWN_SIZE, RetentionKind, Rows, retention_rules_set
from runs.models import ACTIVE, PendingDecision, Run, RunEvent, RunRetention, RunStep, ToolCall
from tenancy.actors import Actor
from tenancy.models import Tenant

REMOVED = "Removed by this workspace's retention rule."
BATCH = 100
_KEPT = ("actor", "path", "conversation", "collections", "request_id", "limits", "tools", "replay")


def retention_own(tenant: Tenant) -> int | None:
    """Return the workspace's own rule, None where the operator's default holds."""
    return RunRetention.objects.filter(tenant=tenant).values_list("days", flat=True).first()


def retention_set(*, tenant: Tenant, actor: Actor, days: int | None) -> None:
    """Set the rule of runs alone, as ``erasure.retention.retention_rules_set`` does; for callers that know no other.

    Raises:
        Denied: without the right ``retention.manage``.
        Invalid: not from 0 (for ever) to ten years.
    """
    try:
        retention_rules_set(tenant=tenant, actor=actor, changes={RUNS.name: days})
    except Invalid as error:
        raise Invalid("invalid", error.message, data={"field": "days"}) from error


def _rows() -> Rows:
    ended = Run.objects.filter(finished_at__isnull=False, pruned_at__isnull=True).exclude(status__in=ACTIVE)
    found: Rows = ended.annotate(since=F("finished_at"), bytes=UNKNOWN_SIZE)
    return found


def _remove(tenant: Tenant, rows: Rows) -> int:
    runs = list(rows.select_for_update(skip_locked=True, of=("self",)))
    runs_empty(runs, REMOVED)
    return len(runs)


def _put(tenant: Tenant, days: int | None) -> None:
    if days is None:
        RunRetention.objects.filter(tenant=tenant).delete()
    else:
        RunRetention.objects.update_or_create(tenant=tenant, defaults={"days": days})


RUNS = RetentionKind(
    name="runs",
    label=gettext_lazy("Runs"),
    what=gettext_lazy("steps of answers, arguments and results of tool calls"),
    since=gettext_lazy("the end of the run"),
    rows=_rows,
    column="finished_at",
    remove=_remove,
    default_days=lambda: int(settings.RETENTION_DAYS),
    step=BATCH,
    batch=BATCH,
    own=lambda: RunRetention.objects.values_list("days", flat=True),
    put=_put,
)


_emptied_too: list[Callable[[Sequence[int]], None]] = []


def runs_emptied_with(remove: Callable[[Sequence[int]], None]) -> None:
    """Have what an app keeps of runs removed with what was said in them, by the runs' ids; at start-up."""
    if remove not in _emptied_too:
        _emptied_too.append(remove)


def runs_empty(runs: list[Run], why: str) -> None:
    """Remove what was said in runs, and leave their facts; in a transaction.

    Args:
        why: stands where arguments and results were.
    """
    pks = [run.pk for run in runs]
    RunEvent.objects.filter(run_id__in=pks).delete()
    RunStep.objects.filter(run_id__in=pks).delete()
    ToolCall.objects.filter(run_id__in=pks).update(
        arguments=why, arguments_masked=None, content=why, payload=None
    )
    PendingDecision.objects.filter(run_id__in=pks).update(
        arguments=None, edited_arguments=None, state=None, reason="", decision_reason="", answer=""
    )
    for remove in _emptied_too:
        remove(pks)
    for run in runs:
        run.request = {name: run.request[name] for name in _KEPT if name in run.request}
        run.pruned_at = timezone.now()
    Run.objects.bulk_update(runs, ["request", "pruned_at"])
