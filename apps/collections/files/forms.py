"""The form of the rules for a collection's files."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from apps.collections.display.forms import RefusableForm
from apps.collections.tree.rules import RANGES, FileRules
from web.widgets import Textarea

_MB = Decimal(1_000_000)

_SIZES = ("max_file_bytes", "max_total_bytes")

_PATTERNS = ("allow", "deny")


class FileRulesForm(RefusableForm):
    """What may be seen and written among a collection's files; sizes in megabytes, exact to the byte."""

    allow = forms.CharField(
        label=gettext_lazy("Allowed paths"),
        required=False,
        widget=Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
        help_text=gettext_lazy("One pattern per line, as in .gitignore: src/, *.py. Empty allows all."),
    )
    deny = forms.CharField(
        label=gettext_lazy("Blocked paths"),
        required=False,
        widget=Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
        help_text=gettext_lazy("Neither shown nor written, even if allowed above: secrets/, *.pem."),
    )
    show_hidden = forms.BooleanField(
        label=gettext_lazy("Hidden files"),
        required=False,
        help_text=gettext_lazy("Show and write names that begin with a dot. The folder .git stays hidden."),
    )
    read_only = forms.BooleanField(
        label=gettext_lazy("Read only"),
        required=False,
        help_text=gettext_lazy("Neither people nor models can change files here."),
    )
    max_file_bytes = forms.DecimalField(
        label=gettext_lazy("Largest file that tools can write, in MB"),
        min_value=0,
        max_value=RANGES["max_file_bytes"][1] / _MB,
        decimal_places=6,
    )
    max_total_bytes = forms.DecimalField(
        label=gettext_lazy("All files together, in MB"),
        min_value=0,
        max_value=RANGES["max_total_bytes"][1] / _MB,
        decimal_places=6,
    )
    max_files = forms.IntegerField(
        label=gettext_lazy("Maximum number of files"),
        min_value=RANGES["max_files"][0],
        max_value=RANGES["max_files"][1],
    )

    @classmethod
    def of(cls, rules: FileRules) -> FileRulesForm:
        """Return the form as a collection's rules fill it."""
        values: dict[str, Any] = rules.as_json()
        for name in _PATTERNS:
            values[name] = "\n".join(values[name])
        for name in _SIZES:
            values[name] = f"{Decimal(values[name]) / _MB:f}"
        return cls(initial=values)

    @property
    def rules(self) -> dict[str, Any]:
        """Return what was sent, as ``FileRules`` reads it."""
        values = dict(self.cleaned_data)
        for name in _PATTERNS:
            lines = (line.strip() for line in values[name].splitlines())
            values[name] = [line for line in lines if line]
        for name in _SIZES:
            values[name] = int(values[name] * _MB)
        return values
