"""The sign-in form; apart from ``web.accounts``, because allauth's forms import that at start."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import LoginForm as Base
from allauth.account.stages import EmailVerificationStage

from web.accounts import is_unconfirmed


class LoginForm(Base):  # type: ignore[misc]
    """allauth's, with its labels written as all others are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["remember"].label = "Remember me"


class ConfirmStage(EmailVerificationStage):  # type: ignore[misc]
    """allauth's, for those alone who registered on their own; without a user it only plays the same answer."""

    def handle(self) -> Any:
        """Send the mail and the page that says so, or let the sign-in go on."""
        user = self.login.user
        if user is not None and not is_unconfirmed(user):
            return None, True
        return super().handle()
