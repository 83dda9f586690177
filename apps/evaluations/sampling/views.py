"""Pages of online sampling: the rules, and how a rule's scores have gone. They hold no rules themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.conversations.models import Assistant
from apps.conversations.transcript.selectors import model_list
from apps.evaluations.judges.scoring import LEXICAL
from apps.evaluations.results.labels import label
from apps.evaluations.sampling import selectors as reads
from apps.evaluations.sampling import services
from basics.errors import DomainError, Invalid
from basics.texts import number_told
from web.forms import add_refusal
from web.requests import TenantRequest, allowed

_ACTS = {"pause": services.sampling_rule_pause, "resume": services.sampling_rule_resume}
_WIDTH, _HEIGHT, _PAD = 300.0, 96.0, 8.0


class RuleForm(forms.Form):
    """Which live answers are scored, by what, and what it may cost."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    percent = forms.DecimalField(
        label=gettext_lazy("Share of answers in percent"),
        min_value=0,
        max_value=100,
        decimal_places=2,
        initial=5,
    )
    takes_doubtful = forms.BooleanField(
        label=gettext_lazy("Also every doubtful answer"),
        required=False,
        initial=True,
        help_text=gettext_lazy("Without a source, or with a sentence that no source supports."),
    )
    assistant = forms.ChoiceField(label=gettext_lazy("Assistant"), required=False)
    scorers = forms.MultipleChoiceField(
        label=gettext_lazy("Scorers"),
        widget=forms.CheckboxSelectMultiple,
        choices=[
            ("faithfulness", gettext_lazy("Claims supported by passages")),
            ("answer_relevancy", gettext_lazy("Statements relevant to the question")),
            ("rubric", gettext_lazy("Six scores by a judge")),
        ],
        initial=["faithfulness"],
    )
    judge = forms.ChoiceField(
        label=gettext_lazy("Judge"), help_text=gettext_lazy("It reads the selected questions and answers.")
    )
    budget_usd = forms.DecimalField(
        label=gettext_lazy("Budget in US dollars a month"),
        min_value=0,
        decimal_places=2,
        max_digits=9,
        initial=5,
    )

    def __init__(self, *args: Any, request: TenantRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        assistants = Assistant.objects.visible_to(request.actor).filter(archived_at=None)
        fields["assistant"].choices = [
            ("", _("All answers")),
            *((a.pk, a.name) for a in assistants.order_by("name")[:200]),
        ]
        fields["judge"].choices = [
            (LEXICAL, _("Word count (no model)")),
            *((m.id, m.label) for m in model_list(request.tenant) if m.id != "extractive"),
        ]


@dataclass(frozen=True, slots=True)
class Panel:
    """One score's curve: points of a polyline, and its words."""

    name: str
    mean: float
    count: int
    is_judged: bool
    points: str
    dots: list[tuple[float, float, str]]
    told: str


@require_GET
@allowed("evaluation.read")
def rules(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the rules with this month's figures."""
    context = {
        "rules": reads.rules_figures(actor=request.actor),
        "can_manage": request.actor.can("tool.manage"),
        "tab": "live",
    }
    return render(request, "evaluations/live.html", context)


@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def rule_new(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Create rule."""
    form = RuleForm(request.POST or None, request=request)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            row = services.sampling_rule_create(
                tenant=request.tenant,
                actor=request.actor,
                name=data["name"],
                rate=float(data["percent"]) / 100,
                takes_doubtful=data["takes_doubtful"],
                assistant=int(data["assistant"]) if data["assistant"] else None,
                scorers=[{"kind": kind, "options": {"models": [data["judge"]]}} for kind in data["scorers"]],
                budget_usd=data["budget_usd"],
            )
        except DomainError as error:
            add_refusal(form, error)
        else:
            return redirect("evaluations:live-rule", tenant_slug, row.pk)
    status = 422 if request.method == "POST" else 200
    return render(request, "evaluations/live_new.html", {"form": form}, status=status)


@require_GET
@allowed("evaluation.read")
def rule(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show how a rule's scores have gone, and the lowest answers."""
    row = reads.rule_get(actor=request.actor, pk=pk)
    figures = next(f for f in reads.rules_figures(actor=request.actor) if f.rule.pk == row.pk)
    context = {
        "rule": row,
        "figures": figures,
        "panels": [_panel(t) for t in reads.rule_trend(actor=request.actor, rule=row)],
        "lowest": [(label(low.score.name), low) for low in reads.lowest(actor=request.actor, rule=row)],
        "can_manage": request.actor.can("tool.manage"),
        "days": reads.DAYS,
    }
    return render(request, "evaluations/live_rule.html", context)


@require_POST
@allowed("tool.manage")
def rule_act(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Pause, resume or delete a rule."""
    do = request.POST.get("do", "")
    row = reads.rule_get(actor=request.actor, pk=pk)
    if do == "delete":
        services.sampling_rule_delete(tenant=request.tenant, actor=request.actor, rule=row)
        messages.success(request, _("“%(name)s” and its scores were deleted.") % {"name": row.name})
        return redirect("evaluations:live", tenant_slug)
    if do not in _ACTS:
        raise Invalid("invalid", _("Choose pause, resume or delete."))
    _ACTS[do](tenant=request.tenant, actor=request.actor, rule=row)
    return redirect("evaluations:live-rule", tenant_slug, pk)


def _panel(trend: reads.Trend) -> Panel:
    today = timezone.now().date()
    dots = []
    for day, mean, count in trend.days:
        ago = min((today - day).days, reads.DAYS)
        x = round(_PAD + (_WIDTH - 2 * _PAD) * (1 - ago / reads.DAYS), 1)
        y = round(_HEIGHT - _PAD - (_HEIGHT - 2 * _PAD) * mean, 1)
        answers = ngettext(
            "%(day)s: %(mean)s, %(count)s answer", "%(day)s: %(mean)s, %(count)s answers", count
        )
        dots.append(
            (
                x,
                y,
                answers % {"day": date_format(day, "NEAR_DAY"), "mean": number_told(mean, 2), "count": count},
            )
        )
    told = _("%(score)s over %(days)s days: %(points)s") % {
        "score": label(trend.name),
        "days": reads.DAYS,
        "points": "; ".join(text for *_place, text in dots),
    }
    points = " ".join(f"{x},{y}" for x, y, _text in dots)
    return Panel(label(trend.name), trend.mean, trend.count, trend.is_judged, points, dots, told)
