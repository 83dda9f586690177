"""The sign-in form; apart from ``web.accounts``, because allauth's forms import that at start."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import LoginForm as Base


class LoginForm(Base):  # type: ignore[misc]
    """allauth's, with its labels written as all others are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["remember"].label = "Remember me"
