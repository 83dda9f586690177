"""The tools that a collection brings into conversations over it. The page holds no rules."""

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

from apps.collections.display.page_parts import section
from apps.collections.display.selectors import collection_get
from apps.tools.toolkits.services import collection_toolkit_set
from apps.tools.toolset.selectors import collection_toolkit, toolkit_list
from basics.errors import Invalid
from web.forms import add_refusal
from web.requests import TenantRequest, allowed


class CollectionToolkitForm(forms.Form):
    """Which toolkit a collection has."""

    toolkit = forms.ChoiceField(
        label=gettext_lazy("Toolkit"),
        required=False,
        help_text=gettext_lazy("Conversations about this collection have its tools from the start."),
    )

    def __init__(self, *args: Any, kits: list[tuple[int, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["toolkit"]
        field.choices = [("", _("None")), *((str(pk), name) for pk, name in kits)]


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def collection_tools(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show the toolkit of a collection; POST chooses another, or none."""
    collection = collection_get(actor=request.actor, pk=pk)
    kits = list(toolkit_list(actor=request.actor))
    now = collection_toolkit(actor=request.actor, collection=pk)
    form = CollectionToolkitForm(
        request.POST if request.method == "POST" else None,
        kits=[(kit.pk, kit.name) for kit in kits],
        initial={"toolkit": "" if now is None else str(now.pk)},
    )
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data["toolkit"]
        try:
            collection_toolkit_set(
                tenant=request.tenant,
                actor=request.actor,
                collection=pk,
                toolkit=int(chosen) if chosen else None,
            )
        except Invalid as error:
            add_refusal(form, error)
        else:
            messages.success(request, _("Toolkit saved for this collection."))
            return redirect("tools:collection", tenant_slug, pk)
    context = section(request, collection, "settings") | {
        "form": form,
        "kit": next((kit for kit in kits if now is not None and kit.pk == now.pk), None),
        "has_kits": bool(kits),
    }
    status = 422 if form.errors else 200
    return render(request, "tools/collection.html", context, status=status)
