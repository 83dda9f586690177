"""The form of a note."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy

from apps.conversations.models.memory import MAX_ENTRY
from web.widgets import Textarea


class EntryForm(forms.Form):
    """What to keep in mind."""

    text = forms.CharField(
        max_length=MAX_ENTRY,
        label=gettext_lazy("New note"),
        help_text=gettext_lazy("For example: “I work in customs. Keep answers short.”"),
        widget=Textarea(attrs={"rows": 2, "dir": "auto", "autocomplete": "off"}),
    )
