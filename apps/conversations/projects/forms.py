"""The form of a project. It parses and shows; the services decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from apps.conversations.models import Sharing
from apps.conversations.projects.services import MAX_INSTRUCTIONS
from basics.errors import DomainError
from web.widgets import Textarea


class ProjectForm(forms.Form):
    """What a project is made of. Without other members to see, it can't be shared with chosen ones."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=120, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    instructions = forms.CharField(
        label=gettext_lazy("Instructions"),
        required=False,
        max_length=MAX_INSTRUCTIONS,
        widget=Textarea(attrs={"rows": 6}),
        help_text=gettext_lazy(
            "Given to the model with each question in this project, after the assistant's own."
        ),
    )
    collections = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Collections"),
        required=False,
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy(
            "New conversations begin with these; leave it empty for all. People never see more through a project than they can "
            "see themselves."
        ),
    )
    sharing = forms.ChoiceField(
        label=gettext_lazy("Who sees this project"),
        choices=Sharing.choices,
        widget=forms.RadioSelect,
        help_text=gettext_lazy(
            "They see its name, instructions and collections, and ask in conversations of their own. No one sees "
            "someone else's conversation."
        ),
    )
    members = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Chosen members"),
        required=False,
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(
        self,
        *args: Any,
        collections: Sequence[tuple[int, str]],
        people: Sequence[tuple[int, str]],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        for name, choices in (("collections", collections), ("members", people)):
            self.fields[name].choices = choices  # type: ignore[attr-defined]
            if not choices:
                del self.fields[name]
        if not people:
            offered = [choice for choice in Sharing.choices if choice[0] != Sharing.MEMBERS]
            self.fields["sharing"].choices = offered  # type: ignore[attr-defined]

    def values(self) -> dict[str, Any]:
        """Return what was changed, for ``project_change``: an empty choice that was left alone is no choice of all."""
        return {name: self.cleaned_data[name] for name in self.changed_data}

    def refuse(self, error: DomainError) -> None:
        """Show what a service refused at the fields it names, else above the form."""
        found: dict[str, list[str]] = error.data.get("fields", {})
        known = {name: said for name, said in found.items() if name in self.fields}
        for name, said in known.items():
            self.add_error(name, said)
        if not known:
            self.add_error(None, error.message)
