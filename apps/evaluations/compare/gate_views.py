"""The page of the gate: what it decides about an arm, and which baselines there were. It holds no rules: ``gate`` decides."""

from __future__ import annotations

import shlex
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from apps.evaluations.compare.gate import FAILED, PASSED, Check, GateResult, gate_run
from apps.evaluations.judges.trust import BAR
from apps.evaluations.models import Arm
from apps.evaluations.results import selectors
from apps.evaluations.results.labels import label
from web.requests import TenantRequest, allowed

_MOST_ROWS = 12
_HEADS = {PASSED: gettext_lazy("Can be released"), FAILED: gettext_lazy("Blocked")}


class GateForm(forms.Form):
    """What the gate accepts."""

    baseline = forms.ChoiceField(label=gettext_lazy("Compared with"))
    tolerance = forms.FloatField(
        label=gettext_lazy("Allowed drop"),
        min_value=0,
        max_value=1,
        help_text=gettext_lazy("In a mean score, 0 to 1."),
    )
    most_failed_rows = forms.IntegerField(
        label=gettext_lazy("Rows allowed to fail now"),
        min_value=0,
        required=False,
        help_text=gettext_lazy("Empty: no limit."),
    )
    bar = forms.FloatField(
        label=gettext_lazy("Minimum judge agreement"),
        min_value=0,
        max_value=1,
        help_text=gettext_lazy("Kappa with people (agreement beyond chance), lower bound."),
    )

    calibrated = forms.BooleanField(
        label=gettext_lazy("Adjusted to people's grades"),
        required=False,
        help_text=gettext_lazy("Use each judge's newest calibration; raw scores are also shown."),
    )

    def __init__(self, *args: Any, names: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["baseline"].choices = [(name, name) for name in names]


@require_GET
@allowed("evaluation.read")
def gate(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Decide about an arm as ``manage.py eval_gate`` and the API do; nothing is changed."""
    arm = selectors.arm_get(actor=request.actor, pk=pk)
    baselines = selectors.baseline_list(actor=request.actor, dataset_id=arm.experiment.dataset_id)
    names = list(dict.fromkeys(one.name for one in baselines)) or ["main"]
    values = {"baseline": names[0], "tolerance": 0, "bar": BAR}
    form = GateForm({**values, **request.GET.dict()}, names=names)
    context: dict[str, Any] = {
        "arm": arm,
        "form": form,
        "baselines": baselines,
        "current": {next(one.pk for one in baselines if one.name == name) for name in names}
        if baselines
        else set(),
        "can_promote": request.actor.can("evaluation.write"),
    }
    if form.is_valid():
        result = gate_run(actor=request.actor, arm=arm, **form.cleaned_data)
        context |= _shown(request, arm, result) | {"command": _command(tenant_slug, arm, form.cleaned_data)}
    return render(request, "evaluations/gate.html", context, status=200 if form.is_valid() else 422)


def _shown(request: TenantRequest, arm: Arm, result: GateResult) -> dict[str, Any]:
    rows = result.failed_rows[:_MOST_ROWS]
    questions = selectors.arm_questions(actor=request.actor, arm=arm, rows=rows)
    return {
        "result": result,
        "head": _HEADS.get(result.code, gettext_lazy("No baseline yet")),
        "is_passed": result.code == PASSED,
        "is_failed": result.code == FAILED,
        "checks": [(_named(check), check) for check in result.checks],
        "rows": [(row, questions.get(row, "")) for row in rows],
    }


def _named(check: Check) -> str:
    if check.low is not None:
        return label(check.name)
    return {"rows": _("Rows"), "must pass": _("Must pass")}.get(check.name, check.name.capitalize())


def _command(slug: str, arm: Arm, chosen: dict[str, Any]) -> str:
    """Return what a build server runs to decide the same."""
    words = [
        "manage.py",
        "eval_gate",
        "--tenant",
        slug,
        "--experiment",
        str(arm.experiment_id),
        "--arm",
        str(arm.position),
    ]
    words += ["--baseline", chosen["baseline"]] if chosen["baseline"] != "main" else []
    words += ["--tolerance", f"{chosen['tolerance']:g}"] if chosen["tolerance"] else []
    if chosen["most_failed_rows"] is not None:
        words += ["--most-failed-rows", str(chosen["most_failed_rows"])]
    words += ["--bar", f"{chosen['bar']:g}"] if chosen["bar"] != BAR else []
    words += ["--calibrated"] if chosen["calibrated"] else []
    return shlex.join([*words, "--junit", "gate.xml"])
