"""The way to a workspace: the start page, making one, one's own account."""

from __future__ import annotations

from typing import cast

from allauth.mfa.utils import is_mfa_enabled
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from basics.errors import DomainError
from tenancy.entrances import is_contained, memberships_shown
from tenancy.portal_languages import person_language
from tenancy.selectors import may_create_tenant
from tenancy.services import tenant_create
from web.forms import LanguageForm, ProfileForm, TenantForm, add_refusal
from web.passkeys.selectors import passkey_list
from web.requests import TenantRequest, UserRequest, signed_in

_LAST = "last_tenant"  # only which page to open first; rights come from the URL's tenant alone


@require_GET
@signed_in
def home(request: UserRequest) -> HttpResponse:
    """Go to the workspace the person used last, or to the first of theirs; an operator without any to their own page."""
    memberships = memberships_shown(request)
    if not memberships:
        if request.user.is_superuser:
            return redirect("operate:overview")
        if may_create_tenant(user=request.user):
            return redirect("web:tenant-create")
        return render(request, "web/no_workspace.html")
    last = request.session.get(_LAST)
    chosen = next((m for m in memberships if m.tenant_id == last), memberships[0])
    return redirect("conversations:home", chosen.tenant.slug)


@require_GET
def tenant_home(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """Open a workspace (the switcher points here) and remember it."""
    inside = cast("TenantRequest", request)
    inside.session[_LAST] = inside.tenant.pk
    return redirect("conversations:home", inside.tenant.slug)


@require_http_methods(["GET", "POST"])
@signed_in
def create_tenant(request: UserRequest) -> HttpResponse:
    """Make a workspace and open it."""
    form = TenantForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            tenant = tenant_create(
                user=request.user, name=form.cleaned_data["name"], slug=form.cleaned_data["slug"].lower()
            )
        except DomainError as error:
            if error.status == 403:
                raise
            add_refusal(form, error)
        else:
            messages.success(request, _("The workspace “%(name)s” is ready.") % {"name": tenant.name})
            return redirect("web:tenant-home", tenant.slug)
    elif request.method == "GET" and not may_create_tenant(user=request.user):
        return render(request, "web/no_workspace.html", status=403)
    return render(request, "web/tenant_create.html", {"form": form})


@require_http_methods(["GET", "POST"])
@signed_in
def profile(request: UserRequest) -> HttpResponse:
    """Show and change one's own name, and show language and time zone (``views.language``); sign-in itself is allauth's."""
    form = ProfileForm(request.POST or None, instance=request.user)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("Saved."))
        return HttpResponseRedirect(request.path)
    context = {
        "form": form,
        "language_form": LanguageForm(
            initial={"language": person_language(request.user), "time_zone": request.user.time_zone}
        ),
        "has_mfa": is_mfa_enabled(request.user),
        "passkeys": passkey_list(user=request.user),
        "is_contained": is_contained(request),
    }
    return render(request, "settings/profile.html", context)
