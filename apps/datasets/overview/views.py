"""Pages of datasets, under /t/<slug>/datasets/. They hold no rules: selectors read, services write."""

from __future__ import annotations

from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from apps.datasets.checks.coverage import coverage_shown
from apps.datasets.curation import selectors as curation_selectors
from apps.datasets.models import Difficulty, QuestionType, RowStatus, Split
from apps.datasets.overview.forms import DatasetForm
from apps.datasets.records.columns import record_of
from apps.datasets.rows import dataset_services, selectors
from apps.datasets.rows.page_values import number
from apps.datasets.rows.selectors import MOST_COUNTED, RowFilter
from basics.errors import Invalid
from web.requests import TenantRequest, allowed, may_lag

PER_PAGE = 50
SHOWN_COVERAGE = 6
"""Documents of the map beside the rows; the page of checks has more."""


@require_http_methods(["GET", "POST"])
@allowed("dataset.read")
@may_lag
def home(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the datasets, and make one."""
    form = DatasetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = dataset_services.dataset_create(
                tenant=request.tenant, actor=request.actor, **form.cleaned_data
            )
        except Invalid as error:
            form.refuse(error)
        else:
            return redirect("datasets:generate", tenant_slug, row.pk)
    pages = Paginator(selectors.dataset_list(actor=request.actor), PER_PAGE)
    context = {
        "page_obj": pages.get_page(request.GET.get("page")),
        "form": form,
        "can_write": request.actor.can("dataset.write"),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "datasets/list.html", context, status=status)


@require_GET
@allowed("dataset.read")
@may_lag
def detail(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a dataset's rows, filtered, a page after or before a row, with its newest jobs."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    only = RowFilter.read(request.GET)
    page = selectors.row_page(
        actor=request.actor,
        dataset=dataset,
        only=only,
        after=number(request.GET.get("after", "")),
        before=number(request.GET.get("before", "")),
        most=PER_PAGE,
    )
    is_filtered = bool(only.asked_for)
    fitting = selectors.row_count(actor=request.actor, dataset=dataset, only=only) if is_filtered else 0
    covered = curation_selectors.coverage_latest(actor=request.actor, dataset=dataset)
    context = {
        "dataset": dataset,
        "page": page,
        "fitting": min(fitting, MOST_COUNTED),
        "is_more": fitting > MOST_COUNTED,
        "only": only,
        "query": urlencode(only.asked_for),
        "is_filtered": is_filtered,
        "filters": [
            ("status", _("Status"), _("Any status"), RowStatus.choices),
            ("type", _("Type"), _("Any type"), QuestionType.choices),
            ("difficulty", _("Difficulty"), _("Any difficulty"), Difficulty.choices),
            ("split", _("Split"), _("Any split"), Split.choices),
        ],
        "splits": Split.choices,
        "coverage": coverage_shown(covered, most=SHOWN_COVERAGE),
        "jobs": list(selectors.job_list(actor=request.actor, dataset=dataset)[:5]),
        "can_write": request.actor.can("dataset.write"),
    }
    return render(request, "datasets/detail.html", context)


@require_GET
@allowed("dataset.read")
def row(request: TenantRequest, tenant_slug: str, pk: int, row_pk: int) -> HttpResponse:
    """Show a row with its reasoning steps, sources and scores."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    found = selectors.row_get(actor=request.actor, dataset=dataset, pk=row_pk)
    rows = selectors.row_list(actor=request.actor, dataset=dataset)
    context = {
        "dataset": dataset,
        "row": found,
        "record": record_of(found),
        "previous": rows.filter(pk__lt=row_pk).order_by("-pk").first(),
        "following": rows.filter(pk__gt=row_pk).first(),
        "can_write": request.actor.can("dataset.write"),
    }
    return render(request, "datasets/row.html", context)
