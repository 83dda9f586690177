"""Forms of curation. They parse and show; the services decide."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.datasets.formats import FORMATS
from apps.datasets.models import Split
from apps.datasets.records.record import MAX_QUESTION
from basics.errors import DomainError
from web.forms import add_refusal
from web.widgets import Textarea


class _Form(forms.Form):
    def refuse(self, error: DomainError) -> None:
        """Show why a service refused."""
        add_refusal(self, error)


class ExportForm(_Form):
    """Which version, in which form."""

    version = forms.TypedChoiceField(label=gettext_lazy("Version"), coerce=int)
    form = forms.ChoiceField(
        label=gettext_lazy("Format"),
        choices=[(f.name, gettext_lazy(f.title)) for f in FORMATS.values() if f.is_export],
    )
    split = forms.ChoiceField(
        label=gettext_lazy("Rows"), required=False, choices=[("", gettext_lazy("All rows")), *Split.choices]
    )

    def __init__(self, *args: Any, numbers: list[int], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices: Any = [(n, _("Version %(n)s") % {"n": n}) for n in numbers]
        self.fields["version"].choices = choices  # type: ignore[attr-defined]


class ImportForm(_Form):
    """Which file, in which form."""

    file = forms.FileField(label=gettext_lazy("File"))
    form = forms.ChoiceField(
        label=gettext_lazy("Format"), choices=[(f.name, gettext_lazy(f.title)) for f in FORMATS.values()]
    )
    is_trial = forms.BooleanField(
        label=gettext_lazy("Try it first"),
        required=False,
        initial=True,
        help_text=gettext_lazy("Reads the whole file and shows a report, but adds no rows."),
    )


class SplitsForm(_Form):
    """Shares of the splits, in percent."""

    train = forms.IntegerField(min_value=0, max_value=100, initial=80, label=gettext_lazy("Train %"))
    validation = forms.IntegerField(
        min_value=0, max_value=100, initial=10, label=gettext_lazy("Validation %")
    )
    test = forms.IntegerField(min_value=0, max_value=100, initial=10, label=gettext_lazy("Test %"))
    seed = forms.IntegerField(label=gettext_lazy("Seed"), min_value=0, max_value=2**31 - 1, initial=0)

    def shares(self) -> dict[str, float]:
        """Return the shares as parts of 1."""
        return {name: self.cleaned_data[name] / 100 for name in Split.values}


class RowForm(_Form):
    """What a reviewer may change of a row at once."""

    question = forms.CharField(
        label=gettext_lazy("Question"), max_length=MAX_QUESTION, widget=Textarea(attrs={"rows": 3})
    )
    answer = forms.CharField(label=gettext_lazy("Answer"), required=False, widget=Textarea(attrs={"rows": 8}))
