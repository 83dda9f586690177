"""The page of an arm's failures: by tag, in groups, and a dataset or a split of them in one step. It holds no rules."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from apps.datasets.models import Split
from apps.evaluations.compare.comparison import PASS
from apps.evaluations.failures.selectors import PAGE_ROWS, arm_failures
from apps.evaluations.failures.services import (
    failure_tags_change,
    failures_collect,
    failures_group,
    failures_split,
)
from apps.evaluations.models import ExperimentState
from apps.evaluations.results import selectors
from basics.errors import DomainError, Invalid
from web.requests import TenantRequest, allowed

_MOST_NAME = 120


@require_GET
@allowed("evaluation.read")
def failures(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show which rows an arm fails, and what they have in common; with a tag those that have it."""
    arm = selectors.arm_get(actor=request.actor, pk=pk)
    tag, page = request.GET.get("tag", ""), _number(request.GET.get("page", ""), "page") or 1
    found = arm_failures(actor=request.actor, arm=arm, page=page, tag=tag)
    context = {
        "arm": arm,
        "found": found,
        "tag": tag,
        "page_obj": Paginator(range(found.listed), PAGE_ROWS).get_page(found.page),
        "query": urlencode({"tag": tag}) if tag else "",
        "names": selectors.failure_tag_list(actor=request.actor),
        "bar": PASS,
        "splits": Split.choices,
        # While answers come in, groups would be out of date at once.
        "is_settled": arm.experiment.state != ExperimentState.RUNNING,
        "can_write": request.actor.can("dataset.write"),
        "can_tag": request.actor.can("evaluation.write"),
    }
    return render(request, "evaluations/failures.html", context)


@require_POST
@allowed("evaluation.write")
def group(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Have a page of the failing rows grouped; the page shows how far it is."""
    arm = selectors.arm_get(actor=request.actor, pk=pk)
    page = _number(request.POST.get("page", ""), "page") or 1
    failures_group(tenant=request.tenant, actor=request.actor, arm=arm, page=page)
    return redirect(_address(tenant_slug, pk, page))


@require_POST
@allowed("evaluation.write")
def tag(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Give an answer tags, or take some from it; answers htmx with its tags and a way back."""
    trial = selectors.trial_get(actor=request.actor, pk=pk)
    add, remove = request.POST.getlist("add"), request.POST.getlist("remove")
    tags = failure_tags_change(
        tenant=request.tenant, actor=request.actor, trial=trial, add=add, remove=remove
    )
    if not request.htmx:
        return redirect("evaluations:failures", tenant_slug, trial.arm_id)
    context = {"trial": trial.pk, "tags": tags, "added": add, "removed": remove, "can_tag": True}
    return render(request, "evaluations/_failure_tags.html", context)


@require_POST
@allowed("dataset.write")
def collect(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Create a dataset of the failing rows with a tag or of a group."""
    arm = selectors.arm_get(actor=request.actor, pk=pk)
    tag, group = request.POST.get("tag", ""), _number(request.POST.get("group", ""), "group")
    what = tag or (f"group {group}" if group else "failures")
    try:
        version = failures_collect(
            tenant=request.tenant,
            actor=request.actor,
            arm=arm,
            name=f"{arm.experiment.name}: {what}"[:_MOST_NAME],
            tag=tag,
            group=group,
            page=_number(request.POST.get("page", ""), "page") or 1,
        )
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("evaluations:failures", tenant_slug, pk)
    told = ngettext(
        "A dataset of %(count)s row, frozen as version 1.",
        "A dataset of %(count)s rows, frozen as version 1.",
        version.row_count,
    )
    messages.success(request, told % {"count": version.row_count})
    return redirect("datasets:detail", tenant_slug, version.dataset_id)


@require_POST
@allowed("dataset.write")
def split(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Put the failing rows, those with a tag or those of a group into a split of their dataset."""
    arm = selectors.arm_get(actor=request.actor, pk=pk)
    kind, _colon, which = request.POST.get("which", "").partition(":")
    try:
        check = failures_split(
            tenant=request.tenant,
            actor=request.actor,
            arm=arm,
            into=request.POST.get("into", ""),
            tag=which if kind == "tag" else "",
            group=_number(which, "group") if kind == "group" else None,
            page=_number(request.POST.get("page", ""), "page") or 1,
        )
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("evaluations:failures", tenant_slug, pk)
    return redirect(f"{reverse('datasets:checks', args=[tenant_slug, check.dataset_id])}#check-splits")


def _number(text: str, what: str) -> int | None:
    if text and not (text.isascii() and text.isdigit() and len(text) < 6):
        told = _("Choose one of the groups.") if what == "group" else _("Choose one of the pages.")
        raise Invalid(f"{what}_invalid", told)
    return int(text) if text else None


def _address(slug: str, pk: int, page: int) -> str:
    address = reverse("evaluations:failures", args=[slug, pk])
    return f"{address}?page={page}" if page > 1 else address
