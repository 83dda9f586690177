"""Sign-in and sign-up by django-allauth, bent to workspaces and invitations."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar
from urllib.parse import urlsplit

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override

from tenancy.models import Invite, User
from tenancy.portal_languages import person_language
from tenancy.public_address import public_address
from tenancy.selectors import invite_read
from web.attempts import attempt_take, attempt_undo, browser_remember
from web.middleware import client_ip
from web.sign_in_trail import password_refused, sign_in_record

log = structlog.get_logger(__name__)
SESSION_KEY = "invite_token"


def is_unconfirmed(user: User) -> bool:
    """Tell whether somebody registered an address and nobody has followed the link of its mail yet.

    Who was invited, made by a command, or has signed in before there was such a mail, is not asked.
    """
    if user.last_login is not None:
        return False
    states = set(EmailAddress.objects.filter(user=user).values_list("verified", flat=True))
    return states == {False}


def session_invite(request: HttpRequest) -> Invite | None:
    """Return the open invitation whose link this browser has opened, if any."""
    token = request.session.get(SESSION_KEY)
    if not isinstance(token, str):
        return None
    invite, problem = invite_read(token=token)
    return None if problem else invite


class _Site:
    """What templates of mails ask of Django's ``Site``, which takes the name from the request."""

    def __init__(self, address: str) -> None:
        self.name = self.domain = urlsplit(address).netloc


def _is_link(value: object, origin: str) -> bool:
    return isinstance(value, str) and value.startswith(f"{origin}/")


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Open registration only where the operator allows it, or to somebody who holds an open invitation."""

    error_messages: ClassVar[dict[str, Any]] = {
        **DefaultAccountAdapter.error_messages,
        "email_password_mismatch": gettext_lazy(
            "The email address or password is wrong, or the address isn't confirmed "
            "yet. Follow the link in our email, or reset your password."
        ),
    }

    def is_open_for_signup(self, request: Any) -> bool:
        return settings.SIGNUP == "open" or session_invite(request) is not None

    def get_login_redirect_url(self, request: Any) -> str:
        """Go on with the invitation that brought the person here, else to their workspace."""
        if session_invite(request) is not None:
            return reverse("web:invite-accept", args=[request.session[SESSION_KEY]])
        return str(super().get_login_redirect_url(request))

    get_signup_redirect_url = get_login_redirect_url

    def is_email_verified(self, request: HttpRequest, email: str) -> bool:
        """Take an invitation's link for the proof of its address."""
        invite = session_invite(request)
        if invite is not None and invite.email.lower() == email.lower():
            return True
        return bool(super().is_email_verified(request, email))

    def get_login_stages(self) -> list[str]:
        """Ask for a confirmed address only of those who register on their own (``web.sign_in``)."""
        ours = {"allauth.account.stages.EmailVerificationStage": "web.sign_in.ConfirmStage"}
        return [ours.get(one, one) for one in super().get_login_stages()]

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        """Return whose password this is; None too where the address was never confirmed.

        Otherwise a stranger could register an address, try the password, and see whether it had an account before.
        """
        user = super().authenticate(request, **credentials)
        if user is None or is_unconfirmed(user):
            return None
        attempt_undo(self._attempt)
        return user

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Call a passkey what it is called everywhere here."""
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        return [
            {**one, "description": _("Use a passkey")} if one["id"] == "mfa_reauthenticate:webauthn" else one
            for one in methods
        ]

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send one of allauth's mails in the language that its reader has chosen, else in that of the page that asked for it.

        Its links have an address that the settings name; where there is none, nothing is sent (``tenancy.public_address``).
        """
        address, asked = public_address(self.request), self.request.build_absolute_uri("/")[:-1]
        if not address:
            log.error("mail_without_address", template=template_prefix, host=self.request.get_host())
            return
        context = {
            name: f"{address}{value.removeprefix(asked)}" if _is_link(value, asked) else value
            for name, value in context.items()
        }
        context["current_site"] = _Site(
            address
        )  # allauth's texts name it, and programs make a link of a name
        chosen = person_language(context.get("user"))
        with override(chosen) if chosen else nullcontext():
            super().send_mail(template_prefix, email, context)

    def format_email_subject(self, subject: str) -> str:
        """Begin a subject with the name of the server that the links lead to."""
        return f"[{_Site(public_address(self.request)).name}] {subject}"

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the caller's address, as everywhere else here."""
        return client_ip(request)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count an attempt before its password is looked at; see ``web.attempts``. Raises TooManyAttempts."""
        self._attempt = attempt_take(request, str(credentials.get("email", "")))

    def _rollback_login_failed_rl_usage(self) -> None:
        """Take nothing back yet: a right password counts as a wrong one where ``authenticate`` refuses it."""

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Have the audit logs of a person's workspaces tell of a wrong password."""
        super().authentication_failed(request, **credentials)
        password_refused(request, str(credentials.get("email", "")))

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        """Answer a sign-in, and let the browser be known from now on."""
        response: HttpResponse = super().post_login(request, user, **kwargs)
        sign_in_record(request, user)
        browser_remember(request, response, user.email)
        return response
