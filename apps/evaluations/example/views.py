"""The page that takes a sample away. It holds no rules: selectors read, services write."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from apps.evaluations.example import selectors, services
from basics.errors import Conflict
from web.requests import TenantRequest, allowed


@require_http_methods(["GET", "POST"])
@allowed("collection.delete")
def remove(request: TenantRequest, tenant_slug: str, collection_pk: int) -> HttpResponse:
    """Show what goes with a sample collection and what stays; POST removes it."""
    example = selectors.example_get(actor=request.actor, collection_pk=collection_pk)
    if request.method == "POST":
        try:
            stays = services.example_remove(tenant=request.tenant, actor=request.actor, example=example)
        except Conflict as error:
            messages.error(request, error.message)
            return redirect("evaluations:example-remove", tenant_slug, collection_pk)
        messages.success(request, " ".join([_("The sample is removed."), *stays]))
        return redirect("collections:list", tenant_slug)
    context = {"example": example, "parts": selectors.example_parts(actor=request.actor, example=example)}
    return render(request, "evaluations/example_remove.html", context)
