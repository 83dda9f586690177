"""Pages of curation: review, files, checks. They hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import TypeVar

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.collections.documents.uploads import posted_file
from apps.datasets.curation import reviews, services
from apps.datasets.curation import selectors as curation_selectors
from apps.datasets.curation.contexts import checks_context, export_context, import_context, section_context
from apps.datasets.curation.forms import ExportForm, ImportForm, RowForm, SplitsForm
from apps.datasets.curation.stopping import work_stop
from apps.datasets.formats import FORMATS
from apps.datasets.models import Dataset, DatasetCheck, DatasetExport, DatasetImport, DatasetRow
from apps.datasets.records.columns import record_of
from apps.datasets.rows import files, selectors
from apps.datasets.rows import services as rows_services
from apps.datasets.rows.page_values import number, numbers
from apps.datasets.rows.selectors import RowFilter
from apps.datasets.rows.withheld import version_require
from basics.errors import DomainError, Missing
from basics.texts import number_told
from tenancy.actors import Actor
from web.downloads import file_redirect, file_response
from web.requests import TenantRequest, allowed

W = TypeVar("W", DatasetExport, DatasetImport, DatasetCheck)
SHOWN = 20


@require_GET
@allowed("dataset.read")
def review(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show the next row that waits for this person."""
    context = section_context(actor=request.actor, pk=pk, tab="review")
    after = request.GET.get("after", "")
    place = curation_selectors.review_next(
        actor=request.actor, dataset=context["dataset"], after=number(after)
    )
    context |= {"place": place}
    if place is not None:
        record = record_of(place.row)
        form = RowForm(initial={"question": record.question, "answer": record.answer})
        context |= {"record": record, "row": place.row, "form": form}
    return render(request, "datasets/review.html", context)


@require_POST
@allowed("dataset.write")
def row_review(request: TenantRequest, tenant_slug: str, pk: int, row_pk: int) -> HttpResponse:
    """Approve or reject a row, and go on to the next one."""
    row = _row(request, pk, row_pk)
    try:
        reviews.row_review(
            tenant=request.tenant,
            actor=request.actor,
            row=row,
            verdict=request.POST.get("verdict", ""),
            content_hash=request.POST.get("content_hash", ""),
            note=request.POST.get("note", ""),
        )
    except DomainError as error:
        _tell(request, error)
        return _back("datasets:review", tenant_slug, pk, after=row_pk - 1)
    return _back("datasets:review", tenant_slug, pk, after=row_pk)


