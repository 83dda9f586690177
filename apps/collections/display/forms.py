"""Forms that show on their fields what a service refuses."""

from __future__ import annotations

from django import forms

from basics.errors import DomainError


class RefusableForm(forms.Form):
    """A form that can show what a service refused."""

    def refuse(self, error: DomainError) -> None:
        """Show what a service refused, at the fields it names or above the form."""
        fields = error.data.get("fields") or {}
        known = {name: texts for name, texts in fields.items() if name in self.fields}
        for name, texts in known.items():
            self.add_error(name, list(texts))
        if not known:
            self.add_error(None, error.message)
