"""The form of a dataset. It parses and shows; the services decide."""

from __future__ import annotations

from django import forms

from apps.collections.display.forms import RefusableForm


class DatasetForm(RefusableForm):
    """Name of a dataset, and its rule for reviews."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    description = forms.CharField(required=False, max_length=2000, widget=forms.Textarea(attrs={"rows": 2}))
    needs_two_people = forms.BooleanField(
        required=False,
        label="Two people approve each row",
        help_text="A row counts as approved when two people have approved it.",
    )
