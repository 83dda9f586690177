"""The sign-in form; apart from ``web.accounts``, because allauth's forms import that at start."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import LoginForm as Base
from allauth.account.stages import EmailVerificationStage
from allauth.mfa.base import forms as codes
from django.utils.translation import gettext as _

from web.accounts import is_unconfirmed
from web.attempts import attempt_undo, code_attempt_take


class LoginForm(Base):  # type: ignore[misc]
    """allauth's, with its labels written as all others are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["remember"].label = _("Remember me")


class ConfirmStage(EmailVerificationStage):  # type: ignore[misc]
    """allauth's, for those alone who registered on their own; without a user it only plays the same answer."""

    def handle(self) -> Any:
        """Send the mail and the page that says so, or let the sign-in go on."""
        user = self.login.user
        if user is not None and not is_unconfirmed(user):
            return None, True
        return super().handle()


class _CountedCode:
    """Counts each code before it is looked at: allauth's own count is switched off with that of passwords."""

    user: Any

    def clean_code(self) -> str:
        """Return a right code. Raises TooManyAttempts."""
        taken = code_attempt_take(self.user.pk)
        code: str = super().clean_code()  # type: ignore[misc]
        attempt_undo(taken)
        return code


class CodeForm(_CountedCode, codes.AuthenticateForm):  # type: ignore[misc]
    """The second factor at sign-in."""


class CodeAgainForm(_CountedCode, codes.ReauthenticateForm):  # type: ignore[misc]
    """The second factor of somebody who is signed in, asked once more."""
