"""Settings, Erasure: erase the workspace, or hold it; and the account's own erasure with the reports of past ones."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from basics.errors import DomainError
from erasure.holds import hold_of, hold_place, hold_release
from erasure.models import Erasure
from erasure.services import (
    content_erase_request,
    content_erasure,
    erasure_get,
    erasure_list,
    erasure_open,
    person_erase_request,
    person_erase_undo,
    workspace_erase_request,
    workspace_erase_undo,
)
from tenancy.models import TenantModel, User
from web.forms import ConfirmForm, HoldForm, add_refusal
from web.requests import TenantRequest, UserRequest, allowed, signed_in

_DONE = {
    "erase": gettext_lazy("The workspace will be erased. You can undo it until then."),
    "undo": gettext_lazy("The workspace stays."),
    "hold": gettext_lazy("Legal hold placed. Nothing is erased until it is released."),
    "release": gettext_lazy("Legal hold released."),
}


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("tenant.manage")
def erasure(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show hold and erasure of the workspace; POST with ``do`` erase, undo, hold or release."""
    do = request.POST.get("do", "")
    confirm = ConfirmForm(request.POST if do == "erase" else None)
    reason = HoldForm(request.POST if do == "hold" else None)
    if request.method == "POST":
        form = reason if do == "hold" else confirm
        try:
            if _workspace_do(request, do, confirm, reason):
                messages.success(request, _DONE[do])
                return redirect("web:settings-erasure", tenant_slug)
        except DomainError as error:
            if error.status == 403:
                raise
            if do in {"erase", "hold"}:
                add_refusal(form, error)
            else:
                messages.error(request, error.message)
                return redirect("web:settings-erasure", tenant_slug)
    context = {
        "section": "erasure",
        "form": confirm,
        "hold_form": reason,
        "hold": hold_of(request.tenant.pk),
        "open": erasure_open(Erasure.Kind.WORKSPACE, request.tenant.pk),
        "grace_days": settings.ERASURE_GRACE_DAYS,
    }
    status = 422 if confirm.errors or reason.errors or request.method == "POST" else 200
    return render(request, "settings/erasure.html", context, status=status)


def _workspace_do(request: TenantRequest, do: str, confirm: ConfirmForm, reason: HoldForm) -> bool:
    tenant, actor = request.tenant, request.actor
    if do == "erase" and confirm.is_valid():
        workspace_erase_request(tenant=tenant, actor=actor, confirm=confirm.cleaned_data["confirm"])
    elif do == "hold" and reason.is_valid():
        hold_place(tenant=tenant, actor=actor, reason=reason.cleaned_data["reason"])
    elif do == "undo":
        workspace_erase_undo(tenant=tenant, actor=actor)
    elif do == "release":
        hold_release(tenant=tenant, actor=actor)
    else:
        return False
    return True


@never_cache
@require_http_methods(["GET", "POST"])
@signed_in
def account_erasure(request: UserRequest) -> HttpResponse:
    """Show the erasure of one's own account and the reports of those one asked for; POST with ``do`` erase or undo.

    With ``report``, a number, the report of that erasure. With ``person``, a number, an operator erases that account.
    """
    report = request.GET.get("report", "")
    if report.isdecimal() and len(report) < 19:
        row = erasure_get(by=request.user, pk=int(report))
        return render(request, "settings/erasure_report.html", {"row": row})
    person = _person(request)
    is_self = person.pk == request.user.pk
    here = reverse("web:account-erasure") + ("" if is_self else f"?person={person.pk}")
    do = request.POST.get("do", "")
    form = ConfirmForm(request.POST if do == "erase" else None)
    if request.method == "POST":
        try:
            if do == "undo":
                person_erase_undo(person=person, by=request.user)
                messages.success(request, _("Your account stays.") if is_self else _("The account stays."))
                return redirect(here)
            if do == "erase" and form.is_valid():
                person_erase_request(person=person, by=request.user, confirm=form.cleaned_data["confirm"])
                own = _("Your account will be erased. You can undo it until then.")
                messages.success(
                    request, own if is_self else _("The account will be erased. You can undo it until then.")
                )
                return redirect(here)
        except DomainError as error:
            if do == "undo":
                messages.error(request, error.message)
                return redirect(here)
            add_refusal(form, error)
    context = {
        "form": form,
        "person": person,
        "is_self": is_self,
        "open": erasure_open(Erasure.Kind.PERSON, person.pk),
        "grace_days": settings.ERASURE_GRACE_DAYS,
        "rows": erasure_list(by=request.user),
    }
    return render(
        request, "settings/account_erasure.html", context, status=422 if request.method == "POST" else 200
    )


def _person(request: UserRequest) -> User:
    """Return whose account is meant: one's own, or for an operator the one that the address names. Raises Http404."""
    named = request.GET.get("person", "")
    if not named:
        return request.user
    if not (request.user.is_superuser and named.isascii() and named.isdecimal() and len(named) < 19):
        raise Http404
    return get_object_or_404(User, pk=int(named), is_active=True)


def content_erasure_page(
    request: TenantRequest, *, kind: Erasure.Kind, subject: TenantModel, back: str, goes: str
) -> HttpResponse:
    """Show what erasing a document or conversation does; POST asks for it. The views of their rooms say who may.

    Args:
        back: address of the page that it is erased from.
        goes: what goes besides, in a sentence.
    """
    form = ConfirmForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made = content_erase_request(
                tenant=request.tenant,
                actor=request.actor,
                subject=subject,
                confirm=form.cleaned_data["confirm"],
            )
            messages.success(request, _("It will be erased in a moment. This page becomes the report."))
            return redirect(f"{reverse('web:account-erasure')}?report={made.pk}")
        except DomainError as error:
            if error.status == 403:
                raise
            add_refusal(form, error)
    context = {
        "form": form,
        "kind": kind.value,
        "subject": subject,
        "back": back,
        "goes": goes,
        "hold": hold_of(request.tenant.pk),
        "open": content_erasure(actor=request.actor, kind=kind, subject=subject.pk),
    }
    return render(request, "settings/content_erasure.html", context, status=422 if form.errors else 200)
