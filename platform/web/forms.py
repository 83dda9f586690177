"""Forms of the shell and of a workspace's settings. They parse and show; the services decide."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from basics.errors import DomainError
from erasure.retention import MOST_DAYS, Preview
from tenancy.actors import Actor
from tenancy.models import ModelEntry, Role, User
from tenancy.permissions import KEY_SCOPES, rank
from tenancy.portal_languages import languages_offered
from tenancy.services.credentials import PROVIDERS
from tenancy.services.model_entries import CAPABILITIES
from web.key_collections import key_collections
from web.reader_zone import zones_offered
from web.widgets import Textarea
from webhooks.models import SUBSCRIBABLE

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

EVENT_NAMES = {
    "run.finished": gettext_lazy("An answer has ended"),
    "approval.needed": gettext_lazy("A call waits for approval"),
    "ingestion.finished": gettext_lazy("A document is ready"),
    "ingestion.failed": gettext_lazy("A document failed"),
    # xgettext:no-python-format
    # xgettext:no-python-format
    "budget.warned": gettext_lazy("80 % of a budget is spent"),
    "budget.exceeded": gettext_lazy("A budget is used up"),
    "ping": gettext_lazy("Test"),
}


def add_refusal(form: forms.BaseForm, error: DomainError) -> None:
    """Show what a service refused at the field it names, else above the form."""
    field = error.data.get("field")
    form.add_error(field if field in form.fields else None, error.message)


def role_choices(actor: Actor) -> list[tuple[str, str]]:
    """Return the roles that the actor may give."""
    return [(v, str(label)) for v, label in Role.choices if rank(v) <= rank(actor.role)]


class TenantForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        help_text=gettext_lazy("The name of the team or project."),
        widget=forms.TextInput(attrs={"autocomplete": "organization", "autofocus": True}),
    )
    slug = forms.SlugField(
        max_length=40,
        required=False,
        label=gettext_lazy("Address"),
        help_text=gettext_lazy(
            "Its part of the URL: lower-case letters, digits and hyphens. Left empty, it is made from the name."
        ),
    )


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("first_name", "last_name")


class LanguageForm(forms.Form):
    """The language of pages and mails, "" for the browser's; whoever is signed in chooses their time zone too."""

    language = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Language"),
        help_text=gettext_lazy("For pages and emails. Answers follow the language of your question."),
        widget=forms.Select(attrs={"data-submit": ""}),
    )
    time_zone = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Time zone"),
        help_text=gettext_lazy("For dates and times on pages."),
        widget=forms.Select(attrs={"data-submit": ""}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, choices in (
            ("language", [("", _("As your browser asks")), *languages_offered().items()]),
            (
                "time_zone",
                [("", _("As your browser says")), *((z, z.replace("_", " ")) for z in zones_offered())],
            ),
        ):
            self.fields[name].choices = choices  # type: ignore[attr-defined]


class ConfirmForm(forms.Form):
    confirm = forms.CharField(
        max_length=254, label=gettext_lazy("Confirm"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )


class HoldForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=300,
        help_text=gettext_lazy("The reason, such as a case or file number."),
    )


class InviteForm(forms.Form):
    email = forms.EmailField(
        label=gettext_lazy("Email"), widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )
    role = forms.ChoiceField(label=gettext_lazy("Role"), initial=Role.MEMBER)

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = role_choices(actor)  # type: ignore[attr-defined]


class ApiKeyForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=80, help_text=gettext_lazy("What the key is for.")
    )
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"),
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("What programs can do with it."),
    )
    collections = forms.MultipleChoiceField(
        label=gettext_lazy("Collections"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Choose collections to limit the key to them, or none to let it see all."),
    )
    expires = forms.ChoiceField(
        label=gettext_lazy("Expires"),
        choices=[
            ("30", gettext_lazy("in 30 days")),
            ("90", gettext_lazy("in 90 days")),
            ("365", gettext_lazy("in a year")),
            ("", gettext_lazy("never")),
        ],
        initial="90",
        required=False,
    )

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = sorted(KEY_SCOPES & actor.actions)
        self.fields["scopes"].choices = [(s, s) for s in scopes]  # type: ignore[attr-defined]
        found = key_collections(actor)
        self.fields["collections"].choices = found  # type: ignore[attr-defined]
        if not found:
            del self.fields["collections"]

    def limited_to(self) -> list[int] | None:
        """Return the ids of the collections the key shall see, None for no such limit."""
        chosen = self.cleaned_data.get("collections")
        return [int(pk) for pk in chosen] if chosen else None

    def expires_at(self) -> datetime | None:
        """Return when the key is to end, None for never."""
        days = self.cleaned_data["expires"]
        return timezone.now() + timedelta(days=int(days)) if days else None


class WebhookForm(forms.Form):
    url = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=2000,
        help_text=gettext_lazy("An https address on a public host that receives the calls."),
        widget=forms.URLInput(attrs={"placeholder": "https://example.org/hooks/groundwork"}),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        widget=forms.CheckboxSelectMultiple,
        choices=[(event.value, EVENT_NAMES[event.value]) for event in SUBSCRIBABLE],
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("What it is for."),
    )


