"""The page of one answer. It holds no rules: ``trials`` reads."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from apps.conversations.display.rendering import text_render
from apps.evaluations.results.labels import money_told, time_told
from apps.evaluations.scorers.turns import said_before
from apps.evaluations.trials.selectors import trial_sheet
from web.requests import TenantRequest, allowed


@require_GET
@allowed("evaluation.read")
def trial(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show one answer, its scores, and what each judge found in it."""
    sheet = trial_sheet(actor=request.actor, pk=pk)
    row = sheet.trial
    facts = [row.get_state_display()]
    if row.experiment.repeats > 1:
        facts.append(
            _("repeat %(repeat)s of %(repeats)s")
            % {"repeat": row.repeat + 1, "repeats": row.experiment.repeats}
        )
    facts += [time_told(row.latency_ms)] if row.latency_ms is not None else []
    facts += [money_told(float(row.cost_usd))] if row.cost_usd is not None else []
    if row.judge_usd:
        facts.append(_("judges %(cost)s") % {"cost": money_told(float(row.judge_usd))})
    context = {
        "sheet": sheet,
        "trial": row,
        "blocks": text_render(row.answer),
        "facts": facts,
        "said": said_before(sheet.record),
    }
    return render(request, "evaluations/trial.html", context)
