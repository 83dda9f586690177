"""Pages of generation: the form that starts a job, the job, and its buttons. They hold no rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.collections.display.selectors import collection_list
from apps.datasets.generation.forms import GenerateForm
from apps.datasets.generation.job_page import job_context, job_shown
from apps.datasets.generation.services import (
    generation_pause,
    generation_resume,
    generation_start,
    generation_stop,
)
from apps.datasets.rows import selectors
from basics.errors import Conflict, DomainError, Invalid
from runs.providers import models_available
from web.requests import TenantRequest, allowed

_MOVES = {"pause": generation_pause, "stop": generation_stop, "resume": generation_resume}


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
