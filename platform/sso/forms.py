"""Forms of company sign-in. They parse and show; the services decide."""

from __future__ import annotations

from typing import Any, Self

from django import forms

from sso.models import SsoConnection
from tenancy.models import Membership, Role
from tenancy.sign_in_rules import SignInRules


class EmailForm(forms.Form):
    email = forms.EmailField(
        label="Email at work", widget=forms.EmailInput(attrs={"autocomplete": "email", "autofocus": True})
    )


class _ProviderForm(forms.Form):
    """What providers of both protocols have."""

    field_order: tuple[str, ...] = ()

    name = forms.CharField(max_length=80, help_text="What the sign-in button says, for example Okta.")
    creates_members = forms.BooleanField(
        required=False,
        initial=True,
        label="People of verified domains become members when they first sign in",
    )
    is_enabled = forms.BooleanField(required=False, initial=True, label="People can sign in through it")

    @classmethod
    def of(cls, row: SsoConnection) -> Self:
        """Return the form of a provider that is there."""
        names = [name for name in cls.base_fields if hasattr(row, name)]
        return cls(prefix=f"c{row.pk}", initial={name: getattr(row, name) for name in names})


class ConnectionForm(_ProviderForm):
    """A provider with OpenID Connect."""

    issuer = forms.CharField(
        max_length=300,
        help_text="The address that the provider's discovery document states as its issuer.",
        widget=forms.TextInput(attrs={"placeholder": "https://login.example.com", "inputmode": "url"}),
    )
    client_id = forms.CharField(max_length=200, label="Client ID")
    secret = forms.CharField(
        max_length=500,
        required=False,
        label="Client secret",
        help_text="Stored encrypted. Leave it empty to keep the stored one.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    groups_claim = forms.CharField(
        max_length=200, initial="groups", help_text="The claim that holds a person's groups."
    )
    takes_unstated_email = forms.BooleanField(
        required=False,
        label="This provider doesn't state email_verified",
        help_text="For Microsoft Entra. Only if people can't change their address there themselves.",
    )
    field_order = (
        "name", "issuer", "client_id", "secret", "groups_claim", "creates_members", "takes_unstated_email",
        "is_enabled",
    )  # fmt: skip


class SamlForm(_ProviderForm):
    """A provider with SAML 2.0."""

    metadata = forms.CharField(
        max_length=500_000,
        required=False,
        label="Provider's metadata",
        help_text="Paste the XML, or enter its https:// address.",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    email_claim = forms.CharField(
        max_length=200,
        required=False,
        label="Email attribute",
        help_text="Empty: the usual names, or the name ID if it is an email address.",
    )
    groups_claim = forms.CharField(
        max_length=200,
        initial="groups",
        label="Groups attribute",
        help_text="The attribute that holds a person's groups.",
    )
    field_order: tuple[str, ...] = (
        "name",
        "metadata",
        "email_claim",
        "groups_claim",
        "creates_members",
        "is_enabled",
    )


class SamlChangeForm(SamlForm):
    """The same once a provider is there: what its metadata said can be changed by hand."""

    issuer = forms.CharField(max_length=300, required=False, label="Provider's entity ID")
    sso_url = forms.CharField(
        max_length=1000,
        required=False,
        label="Sign-in address",
        widget=forms.TextInput(attrs={"inputmode": "url"}),
    )
    certificates = forms.CharField(
        max_length=50_000,
        required=False,
        label="Signing certificates",
        help_text="PEM. While the provider changes its certificate, keep the old one and add the new one.",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )
    field_order = (
        "name", "metadata", "issuer", "sso_url", "certificates", "email_claim", "groups_claim",
        "creates_members", "is_enabled",
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields[
            "metadata"
        ].help_text = "Paste the XML, or enter its https:// address, to replace the entity ID, address and certificates."


class RulesForm(forms.Form):
    requires_sso = forms.BooleanField(
        required=False,
        label="Require company sign-in",
        help_text="Passwords then open nothing here, except for the owner below.",
    )
    break_glass = forms.TypedChoiceField(
        required=False,
        coerce=int,
        empty_value=None,
        label="Owner for emergencies",
        help_text="Can sign in with password and code if the provider fails. Their role and membership are kept.",
    )
    requires_second_factor = forms.BooleanField(
        required=False,
        label="Require a second factor",
        help_text="For those who sign in with a password. Company sign-in leaves it to the provider.",
    )
    session_hours = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=2160,
        label="Sign in again after (hours)",
        help_text="Empty: 24 hours for company sign-in, two weeks for passwords.",
    )
    default_role = forms.ChoiceField(
        required=False,
        label="Role without a group",
        choices=[("", "No access"), *((r.value, r.label) for r in (Role.VIEWER, Role.MEMBER, Role.ADMIN))],
        help_text="Of people who sign in or are provisioned, and are in no group that has a role.",
    )

    def __init__(self, data: Any, *, owners: list[Membership], rules: SignInRules) -> None:
        chosen = next((m.pk for m in owners if m.user_id == rules.break_glass), None)
        super().__init__(data, prefix="rules", initial={**rules.as_json(), "break_glass": chosen})
        field: Any = self.fields["break_glass"]
        field.choices = [("", "No one"), *((m.pk, str(m.user)) for m in owners)]


class GroupForm(forms.Form):
    group = forms.CharField(max_length=200, help_text="Its name or id, as the provider sends it.")
    role = forms.ChoiceField(choices=Role.choices)


class DomainForm(forms.Form):
    domain = forms.CharField(
        max_length=253, help_text="For example example.com; each subdomain with addresses is one of its own."
    )


class TokenForm(forms.Form):
    name = forms.CharField(max_length=80, help_text="What uses it, for example Okta provisioning.")
