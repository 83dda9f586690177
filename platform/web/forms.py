"""Forms of the shell and of a workspace's settings. They parse and show; the services decide."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone

from basics.errors import DomainError
from tenancy.actors import Actor
from tenancy.models import Role, User
from tenancy.permissions import KEY_SCOPES, rank
from tenancy.services.credentials import PROVIDERS


def add_refusal(form: forms.BaseForm, error: DomainError) -> None:
    """Show what a service refused at the field it names, else above the form."""
    field = error.data.get("field")
    form.add_error(field if field in form.fields else None, error.message)


def role_choices(actor: Actor) -> list[tuple[str, str]]:
    """Return the roles that the actor may give."""
    return [(v, str(label)) for v, label in Role.choices if rank(v) <= rank(actor.role)]


class TenantForm(forms.Form):
    name = forms.CharField(
        max_length=120,
        help_text="The name of the team or project.",
        widget=forms.TextInput(attrs={"autocomplete": "organization", "autofocus": True}),
    )
    slug = forms.SlugField(
        max_length=40,
        label="Address",
        help_text="Its part of the URL: small letters, digits and hyphens.",
    )


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("first_name", "last_name")


class InviteForm(forms.Form):
    email = forms.EmailField(label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "off"}))
    role = forms.ChoiceField(initial=Role.MEMBER)

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = role_choices(actor)  # type: ignore[attr-defined]


class ApiKeyForm(forms.Form):
    name = forms.CharField(max_length=80, help_text="What the key is for.")
    scopes = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, help_text="What programs may do with it."
    )
    expires = forms.ChoiceField(
        choices=[("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year"), ("", "never")],
        initial="90",
        required=False,
    )

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = sorted(KEY_SCOPES & actor.actions)
        self.fields["scopes"].choices = [(s, s) for s in scopes]  # type: ignore[attr-defined]

    def expires_at(self) -> datetime | None:
        """Return when the key is to end, None for never."""
        days = self.cleaned_data["expires"]
        return timezone.now() + timedelta(days=int(days)) if days else None


class CredentialForm(forms.Form):
    provider = forms.ChoiceField(choices=list(PROVIDERS.items()))
    secret = forms.CharField(
        label="Key",
        required=False,
        max_length=500,
        strip=True,
        help_text="Empty keeps the stored key.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    base_url = forms.CharField(
        max_length=200,
        label="Address",
        required=False,
        help_text="Only for another endpoint, for example https://llm.example.org/v1.",
    )
    model_names = forms.CharField(
        label="Models",
        required=False,
        help_text="Comma-separated; empty offers the usual ones.",
    )
    label = forms.CharField(required=False, max_length=80, help_text="A note for your team.")

    def names(self) -> list[str]:
        """Return the model names, in the order given."""
        return [n.strip() for n in self.cleaned_data["model_names"].split(",") if n.strip()]
