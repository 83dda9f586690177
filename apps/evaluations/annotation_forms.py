"""Forms of annotation and rubrics. They parse and show; the services decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory

from apps.conversations.selectors import model_list
from apps.datasets.models import DatasetVersion
from apps.datasets.rubric import LEVELS
from apps.evaluations.annotation_selectors import grader_choices
from apps.evaluations.judging import LEXICAL
from apps.evaluations.selectors import experiment_list, rubric_versions
from apps.evaluations.services.annotation import MAX_ITEMS, MAX_REVIEWS
from tenancy.actors import Actor
from tenancy.models import Tenant

_MOST_CHOICES = 100


class QueueForm(forms.Form):
    """Which answers people grade, by what, and how many people each."""

    name = forms.CharField(max_length=120)
    source = forms.ChoiceField(
        label="Answers", help_text="Of an experiment, or those that stand in a dataset's rows."
    )
    rubric = forms.TypedChoiceField(coerce=int, label="Rubric")
    reviews = forms.IntegerField(
        label="People per answer",
        min_value=1,
        max_value=MAX_REVIEWS,
        initial=2,
        help_text="Two or more show how far people agree.",
    )
    most = forms.IntegerField(
        label="Answers at most",
        min_value=1,
        max_value=MAX_ITEMS,
        initial=100,
        help_text="Drawn at random. 20 are the least that say anything about a judge.",
    )
    disputed_first = forms.BooleanField(
        label="Disputed answers first",
        required=False,
        help_text="Those about which judges disagree, and of these what people ask about most. The agreement is then that of hard cases.",
    )
    assignees = forms.TypedMultipleChoiceField(
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        label="Who grades",
        required=False,
        help_text="None chosen: all members who may.",
    )
    judge = forms.ChoiceField(
        label="Judge of a dataset's answers",
        required=False,
        help_text="It grades the same answers, so that it can be compared with people.",
    )
    instructions = forms.CharField(required=False, max_length=2_000, widget=forms.Textarea(attrs={"rows": 3}))

    def __init__(self, *args: Any, tenant: Tenant, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        versions = DatasetVersion.objects.visible_to(actor).select_related("dataset")
        fields["source"].choices = [
            (
                "Experiments",
                [(f"experiment-{e.pk}", e.name) for e in experiment_list(actor=actor)[:_MOST_CHOICES]],
            ),
            (
                "Datasets",
                [
                    (f"version-{v.pk}", f"{v.dataset}, version {v.number}")
                    for v in versions.order_by("-pk")[:_MOST_CHOICES]
                ],
            ),
        ]
        fields["rubric"].choices = [
            (v.pk, f"{v.rubric}, version {v.number}") for v in rubric_versions(actor=actor)
        ]
        fields["assignees"].choices = grader_choices(actor=actor)
        fields["judge"].choices = [
            (LEXICAL, "Count words, no model"),
            *((m.id, m.label) for m in model_list(tenant) if m.id != "extractive"),
        ]

    def chosen(self) -> tuple[str, int]:
        """Return ``experiment`` or ``version``, and its id."""
        kind, _, pk = self.cleaned_data["source"].partition("-")
        return kind, int(pk)


class RubricForm(forms.Form):
    """A rubric's name, or the reason of its change."""

    name = forms.CharField(max_length=120)
    note = forms.CharField(label="What has changed", required=False, max_length=200)

    def __init__(self, *args: Any, is_new: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["note" if is_new else "name"]


class CriterionForm(forms.Form):
    """One criterion; without a name it is left out."""

    name = forms.CharField(required=False, max_length=60, help_text="Letters, digits and _.")
    question = forms.CharField(required=False, max_length=500)
    level_1 = forms.CharField(required=False, max_length=300, label="1, worst")
    level_2 = forms.CharField(required=False, max_length=300, label="2")
    level_3 = forms.CharField(required=False, max_length=300, label="3")
    level_4 = forms.CharField(required=False, max_length=300, label="4")
    level_5 = forms.CharField(required=False, max_length=300, label="5, best")
    weight = forms.FloatField(required=False, initial=1, min_value=0, max_value=100)
    minimum = forms.IntegerField(
        required=False, min_value=1, max_value=LEVELS, help_text="Below it an answer fails."
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
