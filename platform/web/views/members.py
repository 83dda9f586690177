"""Settings, Members: people, their roles and open invitations; and the page behind an invitation's link."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from basics.errors import Conflict, DomainError, Invalid, Missing
from basics.texts import gettext as _
from tenancy import services
from tenancy.public_address import public_address
from tenancy.selectors import invite_list, invite_problem, invite_read, member_list
from web.accounts import SESSION_KEY
from web.forms import InviteForm, add_refusal, role_choices
from web.requests import AppRequest, TenantRequest, allowed


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("member.read")
def members(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the members; POST changes a role, removes a member or revokes an invitation."""
    if request.method == "GET":
        return _page(request, InviteForm(actor=request.actor))
    tenant, actor = request.tenant, request.actor
    action = request.POST.get("action")
    try:
        if action == "role":
            row = services.member_role_change(
                tenant=tenant,
                actor=actor,
                member_id=posted_id(request, "membership"),
                role=request.POST.get("role", ""),
            )
            messages.success(
                request,
                _("%(person)s is now %(role)s.")
                % {"person": row.user, "role": row.get_role_display().lower()},
            )
        elif action == "remove":
            services.member_remove(tenant=tenant, actor=actor, member_id=posted_id(request, "membership"))
            messages.success(request, _("Removed."))
        elif action == "revoke":
            invite = services.invite_revoke(
                tenant=tenant, actor=actor, invite_id=posted_id(request, "invite")
            )
            messages.success(
                request, _("The invitation for %(email)s has been withdrawn.") % {"email": invite.email}
            )
        else:
            raise Invalid("invalid", _("Unknown action."))
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("web:settings-members", tenant.slug)


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("member.manage")
def invites(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Invite somebody; the link is shown in this one answer."""
    if request.method == "GET":
        return redirect("web:settings-members", request.tenant.slug)
    form = InviteForm(request.POST, actor=request.actor)
    if not form.is_valid():
        return _page(request, form, status=422)
    address = public_address(request)
    try:
        _, link = services.invite_create(
            tenant=request.tenant,
            actor=request.actor,
            email=form.cleaned_data["email"],
            role=form.cleaned_data["role"],
            link_for=lambda token: (
                f"{address or request.build_absolute_uri('/')[:-1]}{reverse('web:invite-accept', args=[token])}"
            ),
            is_mailed=bool(address),
        )
    except DomainError as error:
        if error.status == 403:
            raise
        add_refusal(form, error)
        return _page(request, form, status=422)
    return _page(request, InviteForm(actor=request.actor), link=link)


@never_cache
@require_http_methods(["GET", "POST"])
def accept_invite(request: AppRequest, token: str) -> HttpResponse:
    """Show what the link invites to; POST by a signed-in person joins. Others sign in or up first and come back."""
    invite, problem = invite_read(token=token)
    user = request.user
    if not problem and invite is not None and user.is_authenticated:
        if user.email.lower() != invite.email.lower():
            problem = "other_email"
        elif request.method == "POST":
            membership = services.invite_accept(user=user, token=token)
            request.session.pop(SESSION_KEY, None)
            messages.success(request, _("Welcome to %(workspace)s.") % {"workspace": membership.tenant.name})
            return redirect("web:tenant-home", membership.tenant.slug)
    elif not problem:
        request.session[SESSION_KEY] = token  # opens sign-up, and brings the person back here
        if request.method == "POST":
            return redirect(_entrance("account_login", request))
    context = {
        "invite": invite,
        "problem": problem,
        "login_url": _entrance("account_login", request),
        "signup_url": _entrance("account_signup", request),
    }
    status = {"": 200, "unknown": 404, "other_email": 403}.get(problem, 410)
    return render(request, "web/invite_accept.html", context, status=status)


@require_POST
def leave(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """Leave the workspace."""
    inside = cast("TenantRequest", request)
    try:
        services.member_remove(tenant=inside.tenant, actor=inside.actor, member_id=inside.membership.pk)
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("web:profile")
    messages.success(request, _("You have left %(workspace)s.") % {"workspace": inside.tenant.name})
    return redirect("web:home")


def posted_id(request: HttpRequest, name: str) -> int:
    """Return the id in a posted field.

    Raises:
        Missing: it is no number, so nothing can have it.
    """
    text = request.POST.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Missing(name)
    return int(text)


def _entrance(name: str, request: HttpRequest) -> str:
    return f"{reverse(name)}?{urlencode({'next': request.path})}"


def _page(request: TenantRequest, form: InviteForm, *, link: str = "", status: int = 200) -> HttpResponse:
    can_manage = request.actor.can("member.manage")
    people = list(member_list(actor=request.actor))
    for person in people:
        person.is_self = person.user_id == request.user.pk  # type: ignore[attr-defined]
    waiting = list(invite_list(actor=request.actor)) if can_manage else []
    for invite in waiting:
        invite.is_expired = invite_problem(invite) == "expired"  # type: ignore[attr-defined]
    context = {
        "section": "members",
        "members": people,
        "invites": waiting,
        "invite_form": form,
        "role_choices": role_choices(request.actor),
        "can_manage": can_manage,
        "new_invite_url": link,
    }
    return render(request, "settings/members.html", context, status=status)
