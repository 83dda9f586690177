"""Forms of tools. They parse and show; the services decide."""

from __future__ import annotations

from typing import Any

from django import forms

from apps.tools.models import ToolEntry
from apps.tools.services.entries import MAX_TIMEOUT_S


class EntryForm(forms.Form):
    """What a workspace states about a tool. Empty fields leave what the tool says of itself."""

    title = forms.CharField(required=False, max_length=120)
    description = forms.CharField(
        required=False,
        max_length=8_000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What a model reads in place of the tool's own description.",
    )
    category = forms.CharField(required=False, max_length=60)
    tags = forms.CharField(required=False, help_text="Comma-separated.")
    cost_hint = forms.CharField(
        label="What a call costs", required=False, max_length=60, help_text="For people, in words."
    )
    timeout_s = forms.FloatField(
        label="Time limit",
        required=False,
        help_text=f"Seconds a call may take, at most {MAX_TIMEOUT_S:g}; empty keeps the tool's own.",
    )

    def changes(self) -> dict[str, Any]:
        """Return what ``entry_set`` takes."""
        data: dict[str, Any] = dict(self.cleaned_data)
        return data | {"tags": [t.strip() for t in data["tags"].split(",") if t.strip()]}

    @staticmethod
    def initial_of(entry: ToolEntry) -> dict[str, Any]:
        """Return what the form shows of an entry."""
        fields = ("title", "description", "category", "cost_hint", "timeout_s")
        return {name: getattr(entry, name) for name in fields} | {"tags": ", ".join(entry.tags)}
