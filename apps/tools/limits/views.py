"""Settings, Limits: how often tools may be called and how fast REST may be used, and how much of it is used."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.tools.limits.selectors import limit_list
from apps.tools.limits.services import tool_limit_remove, tool_limit_set
from basics.errors import DomainError, Invalid
from tenancy.actors import Actor
from tenancy.selectors import api_key_list, member_list
from tenancy.services import rate_limit_remove, rate_limit_set
from web.forms import add_refusal
from web.requests import TenantRequest, allowed
from web.views.members import posted_id

_WHAT = [
    ("all", gettext_lazy("Calls of all tools together")),
    ("group", gettext_lazy("Calls of a group of tools")),
    ("tool", gettext_lazy("Calls of one tool")),
]
_REQUESTS = ("requests", gettext_lazy("REST requests"))


class LimitForm(forms.Form):
    """A new limit, or another number for one that is there."""

    what = forms.ChoiceField(label=gettext_lazy("What is counted"))
    target = forms.CharField(
        label=gettext_lazy("Tool or group"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("Its name, for one tool or a group; a group counts those below it too."),
    )
    whose = forms.ChoiceField(label=gettext_lazy("Whose"))
    most = forms.IntegerField(label=gettext_lazy("At most"), min_value=1, max_value=1_000_000_000)
    period = forms.ChoiceField(
        label=gettext_lazy("Period"),
        choices=[
            ("minute", gettext_lazy("a minute")),
            ("day", gettext_lazy("a day")),
            ("month", gettext_lazy("a month")),
        ],
        initial="day",
        help_text=gettext_lazy("In UTC. REST requests are always counted per minute."),
    )

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        what: Any = self.fields["what"]
        what.choices = [*_WHAT, _REQUESTS] if actor.can("tenant.manage") else _WHAT
        whose: Any = self.fields["whose"]
        whose.choices = [
            ("tenant", _("Whole workspace")),
            ("member", _("each member")),
            ("key", _("each API key")),
            *((f"member:{m.user_id}", str(m.user)) for m in member_list(actor=actor)),
            *((f"key:{k.pk}", _("the key “%(name)s”") % {"name": k.name}) for k in api_key_list(actor=actor)),
        ]


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def limits(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the limits; POST sets or removes one."""
    if request.method == "GET":
        return _page(request, LimitForm(actor=request.actor))
    action = request.POST.get("action")
    who: Any = {"tenant": request.tenant, "actor": request.actor}
    if action == "remove":
        remove = rate_limit_remove if request.POST.get("source") == "requests" else tool_limit_remove
        remove(**who, pk=posted_id(request, "limit"))
        messages.success(request, _("Limit removed."))
    elif action == "set":
        form = LimitForm(request.POST, actor=request.actor)
        if not form.is_valid():
            return _page(request, form, status=422)
        try:
            _set(who, form.cleaned_data)
        except Invalid as error:
            _refuse(form, error)
            return _page(request, form, status=422)
        messages.success(request, _("Limit saved."))
    else:
        raise Invalid("invalid", _("Unknown action."))
    return redirect("tools:settings-limits", request.tenant.slug)


def _set(who: dict[str, Any], data: dict[str, Any]) -> None:
    kind, _, one = data["whose"].partition(":")
    named: Any = {"user" if kind == "member" else "api_key": int(one)} if one else {}
    if data["what"] == "requests":
        rate_limit_set(**who, kind=kind, per_minute=data["most"], **named)
        return
    tool_limit_set(
        **who,
        kind=kind,
        period=data["period"],
        calls=data["most"],
        target_kind=data["what"],
        target="" if data["what"] == "all" else data["target"],
        **named,
    )


def _refuse(form: LimitForm, error: DomainError) -> None:
    field = {"calls": "most", "per_minute": "most"}.get(error.data["field"], error.data["field"])
    error.data["field"] = field
    add_refusal(form, error)


def _page(request: TenantRequest, form: LimitForm, *, status: int = 200) -> HttpResponse:
    context = {
        "section": "limits",
        "limits": limit_list(actor=request.actor),
        "form": form,
        "can_rates": request.actor.can("tenant.manage"),
    }
    return render(request, "settings/limits.html", context, status=status)
