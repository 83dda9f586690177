"""Pages of annotation: the queues, one queue's progress, and the answer to grade. They hold no rules."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.conversations.display.rendering import text_render
from apps.datasets.models import DatasetVersion
from apps.datasets.rows.selectors import dataset_list
from apps.evaluations.annotation import selectors as reads
from apps.evaluations.annotation import services
from apps.evaluations.annotation.forms import QueueForm
from apps.evaluations.judges import services as judges_services
from apps.evaluations.judges.trust import enough_told, queue_agreement
from apps.evaluations.models import RubricVersion
from apps.evaluations.results.selectors import experiment_get
from basics.errors import Conflict, DomainError, Invalid, Missing
from web.forms import add_refusal
from web.requests import TenantRequest, allowed
from web.views.members import posted_id

PAGE = 30
_ACTS = {"close": services.queue_close, "reopen": services.queue_reopen}


@require_GET
@allowed("evaluation.read")
def queues(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List annotation queues, newest first."""
    pages = Paginator(reads.queue_list(actor=request.actor), PAGE)
    context = {
        "page_obj": pages.get_page(request.GET.get("page")),
        "can_write": request.actor.can("evaluation.write"),
        "has_dataset": dataset_list(actor=request.actor).exists(),
        "tab": "annotation",
    }
    return render(request, "evaluations/queues.html", context)


@require_http_methods(["GET", "POST"])
@allowed("evaluation.write")
def queue_new(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Create a queue of answers to grade."""
    actor = request.actor
    form = QueueForm(
        request.POST or None,
        tenant=request.tenant,
        actor=actor,
        initial={
            "source": request.GET.get("source", ""),
            "rubric": judges_services.rubric_seed(tenant=request.tenant, actor=actor).pk,
            "disputed_first": request.GET.get("disputed") == "1",
        },
    )
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        kind, pk = form.chosen()
        try:
            row = services.queue_create(
                tenant=request.tenant,
                actor=actor,
                name=data["name"],
                rubric_version=RubricVersion.objects.visible_to(actor)
                .select_related("rubric")
                .get(pk=data["rubric"]),
                experiment=experiment_get(actor=actor, pk=pk) if kind == "experiment" else None,
                version=DatasetVersion.objects.visible_to(actor).get(pk=pk) if kind == "version" else None,
                reviews=data["reviews"],
                most=data["most"],
                disputed_first=data["disputed_first"],
                assignees=data["assignees"],
                instructions=data["instructions"],
                judge=data["judge"] or "lexical",
            )
        except (Invalid, Missing) as error:
            add_refusal(form, error)
        else:
            return redirect("evaluations:queue", tenant_slug, row.pk)
    status = 422 if request.method == "POST" else 200
    return render(request, "evaluations/queue_new.html", {"form": form}, status=status)


@require_GET
@allowed("evaluation.read")
def queue(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show how far a queue is, and who graded how much."""
    row = reads.queue_get(actor=request.actor, pk=pk)
    context = {
        "queue": row,
        "progress": reads.queue_progress(actor=request.actor, queue=row),
        "enough": enough_told(queue_agreement(actor=request.actor, queue=row)),
        "can_write": request.actor.can("evaluation.write"),
        "is_mine": not row.assignees or request.actor.user_id in row.assignees,
        "tab": "annotation",
    }
    return render(request, "evaluations/queue.html", context)


@require_POST
@allowed("evaluation.write")
def queue_act(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Close or reopen a queue."""
    act = _ACTS.get(request.POST.get("do", ""))
    if act is None:
        raise Invalid("invalid", _("Choose close or reopen."))
    row = reads.queue_get(actor=request.actor, pk=pk)
    try:
        act(tenant=request.tenant, actor=request.actor, queue=row)
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("evaluations:queue", tenant_slug, pk)


@require_http_methods(["GET", "POST"])
@allowed("evaluation.write")
def annotate(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show the next answer to grade, and take a grade, a skip or an undo."""
    row = reads.queue_get(actor=request.actor, pk=pk)
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor}
    context: dict[str, Any] = {"queue": row, "levels": {}, "note": ""}
    status = 200
    try:
        if request.method == "POST":
            if _decide(request, row, who):
                return redirect("evaluations:annotate", tenant_slug, pk)
            raise Invalid("invalid", _("Choose grade, skip or undo."))
        taken = services.assignment_take(**who, queue=row)
    except Invalid as error:
        status = 422
        fields = error.data.get("fields", {})
        context |= {"problem": error.message, "wrong": list(fields), "levels": _levels(request)}
        context["note"] = request.POST.get("note", "")
        taken = services.assignment_take(**who, queue=row)
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("evaluations:queue", tenant_slug, pk)
    if taken is not None:
        sheet = reads.sheet_get(actor=request.actor, assignment=taken)
        given = context["levels"]
        context["sheet"] = sheet
        context["blocks"] = text_render(sheet.answer)
        context["criteria"] = [
            (
                c,
                [(n, text, n == given.get(c.name, level)) for n, text in enumerate(c.anchors, 1)],
                c.name in context.get("wrong", ()),
            )
            for c, level in sheet.criteria
        ]
    return render(request, "evaluations/annotate.html", context, status=status)


def _decide(request: TenantRequest, row: Any, who: dict[str, Any]) -> bool:
    """Do what was posted; False for what nobody knows."""
    do = request.POST.get("do", "")
    if do == "undo":
        services.assignment_undo(**who, queue=row)
        return True
    if do not in ("grade", "skip", "gold"):
        return False
    assignment = reads.assignment_get(actor=request.actor, pk=posted_id(request, "assignment"))
    if assignment.item.queue_id != row.pk:
        raise Missing("assignment")
    note = request.POST.get("note", "")
    if do == "skip":
        services.assignment_skip(**who, assignment=assignment, note=note)
        return True
    try:
        services.assignment_grade(**who, assignment=assignment, levels=_levels(request), note=note)
        if do == "gold":
            services.gold_set(**who, assignment=assignment)
    except DomainError as error:
        if error.code != "already_graded":
            raise
        # Sent twice: the first has done it.
    return True


def _levels(request: TenantRequest) -> dict[str, int]:
    """Return the posted levels; what is no digit is left out, and so asked for again."""
    return {
        key.removeprefix("level-"): int(value)
        for key, value in request.POST.dict().items()
        if key.startswith("level-") and value.isascii() and value.isdigit() and len(value) == 1
    }
