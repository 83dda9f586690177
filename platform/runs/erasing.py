"""What runs keep of an erased document: steps, arguments and results go; of answers, the sentences that tell of it.

Which sentences those are is judged as for readers who lost a document (``runs.withheld``), and is now true of the rows.
"""

from __future__ import annotations

from collections.abc import Callable

from erasure.kinds import Erased
from erasure.reports import REMOVED, REPLACED, Report
from runs.models import ACTIVE, ChunkRead, Run, RunEvent, RunStep, ToolCall
from runs.retention import runs_empty
from runs.services import run_stop
from runs.withheld import Withheld, withheld_of_documents
from tenancy.actors import system_actor
from tenancy.database.base import as_login_role

ERASED = "Removed: a document it was read from was erased."
NAMELESS = "(document)"
"""Stands for the name of an erased document where it was noted as read."""


def runs_reading(erased: Erased) -> dict[int, Withheld]:
    """Return the runs that read documents which are erased, or went on from such, with what they may not say any more.

    Those that were dealt with before are left out.
    """
    if not erased.documents:
        return {}
    reads = ChunkRead.objects.filter(tenant=erased.tenant, document_id__in=erased.documents)
    if not reads.exclude(document_name=NAMELESS).exists():
        return {}
    return withheld_of_documents(
        tenant_id=erased.tenant.pk,
        documents=erased.documents,
        passages=erased.passages,
        names=erased.names,
    )


def runs_erase(erased: Erased) -> Callable[[Report], None]:
    """Return what empties runs that read an erased document, and counts those that go with a conversation."""
    found = runs_reading(erased)
    tenant = erased.tenant

    def remove(report: Report) -> None:
        runs = list(Run.objects.select_for_update().filter(tenant=tenant, pk__in=found).order_by("pk"))
        for run in runs:
            if run.status in ACTIVE:
                run_stop(tenant=tenant, actor=system_actor(tenant.pk), run=run)
        mine = {"tenant": tenant, "run_id__in": list(found)}
        for model in (RunEvent, RunStep, ToolCall):
            what = REPLACED if model is ToolCall else REMOVED
            report.add(model._meta.label, what, model._base_manager.filter(**mine).count())
        runs_empty(runs, ERASED)
        changed = 0
        for run in runs:
            answer = found[run.pk].content(run.answer)
            changed += answer != run.answer
            Run.objects.filter(tenant=tenant, pk=run.pk).update(
                answer=answer, error_message="", background={}
            )
        report.add("runs.Run", REPLACED, len(runs))
        report.add("answers with sentences left out", REPLACED, changed)
        with as_login_role():  # nobody else may change what was noted as read
            reads = ChunkRead.objects.filter(tenant=tenant, document_id__in=erased.documents)
            named = reads.exclude(document_name=NAMELESS)
            report.add("runs.ChunkRead", REPLACED, named.update(document_name=NAMELESS))

    return remove