class AuditStreamForm(forms.Form):
    url = forms.CharField(
        label=gettext_lazy("Address"),
        max_length=2000,
        help_text=gettext_lazy("https:// for signed calls, or a syslog receiver: syslog+tls://host:port."),
        widget=forms.TextInput(attrs={"placeholder": "https://siem.example.org/groundwork"}),
    )
    has_reads = forms.BooleanField(
        label=gettext_lazy("Reads too"),
        required=False,
        initial=True,
        help_text=gettext_lazy("Also send who read which documents, not only what was changed."),
    )


class CredentialForm(forms.Form):
    provider = forms.ChoiceField(label=gettext_lazy("Provider"), choices=list(PROVIDERS.items()))
    secret = forms.CharField(
        label=gettext_lazy("Key"),
        required=False,
        max_length=500,
        strip=True,
        help_text=gettext_lazy("Empty keeps the stored key."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    endpoint = forms.CharField(
        label=gettext_lazy("Endpoint"),
        required=False,
        max_length=30,
        help_text=gettext_lazy(
            "Only for an additional compatible server: a short name that starts its models' names, "
            "as in compatible/lab/model. Lower-case letters, digits and hyphens."
        ),
    )
    base_url = forms.CharField(
        max_length=200,
        label=gettext_lazy("Address"),
        required=False,
        help_text=gettext_lazy("Only for another endpoint, for example https://llm.example.org/v1."),
    )
    model_names = forms.CharField(
        label=gettext_lazy("Models"),
        required=False,
        help_text=gettext_lazy("Comma-separated; empty offers the usual ones."),
    )
    label = forms.CharField(
        label=gettext_lazy("Label"),
        required=False,
        max_length=80,
        help_text=gettext_lazy("A note for your team."),
    )

    def names(self) -> list[str]:
        """Return the model names, in the order given."""
        return [n.strip() for n in self.cleaned_data["model_names"].split(",") if n.strip()]


def _price(label: StrOrPromise, help_text: StrOrPromise = "") -> forms.DecimalField:
    return forms.DecimalField(
        label=label, required=False, min_value=0, max_digits=12, decimal_places=6, help_text=help_text
    )


class ModelEntryForm(forms.Form):
    """What a workspace states about a model. Prices are USD per million tokens."""

    name = forms.CharField(
        label=gettext_lazy("Model"),
        max_length=120,
        help_text=gettext_lazy("With its provider, for example openai/gpt-6-sol or compatible/lab/llama3."),
    )
    label = forms.CharField(label=gettext_lazy("Shown as"), required=False, max_length=80)
    is_enabled = forms.BooleanField(label=gettext_lazy("Offer this model"), required=False, initial=True)
    context_window = forms.IntegerField(
        label=gettext_lazy("Context window"),
        required=False,
        min_value=1,
        help_text=gettext_lazy("Tokens; empty keeps the known value."),
    )
    max_output_tokens = forms.IntegerField(
        label=gettext_lazy("Maximum answer length"),
        required=False,
        min_value=1,
        help_text=gettext_lazy("Tokens."),
    )
    price_input = _price(
        gettext_lazy("Price of input"), gettext_lazy("USD per million tokens; empty keeps the known price.")
    )
    price_output = _price(gettext_lazy("Price of output"))
    price_cached_read = _price(gettext_lazy("Price of cached input"), gettext_lazy("Empty: same as input."))
    price_cache_write = _price(gettext_lazy("Price of cache writes"), gettext_lazy("Empty: same as input."))
    tiers = forms.CharField(
        label=gettext_lazy("Prices of long prompts"),
        required=False,
        max_length=1000,
        widget=Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy(
            "One per line: tokens above which it applies, input, output, and optionally cached input "
            "and cache writes. For example: 200000 4 15"
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for key, label in CAPABILITIES.items():
            self.fields[f"can_{key}"] = forms.ChoiceField(
                label=label, required=False, choices=[("", _("as known")), ("yes", _("yes")), ("no", _("no"))]
            )

    def clean(self) -> dict[str, Any]:
        """Gather the tiers as ``prices``: None when nothing is stated."""
        data = super().clean() or self.cleaned_data
        keys = ("input", "output", "cached_read", "cache_write")
        base = {key: data.get(f"price_{key}") for key in keys}
        stated = [key for key in keys if base[key] is not None]
        data["prices"] = None
        if not stated and not data.get("tiers"):
            return data
        for key in ("input", "output"):
            if base[key] is None and f"price_{key}" not in self.errors:
                self.add_error(f"price_{key}", _("Enter both input and output prices."))
        data["prices"] = [{**base, "above_tokens": 0}, *self._tiers(data.get("tiers") or "")]
        return data

    def _tiers(self, text: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for line in filter(None, map(str.strip, text.splitlines())):
            words = line.split()
            try:
                above = int(words[0])
                prices = [None if word == "-" else float(word) for word in words[1:]]
            except ValueError:
                above, prices = 0, []
            if not 2 <= len(prices) <= 4:
                self.add_error("tiers", _("Not understood: %(line)s") % {"line": line[:80]})
                continue
            prices += [None] * (4 - len(prices))
            keys = ("input", "output", "cached_read", "cache_write")
            found.append({**dict(zip(keys, prices, strict=True)), "above_tokens": above})
        return found

    def capabilities(self) -> dict[str, bool]:
        """Return what is stated about capabilities, by name."""
        said = {key: self.cleaned_data.get(f"can_{key}") for key in CAPABILITIES}
        return {key: answer == "yes" for key, answer in said.items() if answer}

    @staticmethod
    def initial_of(entry: ModelEntry) -> dict[str, Any]:
        """Return what the form shows of an entry."""
        first, *others = entry.prices or [{}]
        order = ("above_tokens", "input", "output", "cached_read", "cache_write")
        lines = [
            " ".join("-" if tier.get(key) is None else str(tier[key]) for key in order) for tier in others
        ]
        return {
            "name": entry.name,
            "label": entry.label,
            "is_enabled": entry.is_enabled,
            "context_window": entry.context_window,
            "max_output_tokens": entry.max_output_tokens,
            **{f"price_{key}": first.get(key) for key in order[1:]},
            "tiers": "\n".join(lines),
            **{f"can_{key}": "yes" if has else "no" for key, has in entry.capabilities.items()},
        }


class RetentionForm(forms.Form):
    """Days for each kind of thing that has a retention rule; an empty field means the server's default."""

    def __init__(self, rules: Iterable[Preview], data: Any = None) -> None:
        super().__init__(data)
        for rule in rules:
            kind, default = rule.kind, rule.kind.days(None)
            longest = kind.longest_days() or MOST_DAYS
            self.fields[kind.name] = forms.IntegerField(
                required=False,
                min_value=0,
                max_value=longest,
                label=_("Days to keep: %(kind)s") % {"kind": kind.label},
                initial=rule.own,
                widget=forms.NumberInput(
                    attrs={
                        "inputmode": "numeric",
                        "autocomplete": "off",
                        "placeholder": default or _("Forever"),
                    }
                ),
            )

    def changes(self) -> dict[str, int | None]:
        """Return the days of the fields that were sent."""
        return {name: self.cleaned_data[name] for name in self.fields if name in self.data}


class OutgoingHostsForm(forms.Form):
    hosts = forms.CharField(
        required=False,
        max_length=130_000,
        label=gettext_lazy("Allowed hosts"),
        help_text=gettext_lazy(
            "One per line: api.example.com, or *.example.com for all its subdomains. Empty: every "
            "public host."
        ),
        widget=Textarea(
            attrs={"rows": 8, "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}
        ),
    )
