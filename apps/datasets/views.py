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
from apps.datasets import selectors, services
from apps.datasets.columns import record_of
from apps.datasets.forms import DatasetForm, GenerateForm
from apps.datasets.models import (
    JOB_ACTIVE,
    Difficulty,
    GenerationJob,
    QuestionType,
    RowStatus,
    Split,
)
from apps.datasets.progress import progress_read
from apps.datasets.selectors import RowFilter
from apps.datasets.services.generation import (
    generation_pause,
    generation_resume,
    generation_start,
    generation_stop,
)
from basics.errors import Conflict, DomainError, Invalid
from runs.providers import model_label, models_available
from web.requests import TenantRequest, allowed

PER_PAGE = 50
_MOVES = {"pause": generation_pause, "stop": generation_stop, "resume": generation_resume}


@require_http_methods(["GET", "POST"])
@allowed("dataset.read")
def home(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the datasets, and make one."""
    form = DatasetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = services.dataset_create(
                tenant=request.tenant, actor=request.actor, **form.cleaned_data
            )
        except Invalid as error:
            form.refuse(error)
        else:
            return redirect("datasets:generate", tenant_slug, row.pk)
    context = {
        "datasets": list(selectors.dataset_list(actor=request.actor)[:200]),
        "form": form,
        "can_write": request.actor.can("dataset.write"),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "datasets/list.html", context, status=status)


@require_GET
@allowed("dataset.read")
def detail(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a dataset's rows, filtered, with its versions and jobs."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    asked = {name: request.GET.get(name, "").strip() for name in RowFilter.__slots__}
    only = RowFilter(**{name: value.replace("\x00", "") for name, value in asked.items()})
    rows = selectors.row_list(actor=request.actor, dataset=dataset, only=only)
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "dataset": dataset,
        "rows": list(page.object_list),
        "page_obj": page,
        "only": asked,
        "query": urlencode({k: v for k, v in asked.items() if v}),
        "is_filtered": any(asked.values()),
        "filters": [
            ("status", "Any status", RowStatus.choices),
            ("type", "Any type", QuestionType.choices),
            ("difficulty", "Any difficulty", Difficulty.choices),
            ("split", "Any split", Split.choices),
        ],
        "versions": list(selectors.version_list(actor=request.actor, dataset=dataset)[:10]),
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
    """Show how far a job is; the fragment asks for itself while it runs."""
    found = _job(request, pk, job_pk)
    page = "datasets/_job.html" if request.headers.get("HX-Request") else "datasets/job.html"
    return render(request, page, _job_context(request, found))


@require_POST
@allowed("dataset.write")
def job_move(
    request: TenantRequest, tenant_slug: str, pk: int, job_pk: int, move: str
) -> HttpResponse:
    """Pause, resume or stop a job."""
    found = _job(request, pk, job_pk)
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


@require_POST
@allowed("dataset.write")
def version_create(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Freeze rows into a version."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    only = RowFilter(status=RowStatus.APPROVED) if request.POST.get("approved") else RowFilter()
    try:
        made = services.version_create(
            tenant=request.tenant,
            actor=request.actor,
            dataset=dataset,
            only=only,
            note=request.POST.get("note", ""),
        )
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"Version {made.number} has {made.row_count} rows.")
    return redirect("datasets:detail", tenant_slug, pk)


def _job(request: TenantRequest, pk: int, job_pk: int) -> GenerationJob:
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    return selectors.job_get(actor=request.actor, pk=job_pk, dataset=dataset)


def _job_context(request: TenantRequest, found: GenerationJob) -> dict[str, Any]:
    ended = found.kept + found.dropped + found.failed
    return {
        "dataset": found.dataset,
        "job": found,
        "progress": progress_read(actor=request.actor, job=found),
        "ended": ended,
        "is_active": found.state in JOB_ACTIVE,
        "model_label": model_label(found.model),
        "can_write": request.actor.can("dataset.write"),
    }
