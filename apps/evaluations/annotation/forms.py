"""The form of an annotation queue. It parses and shows; the services decide."""

from __future__ import annotations

from typing import Any

from django import forms

from apps.conversations.transcript.selectors import model_list
from apps.datasets.models import DatasetVersion
from apps.evaluations.annotation.selectors import grader_choices
from apps.evaluations.annotation.services import MAX_ITEMS, MAX_REVIEWS
from apps.evaluations.judges.scoring import LEXICAL
from apps.evaluations.results.selectors import experiment_list, rubric_versions
from tenancy.actors import Actor
from tenancy.models import Tenant

_MOST_CHOICES = 100


class QueueForm(forms.Form):
    """Which answers people grade, by what, and how many people each."""

    name = forms.CharField(max_length=120)
    source = forms.ChoiceField(label="Answers", help_text="From an experiment, or from a dataset's rows.")
    rubric = forms.TypedChoiceField(coerce=int, label="Rubric")
    reviews = forms.IntegerField(
        label="People per answer",
        min_value=1,
        max_value=MAX_REVIEWS,
        initial=2,
        help_text="Use two or more to see how far people agree.",
    )
    most = forms.IntegerField(
        label="Maximum answers",
        min_value=1,
        max_value=MAX_ITEMS,
        initial=100,
        help_text="Chosen at random. At least 20 are needed to judge a judge.",
    )
    disputed_first = forms.BooleanField(
        label="Disputed answers first",
        required=False,
        help_text="Starts with answers judges disagree on, most-asked topics first. Agreement is then "
        "measured on hard cases only.",
    )
    assignees = forms.TypedMultipleChoiceField(
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        label="Who grades",
        required=False,
        help_text="None selected: all members who can grade.",
    )
    judge = forms.ChoiceField(
        label="Judge of a dataset's answers",
        required=False,
        help_text="It grades the same answers, so it can be compared with people.",
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
            (LEXICAL, "Word count (no model)"),
            *((m.id, m.label) for m in model_list(tenant) if m.id != "extractive"),
        ]

    def chosen(self) -> tuple[str, int]:
        """Return ``experiment`` or ``version``, and its id."""
        kind, _, pk = self.cleaned_data["source"].partition("-")
        return kind, int(pk)
