"""Settings, Budgets: what may be spent on models, and how much of it is."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from basics.errors import Denied, DomainError, Invalid
from basics.texts import gettext as _
from budgets.assistants import assistant_names
from budgets.models import BudgetPeriod
from budgets.selectors import budget_list, refuses_unpriced
from budgets.services import budget_remove, budget_rules_set, budget_set
from tenancy.actors import Actor
from tenancy.selectors import api_key_list, member_list
from toolloop.reservations import UNKNOWN_PRICE
from web.forms import add_refusal
from web.requests import TenantRequest, allowed
from web.views.members import posted_id


class BudgetForm(forms.Form):
    """A new budget, or another amount for one that is there."""

    whose = forms.ChoiceField(label=gettext_lazy("Whose"))
    amount_usd = forms.DecimalField(
        label=gettext_lazy("Amount in US dollars"),
        min_value=0,
        max_digits=12,
        decimal_places=4,
        help_text=gettext_lazy("0 stops everything that costs money."),
    )
    period = forms.ChoiceField(
        label=gettext_lazy("Period"),
        choices=BudgetPeriod.choices,
        initial=BudgetPeriod.MONTH,
        help_text=gettext_lazy("Days and months are in UTC. A total counts from now on."),
    )

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        whose: Any = self.fields["whose"]
        whose.choices = [
            ("tenant", _("Whole workspace")),
            ("member", _("each member")),
            ("key", _("each API key")),
            ("assistant", _("each assistant")),
            *((f"member:{m.user_id}", str(m.user)) for m in member_list(actor=actor)),
            *((f"key:{k.pk}", _("the key “%(name)s”") % {"name": k.name}) for k in api_key_list(actor=actor)),
            *(
                (f"assistant:{pk}", _("the assistant “%(name)s”") % {"name": name})
                for pk, name in assistant_names(actor)
            ),
        ]


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("audit.read")
def budgets(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the budgets; POST sets or removes one, or says what happens without a price."""
    if request.method == "GET":
        return _page(request, _form(request))
    if not request.actor.can("budget.manage"):
        raise Denied("permission_denied", _("Only owners of the workspace can set budgets."))
    who: Any = {"tenant": request.tenant, "actor": request.actor}
    action = request.POST.get("action")
    if action == "remove":
        budget_remove(**who, pk=posted_id(request, "budget"))
        messages.success(request, _("Budget removed."))
    elif action == "rules":
        budget_rules_set(**who, refuses_unpriced=request.POST.get("refuses_unpriced") == "on")
        messages.success(request, _("Saved."))
    elif action == "set":
        form = BudgetForm(request.POST, actor=request.actor)
        if not form.is_valid():
            return _page(request, form, status=422)
        try:
            _set(who, form.cleaned_data)
        except DomainError as error:
            add_refusal(form, error)
            return _page(request, form, status=422)
        messages.success(request, _("Budget set."))
    else:
        raise Invalid("invalid", _("Unknown action."))
    return redirect("web:settings-budgets", tenant_slug)


def _set(who: dict[str, Any], data: dict[str, Any]) -> None:
    kind, _separator, one = data["whose"].partition(":")
    budget_set(
        **who,
        kind=kind,
        subject_id=int(one) if one else None,
        period=data["period"],
        amount_usd=data["amount_usd"],
    )


def _form(request: TenantRequest) -> BudgetForm | None:
    return BudgetForm(actor=request.actor) if request.actor.can("budget.manage") else None


def _page(request: TenantRequest, form: BudgetForm | None, *, status: int = 200) -> HttpResponse:
    context = {
        "section": "budgets",
        "budgets": budget_list(actor=request.actor),
        "form": form,
        "refuses_unpriced": refuses_unpriced(actor=request.actor),
        "unknown": UNKNOWN_PRICE,
    }
    return render(request, "settings/budgets.html", context, status=status)
