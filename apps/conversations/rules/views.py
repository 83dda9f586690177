"""The page of the rules for all conversations."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.conversations.rules.forms import RulesForm
from apps.conversations.turns.retention import rules_get, rules_set
from basics.errors import Invalid
from erasure.models import RetentionRule
from web.forms import add_refusal
from web.requests import TenantRequest, allowed


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("retention.manage")
def rules(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show the rules of conversations; POST sets them."""
    now = rules_get(request.tenant)
    form = RulesForm(
        request.POST or None,
        initial={
            "keep_days": now.own_days,
            "makes_titles": now.makes_titles,
            "support_model": now.support_model,
        },
    )
    if request.method == "POST" and form.is_valid():
        try:
            rules_set(
                tenant=request.tenant,
                actor=request.actor,
                days=form.cleaned_data["keep_days"],
                makes_titles=form.cleaned_data["makes_titles"],
                support_model=form.cleaned_data["support_model"].strip(),
            )
        except Invalid as error:
            add_refusal(form, error)
        else:
            messages.success(request, _("Rules saved."))
            return redirect("conversations:settings-rules", tenant_slug)
    context = {"section": "conversations", "form": form, "rules": now, "default": settings.CONVERSATION_DAYS}
    waiting = RetentionRule.objects.filter(
        tenant=request.tenant, kind="conversations", starts_at__gt=timezone.now()
    )
    context["starts_at"] = waiting.values_list("starts_at", flat=True).first()
    return render(request, "settings/conversations.html", context, status=422 if form.errors else 200)
