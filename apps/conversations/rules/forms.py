"""The forms of these rules."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy

from apps.conversations.rules.instructions import MAX_INSTRUCTIONS
from erasure.retention import MOST_DAYS
from web.widgets import Textarea


class RulesForm(forms.Form):
    """What a workspace says about its conversations."""

    keep_days = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_DAYS,
        label=gettext_lazy("Days to keep conversations after their last question"),
        help_text=gettext_lazy("0 keeps them forever. Empty: the server default."),
        widget=forms.NumberInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )
    makes_titles = forms.BooleanField(
        required=False,
        label=gettext_lazy("A model names each conversation after its first answer"),
        help_text=gettext_lazy(
            "Uses the model that gave the answer, a few hundred tokens each; counted on the usage page."
        ),
    )
    support_model = forms.CharField(
        required=False,
        max_length=120,
        label=gettext_lazy("Model that checks each answer against its sources"),
        help_text=gettext_lazy(
            "A second check after the answer, for example by openai/gpt-5-mini. It reads the answer "
            "and its passages and is counted on the usage page. Empty: words, names and numbers are compared "
            "without a model."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class InstructionsForm(forms.Form):
    """What a workspace says to models."""

    text = forms.CharField(
        required=False,
        max_length=MAX_INSTRUCTIONS,
        label=gettext_lazy("Instructions"),
        help_text=gettext_lazy(
            "Given to the model first in every conversation, whichever assistant answers. Empty: none."
        ),
        widget=Textarea(attrs={"rows": 12, "dir": "auto"}),
    )
    allows_memory = forms.BooleanField(
        required=False,
        label=gettext_lazy("People can have a memory"),
        help_text=gettext_lazy(
            "Off: no model is given any notes. No notes are deleted, and only their owners can see them."
        ),
    )
