"""Sign-in and sign-up by django-allauth, bent to workspaces and invitations."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from tenancy.models import Invite
from tenancy.selectors import invite_read

SESSION_KEY = "invite_token"


def session_invite(request: HttpRequest) -> Invite | None:
    """Return the open invitation whose link this browser has opened, if any."""
    token = request.session.get(SESSION_KEY)
    if not isinstance(token, str):
        return None
    invite, problem = invite_read(token=token)
    return None if problem else invite


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Open registration only where the operator allows it, or to somebody who holds an open invitation."""

    def is_open_for_signup(self, request: Any) -> bool:
        return settings.SIGNUP == "open" or session_invite(request) is not None

    def get_login_redirect_url(self, request: Any) -> str:
        """Go on with the invitation that brought the person here, else to their workspace."""
        if session_invite(request) is not None:
            return reverse("web:invite-accept", args=[request.session[SESSION_KEY]])
        return str(super().get_login_redirect_url(request))

    get_signup_redirect_url = get_login_redirect_url
