"""Pages of trust: how far judges agree with people, and the rubrics that both grade by. They hold no rules."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.evaluations.judges import calibration_services, services
from apps.evaluations.judges.calibrations import calibration_list
from apps.evaluations.judges.charts import agreement_chart, agreement_told, reliability_chart
from apps.evaluations.judges.forms import RubricForm, criteria_forms, criteria_of
from apps.evaluations.judges.rubric_diff import rubric_diff
from apps.evaluations.judges.trust import BAR, LEAST, agreement_list
from apps.evaluations.results import selectors
from apps.evaluations.results.labels import author_told, label
from basics.errors import Conflict, DomainError, Missing
from web.requests import TenantRequest, allowed


@require_GET
@allowed("evaluation.read")
def trust(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show judge and people beside people and people, of ``?version=``; ``?score=`` and ``?judge=`` open a curve."""
    versions = list(selectors.rubric_versions(actor=request.actor))
    chosen = request.GET.get("version", "")
    version = next((v for v in versions if str(v.pk) == chosen), None)
    if chosen and version is None:
        raise Missing("rubric")
    context: dict[str, Any] = {"versions": versions, "tab": "trust", "bar": BAR, "least": LEAST}
    context["can_write"] = request.actor.can("evaluation.write")
    if version is None:
        last = selectors.rubric_version_graded(actor=request.actor)
        version = next((v for v in versions if v.pk == last), versions[0] if versions else None)
    if version is None:
        return render(request, "evaluations/trust.html", context)
    found = agreement_list(actor=request.actor, version=version)
    judges = list(dict.fromkeys(one.author for one in found))
    judge = request.GET.get("judge", "")
    judge = judge if judge in judges else (judges[0] if judges else "")
    shown = [one for one in found if one.author == judge]
    score = request.GET.get("score", "")
    opened = next((one for one in shown if one.name == score), shown[0] if shown else None)
    context |= {
        "version": version,
        "judges": [(one, author_told(one)) for one in judges],
        "judge": judge,
        "found": [(label(one.name), one, one.is_trusted(), one.told()) for one in shown],
        "chart": agreement_chart(shown, BAR),
        "chart_told": agreement_told(shown),
        "opened": opened,
        "opened_name": label(opened.name) if opened else "",
        "curve": reliability_chart(opened.pairs) if opened and opened.n else None,
        "can_calibrate": context["can_write"] and opened is not None and opened.n >= LEAST,
        "calibrations": [
            one
            for one in calibration_list(actor=request.actor, version=version)
            if opened and (one.name, one.author) == (opened.name, opened.author)
        ],
    }
    return render(request, "evaluations/trust.html", context)


@require_POST
@allowed("evaluation.write")
def calibrate(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Keep the curve of a judge's score as its next calibration."""
    found = selectors.rubric_versions(actor=request.actor).filter(pk=pk).first()
    if found is None:
        raise Missing("rubric")
    name, author = request.POST.get("score", ""), request.POST.get("judge", "")
    try:
        row = calibration_services.calibration_create(
            tenant=request.tenant, actor=request.actor, version=found, name=name, author=author
        )
    except (Conflict, Missing) as error:
        messages.error(request, error.message)
    else:
        told = _("Version %(number)s of this calibration is saved. Comparisons and gates can use it.") % {
            "number": row.number
        }
        messages.success(request, told)
    chosen = urlencode({"version": pk, "judge": author, "score": name})
    return redirect(f"{reverse('evaluations:trust', args=[tenant_slug])}?{chosen}")


@require_GET
@allowed("evaluation.read")
def rubrics(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the workspace's rubrics."""
    context = {
        "rubrics": selectors.rubric_list(actor=request.actor),
        "can_write": request.actor.can("evaluation.write"),
        "tab": "rubrics",
    }
    return render(request, "evaluations/rubrics.html", context)


@require_GET
@allowed("evaluation.read")
def rubric(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a rubric's version ``?version=``, and what has changed since the one before."""
    row = selectors.rubric_get(actor=request.actor, pk=pk)
    versions = sorted(row.versions.all(), key=lambda one: -one.number)
    text = request.GET.get("version", "")
    place = next((n for n, one in enumerate(versions) if str(one.number) == text), 0)
    if (text and str(versions[place].number) != text) or not versions:
        raise Missing("rubric")
    version = versions[place]
    older = versions[place + 1] if place + 1 < len(versions) else None
    context = {
        "rubric": row,
        "versions": versions,
        "version": version,
        "older": older,
        "changes": rubric_diff(older.criteria, version.criteria) if older else [],
        "can_write": request.actor.can("evaluation.write"),
    }
    return render(request, "evaluations/rubric.html", context)


@require_http_methods(["GET", "POST"])
@allowed("evaluation.write")
def rubric_new(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Make a rubric."""
    return _edit(request, tenant_slug, None)


@require_http_methods(["GET", "POST"])
@allowed("evaluation.write")
def rubric_change(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Change a rubric: it gets its next version."""
    return _edit(request, tenant_slug, pk)


def _edit(request: TenantRequest, tenant_slug: str, pk: int | None) -> HttpResponse:
    row = None if pk is None else selectors.rubric_get(actor=request.actor, pk=pk)
    newest = None if row is None else max(row.versions.all(), key=lambda one: one.number, default=None)
    form = RubricForm(request.POST or None, is_new=row is None)
    criteria = criteria_forms(request.POST or None, criteria=newest.criteria if newest is not None else ())
    context = {"form": form, "criteria": criteria, "rubric": row, "problem": ""}
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid() and criteria.is_valid():
            given: dict[str, Any] = {
                "tenant": request.tenant,
                "actor": request.actor,
                "criteria": criteria_of(criteria),
            }
            try:
                if row is None:
                    made = services.rubric_create(**given, name=form.cleaned_data["name"])
                else:
                    made = services.rubric_version_create(**given, rubric=row, note=form.cleaned_data["note"])
            except DomainError as error:
                context["problem"] = error.message
            else:
                messages.success(request, _("Version %(number)s is saved.") % {"number": made.number})
                return redirect("evaluations:rubric", tenant_slug, made.rubric_id)
    return render(request, "evaluations/rubric_edit.html", context, status=status)
