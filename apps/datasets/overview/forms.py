"""The form of a dataset. It parses and shows; the services decide."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy

from apps.collections.display.forms import RefusableForm
from web.widgets import Textarea


class DatasetForm(RefusableForm):
    """Name of a dataset, and its rule for reviews."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=120, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=2000,
        widget=Textarea(attrs={"rows": 2}),
    )
    needs_two_people = forms.BooleanField(
        required=False,
        label=gettext_lazy("Two people approve each row"),
        help_text=gettext_lazy("A row counts as approved when two people have approved it."),
    )
