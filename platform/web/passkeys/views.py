"""Pages of passkeys: the start of each ceremony, sign-in with one, adding, naming and removing on the account page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from allauth.account.decorators import reauthentication_required
from allauth.account.internal.flows.login import perform_login
from allauth.account.models import Login
from allauth.account.stages import LoginStageController
from allauth.account.utils import get_login_redirect_url
from allauth.account.views import BaseReauthenticateView
from allauth.mfa.internal.flows.add import validate_can_add_authenticator
from allauth.mfa.recovery_codes.internal.flows import auto_generate_recovery_codes
from allauth.mfa.stages import AuthenticateStage
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from basics.errors import Denied, DomainError
from tenancy.models import User
from web.attempts import attempt_undo, passkey_attempt_take, passkey_start_take
from web.forms import add_refusal
from web.passkeys.ceremonies import (
    PasskeyRefused,
    Purpose,
    assertion_begin,
    assertion_complete,
    registration_begin,
    registration_complete,
)
from web.passkeys.forms import AgainForm, NameForm, passkey_note
from web.passkeys.selectors import passkey_list
from web.passkeys.services import (
    passkey_add,
    passkey_refusal_record,
    passkey_remove,
    passkey_rename,
    trail_record,
)
from web.requests import UserRequest, signed_in

View = Callable[..., HttpResponse]
recently: Callable[[View], View] = reauthentication_required(app="allauth.mfa")


@never_cache
@require_POST
def challenge(request: HttpRequest, purpose: str) -> HttpResponse:
    """Begin a ceremony: the options for the browser, as JSON.

    Raises:
        Http404: there is no such purpose.
        Denied: nobody is signed in, or in the step of signing in, that it is for.
        TooManyAttempts: too many were begun from this address.
    """
    if purpose not in set(Purpose):
        raise Http404
    person = request.user if request.user.is_authenticated else None
    if purpose == Purpose.SIGN_IN:
        passkey_start_take(request)
        return JsonResponse(assertion_begin(request, Purpose.SIGN_IN, None))
    if purpose == Purpose.SECOND:
        stage = None if person else LoginStageController.enter(request, AuthenticateStage.key)
        if stage is None:
            raise Denied("sign_in_over", _("This sign-in has ended. Reload the page and start again."))
        return JsonResponse(assertion_begin(request, Purpose.SECOND, stage.login.user))
    if person is None:
        raise Denied("signed_out", _("You're signed out. Sign in again."))
    if purpose == Purpose.AGAIN:
        return JsonResponse(assertion_begin(request, Purpose.AGAIN, person))
    return _creation(cast("UserRequest", request))


@recently
def _creation(request: UserRequest) -> HttpResponse:
    return JsonResponse(registration_begin(request, request.user))


@never_cache
@require_http_methods(["GET", "POST"])
@sensitive_post_parameters()
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in with a passkey alone. Raises TooManyAttempts."""
    if request.user.is_authenticated:
        return HttpResponseRedirect(get_login_redirect_url(request))
    if request.method == "GET":
        return redirect("account_login")
    taken = passkey_attempt_take(request)
    try:
        use = assertion_complete(request, Purpose.SIGN_IN, None, request.POST.get("credential", ""))
    except PasskeyRefused as error:
        passkey_refusal_record(error)
        messages.error(request, error.message)
        return redirect("account_login")
    attempt_undo(taken)
    user = use.row.user
    passkey_note(request, use, passwordless=True)
    if user.is_active:
        trail_record(user=user, action="passkey.sign_in", pk=use.row.pk)
    response: HttpResponse = perform_login(request, Login(user=user))
    return response


@require_GET
@signed_in
def overview(request: UserRequest) -> HttpResponse:
    """Go to the passkeys on the account page."""
    return redirect(f"{reverse('web:profile')}#passkeys")


@never_cache
@require_http_methods(["GET", "POST"])
@login_required
@recently
@sensitive_post_parameters()
def add(request: UserRequest) -> HttpResponse:
    """Add a passkey: the browser makes it, the form brings its name and public key."""
    try:
        validate_can_add_authenticator(request.user)
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("web:profile")
    form = NameForm(request.POST or None, initial={"name": _suggestion(request.user)})
    if request.method == "POST" and form.is_valid():
        try:
            made = registration_complete(request, request.user, request.POST.get("credential", ""))
            row = passkey_add(user=request.user, name=form.cleaned_data["name"], made=made)
        except DomainError as error:
            add_refusal(form, error)
        else:
            messages.success(request, _("The passkey “%(name)s” was added.") % {"name": row.data["name"]})
            if auto_generate_recovery_codes(request):
                return redirect("mfa_view_recovery_codes")
            return redirect(f"{reverse('web:profile')}#passkeys")
    return render(request, "settings/passkey_add.html", {"form": form}, status=422 if form.errors else 200)


@signed_in
@require_POST
def rename(request: UserRequest, pk: int) -> HttpResponse:
    """Give a passkey another name; htmx gets the list, others the account page. Raises Missing, Invalid."""
    row = passkey_rename(user=request.user, pk=pk, name=request.POST.get("name", ""))
    if request.headers.get("HX-Request"):
        context = {"passkeys": passkey_list(user=request.user), "renamed": row.pk}
        return render(request, "settings/_passkeys.html", context)
    messages.success(request, _("The passkey is now called “%(name)s”.") % {"name": row.data["name"]})
    return redirect(f"{reverse('web:profile')}#passkeys")


@require_http_methods(["GET", "POST"])
@login_required
@recently
def remove(request: UserRequest, pk: int) -> HttpResponse:
    """Remove a passkey; its person has confirmed it on the account page. Raises Missing."""
    if request.method == "POST":
        try:
            row = passkey_remove(user=request.user, pk=pk)
        except DomainError as error:
            if error.status != 409:
                raise
            messages.error(request, error.message)
        else:
            messages.success(
                request,
                _("The passkey “%(name)s” was removed. Delete it on your device too.")
                % {"name": row.data["name"]},
            )
    return redirect(f"{reverse('web:profile')}#passkeys")


@method_decorator(login_required, name="dispatch")
class _Again(BaseReauthenticateView):  # type: ignore[misc]
    """Ask somebody who is signed in for a passkey; allauth keeps what they were about to do."""

    form_class = AgainForm
    template_name = "mfa/webauthn/reauthenticate.html"

    def get_form_kwargs(self) -> dict[str, Any]:
        """Hand the person to the form."""
        return {**super().get_form_kwargs(), "user": self.request.user}

    def form_valid(self, form: AgainForm) -> HttpResponse:
        """Note it, and go on."""
        form.save()
        response: HttpResponse = super().form_valid(form)
        return response


again = never_cache(_Again.as_view())


def _suggestion(user: User) -> str:
    count = len(passkey_list(user=user))
    return _("My passkey") if not count else _("My passkey %(number)s") % {"number": count + 1}
