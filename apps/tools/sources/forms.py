"""Forms of a workspace's own tools: sources, their credentials, contract tests. They parse and show; the services decide."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.tools.models import ContractTest, ToolCredential, ToolSource
from apps.tools.sources.credentials import MAX_SECRET
from apps.tools.sources.services import MAX_DOCUMENT
from basics.errors import DomainError
from basics.texts import number_told
from web.widgets import Textarea


class SourceForm(forms.Form):
    """A source; which fields are asked for depends on its kind."""

    title = forms.CharField(
        label=gettext_lazy("Title"), required=False, max_length=120, help_text=gettext_lazy("For people.")
    )
    document_url = forms.CharField(
        label=gettext_lazy("Address of the document"),
        required=False,
        max_length=500,
        help_text=gettext_lazy("It is read from there again when you refresh the source."),
        widget=forms.URLInput(attrs={"placeholder": "https://api.example.org/openapi.json"}),
    )
    document_file = forms.FileField(
        label=gettext_lazy("or a file"), required=False, help_text=gettext_lazy("OpenAPI 3 as JSON or YAML.")
    )
    document = forms.CharField(
        label=gettext_lazy("or its text"),
        required=False,
        widget=Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
    )
    url = forms.CharField(
        label=gettext_lazy("Address"),
        required=False,
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://api.example.org"}),
    )
    package = forms.CharField(
        label=gettext_lazy("Plug-in"),
        required=False,
        help_text=gettext_lazy("The name the server's operator has allowed."),
    )
    allowed_hosts = forms.CharField(
        label=gettext_lazy("Further hosts"),
        required=False,
        help_text=gettext_lazy(
            "Calls can go only to the address's host and these hosts. Separate with commas."
        ),
    )

    _BY_KIND = {
        ToolSource.Kind.OPENAPI: ("document_url", "document_file", "document", "url"),
        ToolSource.Kind.MCP: ("url",),
        ToolSource.Kind.PLUGIN: ("package",),
    }
    _URL_HELP = {
        ToolSource.Kind.OPENAPI: gettext_lazy("Where the API is. Empty: the address in the document."),
        ToolSource.Kind.MCP: gettext_lazy("The MCP server's address with its path (streamable HTTP)."),
    }

    def __init__(self, *args: Any, kind: str, is_new: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kind = kind
        asked = {"title", *self._BY_KIND[ToolSource.Kind(kind)]}
        if kind != ToolSource.Kind.PLUGIN:
            asked.add("allowed_hosts")
            self.fields["url"].help_text = self._URL_HELP[ToolSource.Kind(kind)]
            self.fields["url"].required = kind == ToolSource.Kind.MCP
        for name in [n for n in self.fields if n not in asked]:
            del self.fields[name]
        if is_new:
            self.fields["name"] = forms.CharField(
                max_length=24,
                help_text=_(
                    "Lower-case letters, digits and hyphens. Tool names start with it, rules use it, and it can't be changed later."
                ),
            )
            self.order_fields(["name", "title"])

    def clean_document_file(self) -> str:
        """Return the text of the file."""
        found = self.cleaned_data.get("document_file")
        if not found:
            return ""
        if found.size > MAX_DOCUMENT:
            raise forms.ValidationError(
                _("A document has at most %(most)s bytes.") % {"most": number_told(MAX_DOCUMENT)}
            )
        try:
            return str(found.read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise forms.ValidationError(
                _("The file isn't UTF-8 text. Save it as UTF-8 and try again.")
            ) from error

    def values(self) -> dict[str, Any]:
        """Return what ``source_create`` and ``source_update`` take."""
        data: dict[str, Any] = dict(self.cleaned_data)
        uploaded = data.pop("document_file", "")
        if uploaded:
            data["document"] = uploaded
        if "allowed_hosts" in data:
            data["allowed_hosts"] = [h.strip() for h in data["allowed_hosts"].split(",") if h.strip()]
        if "package" in data:
            data["settings"] = {"plugin": data.pop("package")}
        if data.get("document") == "" and not self.fields.get("name"):
            data.pop("document")  # an empty text keeps the stored one
        return data

    def refuse(self, error: DomainError) -> None:
        """Show what a service refused at the fields that it names."""
        for field, messages in error.data.get("fields", {}).items():
            name = {"settings": "package", "source": "url"}.get(field, field)
            self.add_error(name if name in self.fields else None, messages)
        if not error.data.get("fields"):
            self.add_error(None, error.message)

    @staticmethod
    def initial_of(row: ToolSource) -> dict[str, Any]:
        """Return what the form shows of a source; its document is too long for that."""
        return {
            "title": row.title,
            "url": row.url,
            "document_url": row.document_url,
            "allowed_hosts": ", ".join(row.allowed_hosts),
            "package": row.settings.get("plugin", ""),
        }


class CredentialForm(forms.Form):
    """What a source's calls prove themselves with. The secret goes in and is never shown."""

    placement = forms.ChoiceField(label=gettext_lazy("Sent as"), choices=ToolCredential.Placement.choices)
    parameter = forms.CharField(
        label=gettext_lazy("Name"),
        required=False,
        max_length=80,
        help_text=gettext_lazy(
            "Name of the header or query parameter, or the user name; empty for a bearer token."
        ),
    )
    secret = forms.CharField(
        label=gettext_lazy("Secret"),
        max_length=MAX_SECRET,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=gettext_lazy("Encrypted, sent only to the address's host, and never shown again."),
    )


class ContractTestForm(forms.Form):
    """A sample call and what its result must look like."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    arguments = forms.JSONField(
        label=gettext_lazy("Arguments"),
        required=False,
        initial=dict,
        widget=Textarea(attrs={"rows": 5, "class": "mono", "spellcheck": "false"}),
        help_text=gettext_lazy("One JSON object. The test makes a real call with it."),
    )
    expected = forms.JSONField(
        label=gettext_lazy("The result must fit"),
        required=False,
        initial=dict,
        widget=Textarea(attrs={"rows": 5, "class": "mono", "spellcheck": "false"}),
        help_text=gettext_lazy("A JSON Schema; {} asks only that the call succeeds."),
    )

    def values(self) -> dict[str, Any]:
        """Return what ``contract_test_set`` takes."""
        data = self.cleaned_data
        return {
            "name": data["name"],
            "arguments": data["arguments"] or {},
            "expected": data["expected"] or {},
        }

    @staticmethod
    def initial_of(row: ContractTest) -> dict[str, Any]:
        """Return what the form shows of a test."""
        return {"name": row.name, "arguments": row.arguments, "expected": row.expected}


def pretty(value: Any) -> str:
    """Return a JSON value as text for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
