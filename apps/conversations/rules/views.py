"""The pages of the rules for all conversations, and of what the workspace tells every model."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.conversations.rules.forms import InstructionsForm, RulesForm
from apps.conversations.rules.instructions import instructions_get, instructions_set
from apps.conversations.rules.services import rules_get, rules_set
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


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("conversation.read")
def instructions(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show what the assistant is told; POST sets it, for those who may."""
    now, form = instructions_get(actor=request.actor), None
    if request.method == "POST":
        request.actor.require("instruction.manage")
    if request.actor.can("instruction.manage"):
        initial = {"text": now.text, "allows_memory": now.allows_memory}
        form = InstructionsForm(request.POST or None, initial=initial)
    if request.method == "POST" and form is not None and form.is_valid():
        try:
            instructions_set(tenant=request.tenant, actor=request.actor, **form.cleaned_data)
        except Invalid as error:
            add_refusal(form, error)
        else:
            messages.success(request, _("Instructions saved. They apply from the next question on."))
            return redirect("conversations:settings-instructions", tenant_slug)
    context = {"section": "instructions", "form": form, "now": now}
    is_refused = form is not None and bool(form.errors)
    return render(request, "settings/instructions.html", context, status=422 if is_refused else 200)
