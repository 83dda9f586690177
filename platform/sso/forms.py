"""Forms of company sign-in. They parse and show; the services decide."""

from __future__ import annotations

from typing import Any, Self

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sso.models import SsoConnection
from tenancy.models import Membership, Role
from tenancy.sign_in_rules import SignInRules
from web.widgets import Textarea


class EmailForm(forms.Form):
    email = forms.EmailField(
        label=gettext_lazy("Email at work"),
        widget=forms.EmailInput(attrs={"autocomplete": "email", "autofocus": True}),
    )


class _ProviderForm(forms.Form):
    """What providers of both protocols have."""

    field_order: tuple[str, ...] = ()

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=80,
        help_text=gettext_lazy("What the sign-in button says, for example Okta."),
    )
    creates_members = forms.BooleanField(
        required=False,
        initial=True,
        label=gettext_lazy("People from verified domains become members when they first sign in"),
    )
    is_enabled = forms.BooleanField(
        required=False, initial=True, label=gettext_lazy("People can sign in through it")
    )

    @classmethod
    def of(cls, row: SsoConnection) -> Self:
        """Return the form of a provider that is there."""
        names = [name for name in cls.base_fields if hasattr(row, name)]
        return cls(prefix=f"c{row.pk}", initial={name: getattr(row, name) for name in names})


class ConnectionForm(_ProviderForm):
    """A provider with OpenID Connect."""

    issuer = forms.CharField(
        label=gettext_lazy("Issuer"),
        max_length=300,
        help_text=gettext_lazy("The address that the provider's discovery document states as its issuer."),
        widget=forms.TextInput(attrs={"placeholder": "https://login.example.com", "inputmode": "url"}),
    )
    client_id = forms.CharField(max_length=200, label=gettext_lazy("Client ID"))
    secret = forms.CharField(
        max_length=500,
        required=False,
        label=gettext_lazy("Client secret"),
        help_text=gettext_lazy("Stored encrypted. Leave it empty to keep the stored one."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    groups_claim = forms.CharField(
        label=gettext_lazy("Groups claim"),
        max_length=200,
        initial="groups",
        help_text=gettext_lazy("The claim that holds a person's groups."),
    )
    takes_unstated_email = forms.BooleanField(
        required=False,
        label=gettext_lazy("This provider doesn't state email_verified"),
        help_text=gettext_lazy(
            "For Microsoft Entra. Only if people can't change their address there themselves."
        ),
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
        label=gettext_lazy("Provider's metadata"),
        help_text=gettext_lazy("Paste the XML, or enter its https:// address."),
        widget=Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    email_claim = forms.CharField(
        max_length=200,
        required=False,
        label=gettext_lazy("Email attribute"),
        help_text=gettext_lazy("Empty: the usual names, or the name ID if it is an email address."),
    )
    groups_claim = forms.CharField(
        max_length=200,
        initial="groups",
        label=gettext_lazy("Groups attribute"),
        help_text=gettext_lazy("The attribute that holds a person's groups."),
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

    issuer = forms.CharField(max_length=300, required=False, label=gettext_lazy("Provider's entity ID"))
    sso_url = forms.CharField(
        max_length=1000,
        required=False,
        label=gettext_lazy("Sign-in address"),
        widget=forms.TextInput(attrs={"inputmode": "url"}),
    )
    certificates = forms.CharField(
        max_length=50_000,
        required=False,
        label=gettext_lazy("Signing certificates"),
        help_text=gettext_lazy(
            "PEM. While the provider changes its certificate, keep the old one and add the new one."
        ),
        widget=Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )
    field_order = (
        "name", "metadata", "issuer", "sso_url", "certificates", "email_claim", "groups_claim",
        "creates_members", "is_enabled",
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["metadata"].help_text = _(
            "Paste the XML, or enter its https:// address, to replace the entity ID, address and certificates."
        )


class RulesForm(forms.Form):
    requires_sso = forms.BooleanField(
        required=False,
        label=gettext_lazy("Require company sign-in"),
        help_text=gettext_lazy("Passwords then no longer work here, except for the owner below."),
    )
    break_glass = forms.TypedChoiceField(
        required=False,
        coerce=int,
        empty_value=None,
        label=gettext_lazy("Owner for emergencies"),
        help_text=gettext_lazy(
            "Can sign in with password and code if the provider fails. Their role and membership are kept."
        ),
    )
    requires_second_factor = forms.BooleanField(
        required=False,
        label=gettext_lazy("Require a second factor"),
        help_text=gettext_lazy(
            "For those who sign in with a password. Company sign-in leaves it to the provider."
        ),
    )
    session_hours = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=2160,
        label=gettext_lazy("Sign in again after (hours)"),
        help_text=gettext_lazy("Empty: 24 hours for company sign-in, two weeks for passwords."),
    )
    default_role = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Role without a group"),
        choices=[
            ("", gettext_lazy("No access")),
            *((r.value, r.label) for r in (Role.VIEWER, Role.MEMBER, Role.ADMIN)),
        ],
        help_text=gettext_lazy(
            "For people who sign in or are provisioned and aren't in a group with a role."
        ),
    )

    def __init__(self, data: Any, *, owners: list[Membership], rules: SignInRules) -> None:
        chosen = next((m.pk for m in owners if m.user_id == rules.break_glass), None)
        super().__init__(data, prefix="rules", initial={**rules.as_json(), "break_glass": chosen})
        field: Any = self.fields["break_glass"]
        field.choices = [("", _("No one")), *((m.pk, str(m.user)) for m in owners)]


class GroupForm(forms.Form):
    group = forms.CharField(
        label=gettext_lazy("Group"),
        max_length=200,
        help_text=gettext_lazy("Its name or id, as the provider sends it."),
    )
    # The first choice would be owner, which nobody should give by not looking.
    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=Role.choices, initial=Role.MEMBER)


class DomainForm(forms.Form):
    domain = forms.CharField(
        label=gettext_lazy("Domain"),
        max_length=253,
        help_text=gettext_lazy("For example example.com; each subdomain with addresses counts separately."),
    )


class TokenForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=80,
        help_text=gettext_lazy("What uses it, for example Okta provisioning."),
    )
