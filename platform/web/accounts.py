"""Sign-in and sign-up by django-allauth, bent to workspaces and invitations."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Open registration only where the operator allows it, or to somebody who holds an invitation."""

    def is_open_for_signup(self, request: Any) -> bool:
        return settings.SIGNUP == "open" or "invite_token" in request.session
