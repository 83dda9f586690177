"""The form of a prompt. It parses and shows; the services decide."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from apps.conversations.prompts.services import MAX_DESCRIPTION, MAX_NAME, MAX_TEXT
from web.widgets import Textarea


class PromptForm(forms.Form):
    """A prompt; ``can_share`` says whether sharing is offered."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME,
        help_text=gettext_lazy("You find it under this name when you type / in a message."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"}),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=MAX_DESCRIPTION,
        help_text=gettext_lazy("What it is good for, in a sentence."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "dir": "auto"}),
    )
    text = forms.CharField(
        label=gettext_lazy("Text"),
        max_length=MAX_TEXT,
        help_text=gettext_lazy(
            "Write {name} where something is filled in each time, for example {country}. You are asked for it "
            "before the text is inserted."
        ),
        widget=Textarea(attrs={"rows": 10, "dir": "auto"}),
    )
    is_shared = forms.BooleanField(
        label=gettext_lazy("Share with the workspace"),
        required=False,
        help_text=gettext_lazy("Every member can use it. Members with write access can change it."),
    )

    def __init__(self, *args: Any, can_share: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not can_share:
            del self.fields["is_shared"]
