"""Pages of experiments. They hold no rules: selectors read, services write."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.conversations.transcript.selectors import model_default, model_list
from apps.datasets.models import DatasetVersion
from apps.datasets.rows.page_values import number
from apps.datasets.rows.selectors import dataset_list
from apps.evaluations.arms.targets import target_read, target_told
from apps.evaluations.arms.tool_sets import TOOL_SETS
from apps.evaluations.compare.charts import front_chart, front_told
from apps.evaluations.compare.comparison import stale_told
from apps.evaluations.compare.dominance import front_of
from apps.evaluations.compare.pairs import pairs_summary
from apps.evaluations.experiments import services
from apps.evaluations.experiments.forms import ExperimentForm
from apps.evaluations.judges.disputes import disputes
from apps.evaluations.judges.drift import check_list
from apps.evaluations.judges.scoring import judge_models, judges_of_kin
from apps.evaluations.models import ExperimentState, Trial, TrialState
from apps.evaluations.results import selectors
from apps.evaluations.results.labels import author_told, label
from apps.evaluations.results.selectors import has_suite
from apps.evaluations.results.withheld import trials_readable
from apps.evaluations.scorers.retrieval import COVERAGE_ALARM
from basics.errors import DomainError, Invalid, Missing
from batches.delivery import Delivery
from web.forms import add_refusal
from web.requests import TenantRequest, allowed, may_lag

PAGE = 30
_MOST_NAME = 100
"""Of a dataset's name in that of an experiment, which also says the version."""
_FAILED_SHOWN = 20
_ACTS = {
    "pause": services.experiment_pause,
    "resume": services.experiment_resume,
    "stop": services.experiment_stop,
}


@require_GET
@allowed("evaluation.read")
@may_lag
def experiments(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List experiments, newest first."""
    pages = Paginator(selectors.experiment_list(actor=request.actor), PAGE)
    page: Any = pages.get_page(request.GET.get("page"))
    context = {
        "page_obj": page,
        "rows": [(row, *selectors.state_told(row)) for row in page],
        "can_write": request.actor.can("evaluation.write"),
        "can_make_suite": request.actor.can("dataset.write"),
        "has_dataset": dataset_list(actor=request.actor).exists(),
        "tab": "experiments",
    }
    return render(request, "evaluations/list.html", context)


@require_http_methods(["GET", "POST"])
@allowed("evaluation.write")
def experiment_new(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Start an experiment."""
    form = ExperimentForm(
        request.POST or None,
        initial=_first_values(request),
        tenant=request.tenant,
        actor=request.actor,
    )
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            version = DatasetVersion.objects.visible_to(request.actor).get(pk=data["version"])
            row = services.experiment_create(
                tenant=request.tenant,
                actor=request.actor,
                name=data["name"],
                version=version,
                arms=form.arms(),
                scorers=form.scorer_specs(),
                repeats=data["repeats"],
                judge_repeats=data["judge_repeats"] or 1,
                stops_dominated=data["stops_dominated"],
                same_documents=data["apart"],
                delivery=data["delivery"] or Delivery.NOW.value,
                budget_usd=data["budget_usd"] or None,
            )
        except (Invalid, Missing) as error:
            add_refusal(form, error)
        else:
            messages.success(request, _("The experiment has started."))
            return redirect("evaluations:detail", tenant_slug, row.pk)
    status = 422 if request.method == "POST" else 200
    return render(request, "evaluations/new.html", {"form": form}, status=status)


def _first_values(request: TenantRequest) -> dict[str, Any] | None:
    """Return what the form begins with: ``?suite=`` are the rows of an attack suite, ``?version=`` any rows."""
    if suite := request.GET.get("suite", ""):
        return {"version": suite, "scorers": ["attack"], "tools": list(TOOL_SETS)}
    text = request.GET.get("version", "")
    versions = DatasetVersion.objects.visible_to(request.actor).select_related("dataset")
    version = versions.filter(pk=number(text)).first() if text else None
    if version is None:
        return None
    return {
        "version": version.pk,
        "name": _("%(dataset)s, version %(number)s")
        % {"dataset": str(version.dataset)[:_MOST_NAME], "number": version.number},
        "models": [model_default(model_list(request.tenant), request.actor)],
    }


@require_GET
@allowed("evaluation.read")
def experiment(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show an experiment: how far it is, its arms with their means, and what failed."""
    row: Any = selectors.experiment_get(actor=request.actor, pk=pk)
    arms = selectors.arms_summary(actor=request.actor, experiment=row)
    points = front_of(arms)
    pairs = pairs_summary(actor=request.actor, experiment=row)
    coverage = selectors.experiment_coverage(actor=request.actor, experiment=row)
    names = [label(name) for name, _ in arms[0].scores] if arms else []
    failed = Trial.objects.visible_to(request.actor).filter(experiment=row, state=TrialState.FAILED)
    failed = trials_readable(failed, request.actor)
    context = {
        "experiment": row,
        "state": selectors.state_told(row),
        "batch": selectors.experiment_batch(actor=request.actor, experiment=row),
        "arms": [
            (arm, target_told(target_read(arm.arm.target)), point)
            for arm, point in zip(arms, points, strict=True)
        ],
        "front": front_chart(points),
        "front_told": front_told(points),
        "has_suite": has_suite(row),
        "is_repeated": row.repeats > 1 or row.judge_repeats > 1,
        "names": names,
        "judged": selectors.judge_use(actor=request.actor, experiment=row),
        "pairs": pairs,
        "pair_judges": [author_told(one) for one in pairs.authors] if pairs else [],
        "checks": [(one, author_told(one.author)) for one in check_list(actor=request.actor, experiment=row)],
        "kin": judges_of_kin(
            row.scorers, selectors.models_asked(actor=request.actor, arms=[arm.arm for arm in arms])
        ),
        "stale": stale_told(coverage) if coverage is not None and coverage < COVERAGE_ALARM else "",
        "disputed": len(disputes(actor=request.actor, experiment=row))
        if len(judge_models(row.scorers)) > 1
        else 0,
        "failed": failed.select_related("arm").order_by("pk")[:_FAILED_SHOWN],
        "baseline": selectors.baseline_get(actor=request.actor, dataset_id=row.dataset_id),
        "can_write": request.actor.can("evaluation.write"),
        "is_running": row.state == ExperimentState.RUNNING,
        "can_resume": row.state in (ExperimentState.PAUSED, ExperimentState.STOPPED),
        "is_paused": row.state == ExperimentState.PAUSED,
        "is_completed": row.state == ExperimentState.COMPLETED,
    }
    return render(request, "evaluations/detail.html", context)


@require_POST
@allowed("evaluation.write")
def experiment_act(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Pause, resume or stop."""
    act = _ACTS.get(request.POST.get("do", ""))
    if act is None:
        raise Invalid("invalid", _("Choose pause, resume or stop."))
    row = selectors.experiment_get(actor=request.actor, pk=pk)
    more: dict[str, Any] = {}
    if request.POST.get("do") == "resume" and (text := request.POST.get("budget_usd", "").strip()):
        more["budget_usd"] = _money(text)
    try:
        act(tenant=request.tenant, actor=request.actor, experiment=row, **more)
    except DomainError as error:
        messages.error(request, error.message)
    return redirect("evaluations:detail", tenant_slug, pk)


def _money(text: str) -> Decimal:
    """Return an amount that a person typed. Raises Invalid."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 < amount < Decimal(1_000_000):
        raise Invalid("budget_invalid", _("Give the budget in US dollars, for example 2.50."))
    return amount.quantize(Decimal("0.000001"))
