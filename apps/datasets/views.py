"""Pages of datasets, under /t/<slug>/datasets/. They hold no rules: selectors read, services write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.collections.selectors import collection_list
from apps.datasets import curation_selectors, selectors, services
from apps.datasets.columns import record_of
from apps.datasets.coverage import coverage_shown
from apps.datasets.forms import DatasetForm, GenerateForm
from apps.datasets.job_page import job_context, job_shown
from apps.datasets.models import Difficulty, QuestionType, RowStatus, Split
from apps.datasets.page_values import number
from apps.datasets.selectors import MOST_COUNTED, RowFilter
from apps.datasets.services.generation import (
    generation_pause,
    generation_resume,
    generation_start,
    generation_stop,
)
from basics.errors import Conflict, DomainError, Invalid
from runs.providers import models_available
from web.requests import TenantRequest, allowed

PER_PAGE = 50
SHOWN_COVERAGE = 6
"""Documents of the map beside the rows; the page of checks has more."""
_MOVES = {"pause": generation_pause, "stop": generation_stop, "resume": generation_resume}


@require_http_methods(["GET", "POST"])
@allowed("dataset.read")
def home(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the datasets, and make one."""
    form = DatasetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = services.dataset_create(tenant=request.tenant, actor=request.actor, **form.cleaned_data)
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
            ("status", "Any status", RowStatus.choices),
            ("type", "Any type", QuestionType.choices),
            ("difficulty", "Any difficulty", Difficulty.choices),
            ("split", "Any split", Split.choices),
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


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def generate(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Start a generation job."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    models = [(info.id, info.label) for info in models_available(request.tenant)]
    counted: Iterable[Any] = collection_list(actor=request.actor)  # with a column that no model has
    collections = [(c.pk, f"{c.name} ({c.chunk_count})") for c in counted]
    form = GenerateForm(request.POST or None, collections=collections, models=models)
    if request.method == "POST" and form.is_valid():
        try:
            job = generation_start(
                tenant=request.tenant,
                actor=request.actor,
                dataset=dataset,
                model=form.cleaned_data["model"],
                options=form.options(),
                budget_usd=form.cleaned_data["budget_usd"],
                probe=form.cleaned_data["probe"] or 0,
            )
        except (Invalid, Conflict) as error:
            form.refuse(error)
        else:
            return redirect("datasets:job", tenant_slug, pk, job.pk)
    context = {"dataset": dataset, "form": form, "has_collections": bool(collections)}
    status = 422 if request.method == "POST" else 200
    return render(request, "datasets/generate.html", context, status=status)


@require_GET
@allowed("dataset.read")
def job(request: TenantRequest, tenant_slug: str, pk: int, job_pk: int) -> HttpResponse:
    """Show how far a job is, with ``?item=`` one candidate in full; a stream keeps it up to date."""
    found = job_shown(actor=request.actor, pk=pk, job_pk=job_pk)
    item = request.GET.get("item", "")
    context = job_context(actor=request.actor, job=found, item=item)
    return render(request, "datasets/job.html", context)


@require_POST
@allowed("dataset.write")
def job_move(request: TenantRequest, tenant_slug: str, pk: int, job_pk: int, move: str) -> HttpResponse:
    """Pause, resume or stop a job."""
    found = job_shown(actor=request.actor, pk=pk, job_pk=job_pk)
    more: dict[str, Any] = {}
    if move == "resume":
        more["budget_usd"] = request.POST.get("budget_usd") or None
    try:
        _MOVES[move](tenant=request.tenant, actor=request.actor, job=found, **more)
    except DomainError as error:
        if error.status in (403, 404):
            raise
        messages.error(request, error.message)
    return redirect("datasets:job", tenant_slug, pk, job_pk)
