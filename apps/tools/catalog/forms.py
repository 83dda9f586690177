"""Forms of the tool catalog. They parse and show; the services decide."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.tools.catalog.services import MAX_TIMEOUT_S
from apps.tools.models import ToolEntry, Toolkit
from basics.texts import number_told
from web.widgets import Textarea


class EntryForm(forms.Form):
    """What a workspace states about a tool. Empty fields leave what the tool says of itself."""

    title = forms.CharField(label=gettext_lazy("Title"), required=False, max_length=120)
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=8_000,
        widget=Textarea(attrs={"rows": 4}),
        help_text=gettext_lazy("What models read instead of the tool's own description."),
    )
    category = forms.CharField(label=gettext_lazy("Category"), required=False, max_length=60)
    tags = forms.CharField(
        label=gettext_lazy("Tags"), required=False, help_text=gettext_lazy("Comma-separated.")
    )
    cost_hint = forms.CharField(
        label=gettext_lazy("What a call costs"),
        required=False,
        max_length=60,
        help_text=gettext_lazy("Shown to people, in words."),
    )
    timeout_s = forms.FloatField(
        label=gettext_lazy("Time limit"),
        required=False,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["timeout_s"].help_text = _(
            "Maximum seconds per call, at most %(most)s; empty keeps the tool's own."
        ) % {"most": number_told(MAX_TIMEOUT_S, None)}

    def changes(self) -> dict[str, Any]:
        """Return what ``entry_set`` takes."""
        data: dict[str, Any] = dict(self.cleaned_data)
        return data | {"tags": [t.strip() for t in data["tags"].split(",") if t.strip()]}

    @staticmethod
    def initial_of(entry: ToolEntry) -> dict[str, Any]:
        """Return what the form shows of an entry."""
        fields = ("title", "description", "category", "cost_hint", "timeout_s")
        return {name: getattr(entry, name) for name in fields} | {"tags": ", ".join(entry.tags)}


class ToolkitForm(forms.Form):
    """A named set of tools."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    description = forms.CharField(label=gettext_lazy("Description"), required=False, max_length=2_000)
    tools = forms.CharField(
        label=gettext_lazy("Tools"),
        widget=Textarea(attrs={"rows": 5}),
        help_text=gettext_lazy("Tool names, one per line."),
    )

    def values(self) -> dict[str, Any]:
        """Return what ``toolkit_set`` takes."""
        data = self.cleaned_data
        return {
            "name": data["name"],
            "description": data["description"],
            "tools": [n for n in map(str.strip, data["tools"].splitlines()) if n],
        }

    @staticmethod
    def initial_of(kit: Toolkit | None) -> dict[str, Any]:
        """Return what the form shows of a toolkit, nothing for a new one."""
        if kit is None:
            return {}
        names = "\n".join(member.tool_name for member in kit.members.all())
        return {"name": kit.name, "description": kit.description, "tools": names}
