"""Settings, Webhooks: which addresses are told about what, and what came of telling them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from basics.errors import Conflict, DomainError, Invalid
from basics.texts import gettext as _
from web.forms import EVENT_NAMES, WebhookForm, add_refusal
from web.requests import TenantRequest, allowed
from web.views.members import posted_id
from webhooks import services
from webhooks.models import Webhook
from webhooks.selectors import delivery_list, webhook_get, webhook_list

PAGE_SIZE = 25


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("webhook.manage")
@sensitive_variables("secret")
def webhooks(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the webhooks; POST adds one. Its secret is shown in that one answer."""
    if request.method == "GET":
        return _list(request, WebhookForm())
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _list(request, form, status=422)
    try:
        row, secret = services.webhook_create(tenant=request.tenant, actor=request.actor, **form.cleaned_data)
    except DomainError as error:
        if error.status == 403:
            raise
        _refuse(form, error)
        return _list(request, form, status=422)
    return _one(request, row, secret=secret)


def _list(request: TenantRequest, form: WebhookForm, *, status: int = 200) -> HttpResponse:
    context = {
        "section": "webhooks",
        "webhooks": [_named(row) for row in webhook_list(actor=request.actor)],
        "form": form,
    }
    return render(request, "settings/webhooks.html", context, status=status)


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("webhook.manage")
@sensitive_variables("secret")
def webhook(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a webhook with its log; POST changes, tests, switches or removes it, renews its secret, or sends an event again."""
    row = webhook_get(actor=request.actor, pk=pk)
    if request.method == "GET":
        return _one(request, row)
    who: Any = {"tenant": request.tenant, "actor": request.actor}
    action = request.POST.get("action")
    if action == "save":
        form = WebhookForm(request.POST)
        if not form.is_valid():
            return _one(request, row, form, status=422)
        try:
            services.webhook_update(**who, pk=pk, values=form.cleaned_data)
        except Invalid as error:
            _refuse(form, error)
            return _one(request, row, form, status=422)
        messages.success(request, _("Saved."))
    elif action in {"enable", "disable"}:
        services.webhook_update(**who, pk=pk, values={"is_enabled": action == "enable"})
        told = _("The webhook is now on.") if action == "enable" else _("The webhook is now off.")
        messages.success(request, told)
    elif action == "rotate":
        changed, secret = services.webhook_secret_rotate(**who, pk=pk)
        return _one(request, changed, secret=secret)
    elif action == "test":
        services.webhook_ping(**who, pk=pk)
        messages.success(request, _("A test event was sent. Reload to see the result."))
    elif action == "redeliver":
        try:
            services.delivery_repeat(**who, pk=pk, delivery_pk=posted_id(request, "delivery"))
        except Conflict as error:
            messages.error(request, error.message)
        else:
            messages.success(request, _("The event is being sent again."))
    elif action == "remove":
        services.webhook_delete(**who, pk=pk)
        messages.success(request, _("Webhook removed."))
        return redirect("web:settings-webhooks", request.tenant.slug)
    else:
        raise Invalid("invalid", _("Unknown action."))
    return redirect("web:settings-webhook", request.tenant.slug, pk)


def _one(
    request: TenantRequest,
    row: Webhook,
    form: WebhookForm | None = None,
    *,
    secret: str = "",
    status: int = 200,
) -> HttpResponse:
    initial = {"url": row.url, "events": row.events, "description": row.description}
    deliveries = delivery_list(actor=request.actor, webhook=row)
    page = Paginator(deliveries, PAGE_SIZE).get_page(request.GET.get("page"))
    for delivery in page.object_list:
        name = EVENT_NAMES.get(delivery.event, delivery.event)
        delivery.event_name = name  # type: ignore[attr-defined]
    context = {
        "section": "webhooks",
        "webhook": row,
        "form": form or WebhookForm(initial=initial),
        "secret": secret,
        "deliveries": page.object_list,
        "page_obj": page,
        "query": urlencode({}),
        "max_failures": services.MAX_FAILURES,
        "rotation_hours": services.ROTATION_HOURS,
    }
    return render(request, "settings/webhook.html", context, status=status)


def _named(row: Webhook) -> dict[str, object]:
    return {"row": row, "events": [EVENT_NAMES.get(event, event) for event in row.events]}


def _refuse(form: WebhookForm, error: DomainError) -> None:
    fields = error.data.get("fields")
    if not fields:
        add_refusal(form, error)
    for field, problems in (fields or {}).items():
        form.add_error(field if field in form.fields else None, problems)
