"""The sign-up form; apart from ``web.accounts``, because allauth's forms import that at start."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import SignupForm as Base
from allauth.core import context
from django import forms
from django.conf import settings
from django.utils.translation import gettext as _

from tenancy.models import User
from web.accounts import session_invite


class SignupForm(Base):  # type: ignore[misc]
    """On a server that is not open, the account must be of the invited address."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.invite = session_invite(context.request)
        if self.invite is not None:
            self.fields["email"].initial = self.invite.email

    def try_save(self, request: Any) -> Any:
        """Make the account; where there is one already, do as much work and give the same answer."""
        if self.account_already_exists:
            User().set_password(self.cleaned_data["password1"])
        return super().try_save(request)

    def clean_email(self) -> str:
        email: str = super().clean_email()
        if settings.SIGNUP != "open" and (self.invite is None or email.lower() != self.invite.email.lower()):
            raise forms.ValidationError(_("Use the address the invitation was sent to."))
        return email
