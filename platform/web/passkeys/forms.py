"""The passkey's answer as forms take it, at allauth's pages: as second factor, and from those who are asked again."""

from __future__ import annotations

from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.core import context
from allauth.mfa import signals
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from tenancy.models import User
from web.attempts import attempt_undo, code_attempt_take
from web.passkeys.ceremonies import MAX_ANSWER, PasskeyRefused, PasskeyUse, Purpose, assertion_complete
from web.passkeys.services import MAX_NAME, passkey_refusal_record


class NameForm(forms.Form):
    """What a passkey is called."""

    name = forms.CharField(
        max_length=MAX_NAME,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("For example the device it is on."),
    )


class PasskeyForm(forms.Form):
    """A passkey of a person who is known already."""

    purpose: Purpose
    credential = forms.CharField(max_length=MAX_ANSWER, widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    @property
    def has_passkeys(self) -> bool:
        """Tell whether the person has one to show."""
        return bool(is_mfa_enabled(self.user, [Authenticator.Type.WEBAUTHN]))

    def clean(self) -> dict[str, Any]:
        """Check the answer. Raises TooManyAttempts: as for codes, with one count for both."""
        cleaned: dict[str, Any] = super().clean() or {}
        taken = code_attempt_take(self.user.pk)
        try:
            use = assertion_complete(context.request, self.purpose, self.user, cleaned.get("credential", ""))
        except PasskeyRefused as error:
            passkey_refusal_record(error)
            raise forms.ValidationError(error.message) from error
        attempt_undo(taken)
        return {**cleaned, "use": use}

    def save(self) -> None:
        """Note in the session what was shown."""
        passkey_note(context.request, self.cleaned_data["use"], reauthenticated=self.purpose is Purpose.AGAIN)


class SecondForm(PasskeyForm):
    """The second step of a sign-in with password."""

    purpose = Purpose.SECOND


class AgainForm(PasskeyForm):
    """Somebody who is signed in, asked once more."""

    purpose = Purpose.AGAIN


def passkey_note(
    request: HttpRequest, use: PasskeyUse, *, passwordless: bool = False, reauthenticated: bool = False
) -> None:
    """Note in the session that its person has shown a passkey, and how: ``tenancy.entrances`` reads it."""
    user = use.row.user
    record_authentication(
        request,
        user,
        "mfa",
        id=use.row.pk,
        type=use.row.type,
        verified=use.verified,
        passwordless=passwordless or None,
        reauthenticated=reauthenticated or None,
    )
    signals.authenticator_used.send(
        sender=Authenticator,
        request=request,
        user=user,
        authenticator=use.row,
        reauthenticated=reauthenticated,
        passwordless=passwordless,
    )
