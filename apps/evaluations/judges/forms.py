"""The form of a rubric, criterion by criterion. It parses and shows; the services decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory
from django.utils.translation import gettext_lazy

from apps.datasets.records.rubric import LEVELS


class RubricForm(forms.Form):
    """A rubric's name, or the reason of its change."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    note = forms.CharField(label=gettext_lazy("What has changed"), required=False, max_length=200)

    def __init__(self, *args: Any, is_new: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["note" if is_new else "name"]


class CriterionForm(forms.Form):
    """One criterion; without a name it is left out."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        required=False,
        max_length=60,
        help_text=gettext_lazy("Letters, digits and _."),
    )
    question = forms.CharField(label=gettext_lazy("Question"), required=False, max_length=500)
    level_1 = forms.CharField(required=False, max_length=300, label=gettext_lazy("1, worst"))
    level_2 = forms.CharField(required=False, max_length=300, label="2")
    level_3 = forms.CharField(required=False, max_length=300, label="3")
    level_4 = forms.CharField(required=False, max_length=300, label="4")
    level_5 = forms.CharField(required=False, max_length=300, label=gettext_lazy("5, best"))
    weight = forms.FloatField(
        label=gettext_lazy("Weight"), required=False, initial=1, min_value=0, max_value=100
    )
    minimum = forms.IntegerField(
        label=gettext_lazy("Minimum"),
        required=False,
        min_value=1,
        max_value=LEVELS,
        help_text=gettext_lazy("Answers below this level fail."),
    )


def criteria_forms(
    data: Any = None, *, criteria: Sequence[Mapping[str, Any]] = ()
) -> BaseFormSet[CriterionForm]:
    """Return the forms of a rubric's criteria and an empty one, or those that were posted."""
    factory = formset_factory(CriterionForm, extra=1, max_num=20, absolute_max=25)
    initial = [
        {
            **{name: one.get(name) for name in ("name", "question", "weight", "minimum")},
            **{f"level_{n}": text for n, text in enumerate(one["anchors"], 1)},
        }
        for one in criteria
    ]
    return factory(data, initial=initial, prefix="c")


def criteria_of(formset: BaseFormSet[CriterionForm]) -> list[dict[str, Any]]:
    """Return the criteria that were filled in; the service checks them."""
    found = []
    for form in formset.forms:
        data = form.cleaned_data
        if not data.get("name", "").strip():
            continue
        found.append(
            {
                "name": data["name"].strip(),
                "question": data["question"],
                "anchors": tuple(data[f"level_{n}"] for n in range(1, LEVELS + 1)),
                "weight": 1.0 if data["weight"] is None else data["weight"],
                "minimum": data["minimum"],
            }
        )
    return found
