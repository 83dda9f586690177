"""The page of an arm's failures: by tag, in groups, and a dataset or a split of them in one step. It holds no rules."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from apps.datasets.models import Split
from apps.evaluations import selectors
from apps.evaluations.comparison import PASS
from apps.evaluations.failures import arm_failures
from apps.evaluations.services.failures import failures_collect, failures_split
from basics.errors import DomainError, Invalid
from web.requests import TenantRequest, allowed

_MOST_NAME = 120


@require_GET
@allowed("evaluation.read")
def failures(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show which rows an arm fails, and what they have in common."""
    arm = selectors.arm_get(actor=request.actor, pk=pk)
    context = {
        "arm": arm,
        "found": arm_failures(tenant=request.tenant, actor=request.actor, arm=arm),
        "bar": PASS,
        "splits": Split.choices,
        "can_write": request.actor.can("dataset.write"),
    }
    return render(request, "evaluations/failures.html", context)


@require_POST
@allowed("dataset.write")
def collect(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Make a dataset of the failing rows with a tag or of a group."""
    arm = selectors.arm_get(actor=request.actor, pk=pk)
    tag, group = request.POST.get("tag", ""), _group(request.POST.get("group", ""))
    what = tag or (f"group {group}" if group else "failures")
    try:
        version = failures_collect(
            tenant=request.tenant,
            actor=request.actor,
            arm=arm,
            name=f"{arm.experiment.name}: {what}"[:_MOST_NAME],
            tag=tag,
            group=group,
        )
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("evaluations:failures", tenant_slug, pk)
    rows = f"{version.row_count} row{'' if version.row_count == 1 else 's'}"
    messages.success(request, f"A dataset of {rows}, frozen as version 1.")
    return redirect("datasets:detail", tenant_slug, version.dataset_id)


@require_POST
@allowed("dataset.write")
def split(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Put the failing rows, those with a tag or those of a group into a split of their dataset."""
    arm = selectors.arm_get(actor=request.actor, pk=pk)
    kind, _, which = request.POST.get("which", "").partition(":")
    try:
        check = failures_split(
            tenant=request.tenant,
            actor=request.actor,
            arm=arm,
            into=request.POST.get("into", ""),
            tag=which if kind == "tag" else "",
            group=_group(which) if kind == "group" else None,
        )
    except DomainError as error:
        messages.error(request, error.message)
        return redirect("evaluations:failures", tenant_slug, pk)
    return redirect(f"{reverse('datasets:checks', args=[tenant_slug, check.dataset_id])}#check-splits")  # fmt: skip


def _group(text: str) -> int | None:
    if text and not (text.isascii() and text.isdigit() and len(text) < 6):
        raise Invalid("group_invalid", "Choose one of the groups.")
    return int(text) if text else None
