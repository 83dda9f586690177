"""The form of an annotation queue. It parses and shows; the services decide."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.conversations.transcript.selectors import model_list
from apps.datasets.models import DatasetVersion
from apps.evaluations.annotation.selectors import grader_choices
from apps.evaluations.annotation.services import MAX_ITEMS, MAX_REVIEWS
from apps.evaluations.judges.scoring import LEXICAL
from apps.evaluations.results.selectors import experiment_list, rubric_versions
from tenancy.actors import Actor
from tenancy.models import Tenant
from web.widgets import Textarea

_MOST_CHOICES = 100


class QueueForm(forms.Form):
    """Which answers people grade, by what, and how many people each."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    source = forms.ChoiceField(
        label=gettext_lazy("Answers"), help_text=gettext_lazy("From an experiment, or from a dataset's rows.")
    )
    rubric = forms.TypedChoiceField(
        coerce=int,
        label=gettext_lazy("Rubric"),
        help_text=gettext_lazy(
            "Written criteria, each with five described levels. Judges and people grade by the same."
        ),
    )
    reviews = forms.IntegerField(
        label=gettext_lazy("People per answer"),
        min_value=1,
        max_value=MAX_REVIEWS,
        initial=2,
        help_text=gettext_lazy("Use two or more to see how far people agree."),
    )
    most = forms.IntegerField(
        label=gettext_lazy("Maximum answers"),
        min_value=1,
        max_value=MAX_ITEMS,
        initial=100,
        help_text=gettext_lazy("Chosen at random. At least 20 are needed to judge a judge."),
    )
    disputed_first = forms.BooleanField(
        label=gettext_lazy("Disputed answers first"),
        required=False,
        help_text=gettext_lazy(
            "Starts with answers judges disagree on, most-asked topics first. Agreement is then "
            "measured on hard cases only."
        ),
    )
    assignees = forms.TypedMultipleChoiceField(
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Who grades"),
        required=False,
        help_text=gettext_lazy("None selected: all members who can grade."),
    )
    judge = forms.ChoiceField(
        label=gettext_lazy("Judge of a dataset's answers"),
        required=False,
        help_text=gettext_lazy("It grades the same answers, so it can be compared with people."),
    )
    instructions = forms.CharField(
        label=gettext_lazy("Instructions"),
        required=False,
        max_length=2_000,
        widget=Textarea(attrs={"rows": 3}),
    )

    def __init__(self, *args: Any, tenant: Tenant, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        versions = DatasetVersion.objects.visible_to(actor).select_related("dataset")
        fields["source"].choices = [
            (
                _("Experiments"),
                [(f"experiment-{e.pk}", e.name) for e in experiment_list(actor=actor)[:_MOST_CHOICES]],
            ),
            (
                _("Datasets"),
                [
                    (
                        f"version-{v.pk}",
                        _("%(dataset)s, version %(number)s") % {"dataset": v.dataset, "number": v.number},
                    )
                    for v in versions.order_by("-pk")[:_MOST_CHOICES]
                ],
            ),
        ]
        fields["rubric"].choices = [
            (v.pk, _("%(rubric)s, version %(number)s") % {"rubric": v.rubric, "number": v.number})
            for v in rubric_versions(actor=actor)
        ]
        fields["assignees"].choices = grader_choices(actor=actor)
        fields["judge"].choices = [
            (LEXICAL, _("Word count (no model)")),
            *((m.id, m.label) for m in model_list(tenant) if m.id != "extractive"),
        ]

    def chosen(self) -> tuple[str, int]:
        """Return ``experiment`` or ``version``, and its id."""
        kind, _dash, pk = self.cleaned_data["source"].partition("-")
        return kind, int(pk)
