"""Pages of the prompt library, under /t/<slug>/chat/prompts/. They hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.conversations.models import Prompt
from apps.conversations.prompts import selectors, services
from apps.conversations.prompts.forms import PromptForm
from apps.conversations.prompts.variables import variables_of
from basics.errors import DomainError
from web.forms import add_refusal
from web.requests import TenantRequest, allowed

PAGE = 30


@require_GET
@allowed("conversation.read")
def prompts(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the prompts that one can use."""
    query = request.GET.get("q", "").replace("\x00", "").strip()[: selectors.MAX_QUERY]
    page = Paginator(selectors.prompt_list(actor=request.actor, query=query), PAGE).get_page(
        request.GET.get("page")
    )
    lines = [
        {
            "row": row,
            "variables": variables_of(row.text),
            "can_edit": selectors.may_edit(request.actor, row),
            "is_own": row.user_id == request.actor.user_id,
        }
        for row in page
    ]
    context = {
        "query": query,
        "page_obj": page,
        "lines": lines,
        "can_write": request.actor.can("conversation.write"),
    }
    return render(request, "conversations/prompts.html", context)


@require_http_methods(["GET", "POST"])
@allowed("conversation.write")
def create(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Make a prompt."""
    return _form(request, None)


@require_http_methods(["GET", "POST"])
@allowed("conversation.write")
def edit(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Change a prompt; one that may only be used is shown to read."""
    return _form(request, selectors.prompt_get(actor=request.actor, pk=pk))


@require_POST
@allowed("conversation.write")
def delete(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Delete a prompt."""
    prompt = selectors.prompt_get(actor=request.actor, pk=pk)
    services.prompt_delete(tenant=request.tenant, actor=request.actor, prompt=prompt)
    messages.success(request, _("“%(name)s” is deleted.") % {"name": prompt.name})
    return redirect("conversations:prompts", tenant_slug)


def _form(request: TenantRequest, prompt: Prompt | None) -> HttpResponse:
    can_share = selectors.may_share(request.actor, prompt)
    names = ("name", "description", "text", "is_shared")
    initial = {} if prompt is None else {name: getattr(prompt, name) for name in names}
    form = PromptForm(request.POST or None, initial=initial, can_share=can_share)
    if request.method == "POST" and form.is_valid() and _save(request, prompt, form):
        return redirect("conversations:prompts", request.tenant.slug)
    context = {
        "prompt": prompt,
        "form": form,
        "can_edit": prompt is None or selectors.may_edit(request.actor, prompt),
    }
    return render(request, "conversations/prompt.html", context, status=422 if form.errors else 200)


def _save(request: TenantRequest, prompt: Prompt | None, form: PromptForm) -> bool:
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor}
    try:
        if prompt is None:
            services.prompt_create(**who, **form.cleaned_data)
        else:
            services.prompt_update(**who, prompt=prompt, **form.cleaned_data)
    except DomainError as error:
        if error.status in (403, 404):
            raise
        add_refusal(form, error)
        return False
    messages.success(request, _("“%(name)s” is saved.") % {"name": form.cleaned_data["name"]})
    return True
