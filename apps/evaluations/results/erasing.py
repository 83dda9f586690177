"""What evaluations made of an erased document or conversation: trials of its rows go, answers that rest on it lose their text."""

from __future__ import annotations

from collections.abc import Callable, Set

from django.db.models import Q

from apps.conversations.models import Turn
from apps.datasets.curation.erasing import dataset_parts
from apps.evaluations.models import (
    TRIAL_ENDED,
    Experiment,
    LiveSample,
    LiveScore,
    Preference,
    Score,
    ScoreCache,
    Trial,
)
from basics.texts import gettext_noop
from batches.models import BatchLine, LineState
from erasure.kinds import Erased
from erasure.reports import REMOVED, REPLACED, Report
from runs.erasing import runs_reading
from tenancy.database.base import as_login_role
from tenancy.models import Tenant

_ERASED = gettext_noop("A document this answer was based on was erased.")


def evaluations_made_erase(erased: Erased) -> Callable[[Report], None]:
    """Return what removes trials of erased rows, and texts of answers, scores and judges that rest on what is erased."""
    tenant = erased.tenant
    contents = dataset_parts(erased).contents
    runs = set(runs_reading(erased))
    rests = Q(run_id__in=runs | erased.runs)
    for document in erased.documents:
        for part in ("retrieved", "citations"):
            rests |= Q(**{f"outcome__{part}__contains": [{"document_id": document}]})
    every = Trial.objects.filter(tenant=tenant)
    gone = set(every.filter(content_id__in=contents).values_list("pk", flat=True))
    read = set(every.filter(rests).exclude(pk__in=gone).values_list("pk", flat=True))
    turns = set(Turn.objects.filter(tenant=tenant, run_id__in=runs).values_list("pk", flat=True))

    def remove(report: Report) -> None:
        with as_login_role():  # scores and answers of judges are append-only for everybody else
            samples = LiveSample.objects.filter(tenant=tenant, turn_id__in=turns)
            scores = LiveScore.objects.filter(tenant=tenant, sample_id__in=samples.values("pk"))
            report.add("evaluations.LiveScore", REMOVED, scores.delete()[0])
            report.add("evaluations.LiveSample", REMOVED, samples.delete()[0])
            if not gone and not read:
                return
            touched = set(every.filter(pk__in=gone | read).values_list("experiment_id", flat=True))
            _lines_erase(tenant, touched, gone | read, report)
            pair = Q(a_id__in=read) | Q(b_id__in=read)
            told = Preference.objects.filter(pair, tenant=tenant).exclude(reason="")
            report.add("evaluations.Preference", REPLACED, told.update(reason=""))
            said = Score.objects.filter(tenant=tenant, trial_id__in=read)
            report.add("evaluations.Score", REPLACED, said.update(reason="", evidence="", details={}))
            texts = every.filter(pk__in=read)
            report.add("evaluations.Trial", REPLACED, texts.update(answer="", outcome={}, error=_ERASED))
            for model, which in (
                (Score, Q(trial_id__in=gone)),
                (Preference, Q(a_id__in=gone) | Q(b_id__in=gone)),
            ):
                report.add(
                    model._meta.label, REMOVED, model._base_manager.filter(which, tenant=tenant).delete()[0]
                )
            report.add("evaluations.Trial", REMOVED, every.filter(pk__in=gone).delete()[0])
            for pk in touched:
                ended = every.filter(experiment_id=pk, state__in=TRIAL_ENDED).count()
                Experiment.objects.filter(tenant=tenant, pk=pk).update(ended_count=ended)
            cached = ScoreCache.objects.filter(tenant=tenant)
            report.add("evaluations.ScoreCache", REMOVED, cached.delete()[0])

    return remove


def _lines_erase(tenant: Tenant, experiments: Set[int], trials: Set[int], report: Report) -> None:
    """Remove the batched calls of trials; those of other trials are still waited for.

    A call that a provider has now stays without its text until the experiment ends: what it costs is still to be recorded,
    and what is held for it given back.
    """
    lines = BatchLine.objects.filter(tenant=tenant, owner__in=[f"experiment:{pk}" for pk in experiments])
    named = lines.select_for_update().values_list("pk", "key")
    lines = lines.filter(pk__in=[pk for pk, key in named if int(key.partition("-")[0]) in trials])
    sent = lines.filter(state=LineState.SENT)
    report.add("batches.BatchLine", REPLACED, sent.update(body="", context=[]))
    report.add("batches.BatchLine", REMOVED, lines.exclude(state=LineState.SENT).delete()[0])
