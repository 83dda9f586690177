"""Pages of generation: the form that starts a job, the job, and its buttons. They hold no rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.collections.display.selectors import collection_get, collection_list
from apps.datasets.generation.forms import FirstRowsForm, GenerateForm
from apps.datasets.generation.job_page import job_context, job_shown
from apps.datasets.generation.services import (
    generation_pause,
    generation_resume,
    generation_start,
    generation_stop,
)
from apps.datasets.models import Dataset, GenerationJob
from apps.datasets.rows import dataset_services, selectors
from basics.errors import Conflict, DomainError, Invalid
from runs.providers import models_available
from web.requests import TenantRequest, allowed

_MOVES = {"pause": generation_pause, "stop": generation_stop, "resume": generation_resume}


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def generate(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Start a generation job."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    form = GenerateForm(request.POST or None, **_choices(request))
    if request.method == "POST" and form.is_valid():
        try:
            job = _start(request, dataset, form)
        except (Invalid, Conflict) as error:
            form.refuse(error)
        else:
            return redirect("datasets:job", tenant_slug, pk, job.pk)
    return _form_page(request, form, dataset=dataset)


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def from_collection(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Start a generation job about a collection, in a dataset that is made for it."""
    collection = collection_get(actor=request.actor, pk=pk)
    free = dataset_services.dataset_name_free(actor=request.actor, wanted=collection.name)
    form = FirstRowsForm(
        request.POST or None,
        initial={"name": free, "collections": [collection.pk]},
        **_choices(request),
    )
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():  # no empty dataset stays of what is refused
                dataset = dataset_services.dataset_create(
                    tenant=request.tenant, actor=request.actor, name=form.cleaned_data["name"]
                )
                job = _start(request, dataset, form)
        except (Invalid, Conflict) as error:
            form.refuse(error)
        else:
            return redirect("datasets:job", tenant_slug, dataset.pk, job.pk)
    return _form_page(request, form, collection=collection)


def _choices(request: TenantRequest) -> dict[str, list[Any]]:
    """Return what can be asked about, and by which models."""
    counted: Iterable[Any] = collection_list(actor=request.actor)  # with a column that no model has
    return {
        "models": [(info.id, info.label) for info in models_available(request.tenant)],
        "collections": [(c.pk, f"{c.name} ({c.chunk_count})") for c in counted],
    }


def _start(request: TenantRequest, dataset: Dataset, form: GenerateForm) -> GenerationJob:
    return generation_start(
        tenant=request.tenant,
        actor=request.actor,
        dataset=dataset,
        model=form.cleaned_data["model"],
        options=form.options(),
        budget_usd=form.cleaned_data["budget_usd"],
        probe=form.probe_after(),
    )


def _form_page(request: TenantRequest, form: GenerateForm, **about: Any) -> HttpResponse:
    chosen: Any = form.fields["collections"]
    context = {**about, "form": form, "has_collections": bool(chosen.choices)}
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
