"""Pages of safety suites: make one, and what it has shown. They hold no rules."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods

from apps.evaluations.arms.targets import TOOLS_TOLD
from apps.evaluations.models import ExperimentState
from apps.evaluations.results import selectors
from apps.evaluations.safety.charts import rates_chart, rates_told
from apps.evaluations.safety.forms import SuiteForm
from apps.evaluations.safety.selectors import safety_report
from apps.evaluations.safety.services import suite_create
from basics.errors import Invalid, Missing
from basics.texts import number_told
from web.forms import add_refusal
from web.requests import TenantRequest, allowed


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def suite_new(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Make a suite, and go on to the experiment that asks it."""
    request.actor.require("evaluation.write")
    form = SuiteForm(request.POST or None, actor=request.actor)
    if request.method == "POST" and form.is_valid():
        try:
            version = suite_create(tenant=request.tenant, actor=request.actor, **form.cleaned_data)
        except (Invalid, Missing) as error:
            add_refusal(form, error)
        else:
            messages.success(
                request,
                ngettext(
                    "The suite has %(count)s row. Choose what to test.",
                    "The suite has %(count)s rows. Choose what to test.",
                    version.row_count,
                )
                % {"count": number_told(version.row_count)},
            )
            address = reverse("evaluations:create", args=[tenant_slug])
            return redirect(f"{address}?{urlencode({'suite': version.pk})}")
    status = 422 if request.method == "POST" else 200
    return render(request, "evaluations/safety_new.html", {"form": form}, status=status)


@require_GET
@allowed("evaluation.read")
def safety(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show how often attacks succeeded, by carrier and tools, by goal, and which ones."""
    row = selectors.experiment_get(actor=request.actor, pk=pk)
    report = safety_report(actor=request.actor, experiment=row)
    names = [one.arm.name for one in report.arms]
    context = {
        "experiment": row,
        "report": report,
        "arms": [(n, one, one.tools and _(TOOLS_TOLD[one.tools])) for n, one in enumerate(report.arms, 1)],
        "is_extractive": all(one.is_extractive for one in report.arms),
        "chart": rates_chart(report.groups[0].lines),
        "chart_told": rates_told(report.groups[0].lines, names),
        "is_running": row.state == ExperimentState.RUNNING,
        "can_trace": request.actor.can("run.read"),
    }
    return render(request, "evaluations/safety.html", context)