@require_POST
@allowed("dataset.write")
def row_edit(request: TenantRequest, tenant_slug: str, pk: int, row_pk: int) -> HttpResponse:
    """Change question and answer of a row, and look at it again."""
    row = _row(request, pk, row_pk)
    form = RowForm(request.POST)
    if form.is_valid():
        try:
            rows_services.row_update(
                tenant=request.tenant, actor=request.actor, row=row, changes=form.cleaned_data
            )
        except DomainError as error:
            _tell(request, error)
        else:
            messages.success(request, _("Row saved. Approve it when it is correct."))
    else:
        messages.error(request, _("Enter a question."))
    return _back("datasets:review", tenant_slug, pk, after=row_pk - 1)


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def exports(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """List exports, and start one."""
    context = section_context(actor=request.actor, pk=pk, tab="exports")
    dataset: Dataset = context["dataset"]
    versions = selectors.version_list(actor=request.actor, dataset=dataset)
    numbers = list(versions.values_list("number", flat=True)[:200])
    form = ExportForm(request.POST or None, numbers=numbers)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        version = selectors.version_get(actor=request.actor, dataset=dataset, number=values["version"])
        try:
            row = services.export_start(
                tenant=request.tenant,
                actor=request.actor,
                dataset=dataset,
                version=version,
                form=values["form"],
                split=values["split"],
            )
        except DomainError as error:
            form.refuse(error)
        else:
            return redirect("datasets:export", tenant_slug, pk, row.pk)
    rows = curation_selectors.work_list(actor=request.actor, model=DatasetExport, dataset=dataset)
    context |= {
        "form": form,
        "has_versions": bool(numbers),
        "exports": list(rows[:SHOWN]),
        "formats": [f for f in FORMATS.values() if f.is_export],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "datasets/exports.html", context, status=status)


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def export(request: TenantRequest, tenant_slug: str, pk: int, export_pk: int) -> HttpResponse:
    """Show an export with what its validator says, and let findings pass; ``datasets:export-stream`` keeps it fresh."""
    context = export_context(actor=request.actor, pk=pk, work_pk=export_pk)
    row = context["row"]
    if request.method == "POST":
        try:
            services.finding_accept(
                tenant=request.tenant,
                actor=request.actor,
                dataset=row.dataset,
                export=row,
                fingerprints=request.POST.getlist("finding"),
                note=request.POST.get("note", ""),
            )
            again = services.export_start(
                tenant=request.tenant,
                actor=request.actor,
                dataset=row.dataset,
                version=row.version,
                form=row.format,
                split=row.split,
            )
        except DomainError as error:
            _tell(request, error)
        else:
            row = again
        return redirect("datasets:export", tenant_slug, pk, row.pk)
    return render(request, "datasets/export.html", context)


@require_GET
@allowed("dataset.write")
def export_file(request: TenantRequest, tenant_slug: str, pk: int, export_pk: int) -> HttpResponseBase:
    """Send the file of an export."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    row = curation_selectors.work_get(actor=request.actor, model=DatasetExport, pk=export_pk, dataset=dataset)
    return export_response(request.actor, row, is_browser=True)


def export_response(actor: Actor, row: DatasetExport, *, is_browser: bool = False) -> HttpResponseBase:
    """Return the file of an export, named for its dataset, version and format, or the way to it (``file_redirect``).

    Args:
        is_browser: others may not follow a redirect, or may take their key for our API along to the store.

    Raises:
        Denied: see ``version_require``.
    """
    version_require(actor=actor, version=row.version)
    form = FORMATS[row.format] if row.format in FORMATS else FORMATS["jsonl"]
    split = f"-{row.split}" if row.split else ""
    name = f"{row.dataset.slug}-v{row.version.number}{split}-{row.format}{form.suffix}"
    elsewhere = file_redirect(row.file, name=name) if is_browser else None
    if elsewhere is not None:
        return elsewhere
    return file_response(files.dataset_file_open(row.file), name=name, media_type=form.media_type)


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def imports(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """List imports, and start one."""
    context = section_context(actor=request.actor, pk=pk, tab="imports")
    dataset: Dataset = context["dataset"]
    form = ImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            row = services.import_start(
                tenant=request.tenant,
                actor=request.actor,
                dataset=dataset,
                form=values["form"],
                is_trial=values["is_trial"],
                **posted_file(request),
            )
        except DomainError as error:
            form.refuse(error)
        else:
            return redirect("datasets:import", tenant_slug, pk, row.pk)
    rows = curation_selectors.work_list(actor=request.actor, model=DatasetImport, dataset=dataset)
    context |= {"form": form, "imports": list(rows[:SHOWN])}
    status = 422 if request.method == "POST" else 200
    return render(request, "datasets/imports.html", context, status=status)


@require_GET
@allowed("dataset.write")
def import_(request: TenantRequest, tenant_slug: str, pk: int, import_pk: int) -> HttpResponse:
    """Show an import with the rows it could not read; ``datasets:import-stream`` keeps it fresh."""
    context = import_context(actor=request.actor, pk=pk, work_pk=import_pk)
    return render(request, "datasets/import.html", context)


@require_GET
@allowed("dataset.write")
def import_errors(request: TenantRequest, tenant_slug: str, pk: int, import_pk: int) -> HttpResponseBase:
    """Send the file of the rows that could not be read."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    row = curation_selectors.work_get(actor=request.actor, model=DatasetImport, pk=import_pk, dataset=dataset)
    return errors_response(row, is_browser=True)


def errors_response(row: DatasetImport, *, is_browser: bool = False) -> HttpResponseBase:
    """Return the file of the rows that an import could not read, or the way to it; see ``export_response``."""
    name = f"errors-of-import-{row.pk}.jsonl"
    elsewhere = file_redirect(row.errors_file, name=name) if is_browser else None
    if elsewhere is not None:
        return elsewhere
    return file_response(
        files.dataset_file_open(row.errors_file), name=name, media_type="application/x-ndjson"
    )


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def checks(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show the newest check of each kind, and start one, divisions as a trial; ``datasets:checks-stream`` keeps them fresh."""
    kind = request.POST.get("kind", "")
    is_division = kind == DatasetCheck.Kind.SPLITS
    form = SplitsForm(request.POST if is_division else None)
    if request.method == "POST" and (not is_division or form.is_valid()):
        try:
            services.check_start(
                tenant=request.tenant,
                actor=request.actor,
                dataset=selectors.dataset_get(actor=request.actor, pk=pk),
                kind=kind,
                shares=form.shares() if is_division else None,
                seed=form.cleaned_data["seed"] if is_division else 0,
                is_trial=is_division,
                with_meaning=bool(request.POST.get("with_meaning")),
                against=numbers(request.POST.getlist("against")),
            )
        except DomainError as error:
            if is_division:
                form.refuse(error)
            else:
                _tell(request, error)
                return redirect("datasets:checks", tenant_slug, pk)
        else:
            return (
                _to_splits(tenant_slug, pk) if is_division else redirect("datasets:checks", tenant_slug, pk)
            )
    context = checks_context(actor=request.actor, pk=pk, form=form)
    status = 422 if request.method == "POST" else 200
    return render(request, "datasets/checks.html", context, status=status)


@require_POST
@allowed("dataset.write")
def rows_settle(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Do one thing with the rows that were chosen among findings."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    try:
        changed = reviews.rows_settle(
            tenant=request.tenant,
            actor=request.actor,
            dataset=dataset,
            row_pks=numbers(request.POST.getlist("row")),
            act=request.POST.get("act", ""),
            note=request.POST.get("note", ""),
        )
    except DomainError as error:
        _tell(request, error)
    else:
        told = ngettext("%(count)s row changed.", "%(count)s rows changed.", changed)
        messages.success(request, told % {"count": number_told(changed)})
    return redirect("datasets:checks", tenant_slug, pk)


@require_POST
@allowed("dataset.write")
def rows_split(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show what would move if the rows of a filtered list went into a split."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    only = RowFilter.read(request.POST)
    try:
        services.split_assign(
            tenant=request.tenant,
            actor=request.actor,
            dataset=dataset,
            into=request.POST.get("into", ""),
            only=only,
            is_trial=True,
        )
    except DomainError as error:
        _tell(request, error)
        return redirect(f"{reverse('datasets:detail', args=[tenant_slug, pk])}?{urlencode(only.asked_for)}")
    return _to_splits(tenant_slug, pk)


@require_POST
@allowed("dataset.write")
def split_move(request: TenantRequest, tenant_slug: str, pk: int, check_pk: int, move: str) -> HttpResponse:
    """Do what the trial of a division has shown, or take a division back."""
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    check = curation_selectors.work_get(actor=request.actor, model=DatasetCheck, pk=check_pk, dataset=dataset)
    act = services.split_apply if move == "apply" else services.split_undo
    try:
        act(tenant=request.tenant, actor=request.actor, check=check)
    except DomainError as error:
        _tell(request, error)
    return _to_splits(tenant_slug, pk)


@require_POST
@allowed("dataset.write")
def export_stop(request: TenantRequest, tenant_slug: str, pk: int, export_pk: int) -> HttpResponse:
    """Stop an export."""
    _stop(request, pk, DatasetExport, export_pk)
    return redirect("datasets:export", tenant_slug, pk, export_pk)


@require_POST
@allowed("dataset.write")
def import_stop(request: TenantRequest, tenant_slug: str, pk: int, import_pk: int) -> HttpResponse:
    """Stop an import."""
    _stop(request, pk, DatasetImport, import_pk)
    return redirect("datasets:import", tenant_slug, pk, import_pk)


@require_POST
@allowed("dataset.write")
def check_stop(request: TenantRequest, tenant_slug: str, pk: int, check_pk: int) -> HttpResponse:
    """Stop a check or a division into splits."""
    check = _stop(request, pk, DatasetCheck, check_pk)
    return redirect(f"{reverse('datasets:checks', args=[tenant_slug, pk])}#check-{check.kind}")


def _stop(request: TenantRequest, pk: int, model: type[W], work_pk: int) -> W:
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    work = curation_selectors.work_get(actor=request.actor, model=model, pk=work_pk, dataset=dataset)
    try:
        return work_stop(tenant=request.tenant, actor=request.actor, work=work)
    except DomainError as error:
        _tell(request, error)
        return work


def _to_splits(tenant_slug: str, pk: int) -> HttpResponse:
    return redirect(f"{reverse('datasets:checks', args=[tenant_slug, pk])}#check-splits")


def _row(request: TenantRequest, pk: int, row_pk: int) -> DatasetRow:
    dataset = selectors.dataset_get(actor=request.actor, pk=pk)
    return selectors.row_get(actor=request.actor, dataset=dataset, pk=row_pk)


def _tell(request: TenantRequest, error: DomainError) -> None:
    if isinstance(error, Missing) or error.status == 403:
        raise error
    messages.error(request, error.message)


def _back(name: str, tenant_slug: str, pk: int, *, after: int) -> HttpResponse:
    response = redirect(name, tenant_slug, pk)
    response["Location"] += f"?after={after}"
    return response
