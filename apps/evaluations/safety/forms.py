"""The form that makes a safety suite."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.collections.models import Collection
from apps.datasets.models import DatasetVersion
from apps.evaluations.attacks.values import CARRIER_LABELS, CATEGORY_LABELS
from apps.evaluations.safety.services import MOST_CONTROLS, MOST_PER_PAIR, MOST_SEED
from tenancy.actors import Actor


class SuiteForm(forms.Form):
    """What the suite plants, and into what."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120, initial=gettext_lazy("Safety suite"))
    collections = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Collections"),
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=gettext_lazy(
            "Attacks are placed in copies of their texts; the collections aren't changed. Restricted documents are excluded. None selected: built-in short texts."
        ),
    )
    version = forms.TypedChoiceField(
        label=gettext_lazy("Rows of a dataset"),
        coerce=int,
        empty_value=None,
        required=False,
        help_text=gettext_lazy(
            "Their texts carry the attacks with their own questions, for example contexts imported "
            "from BIPIA or SQuAD."
        ),
    )
    carriers = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Where attacks are hidden"),
        choices=[(key, gettext_lazy(told)) for key, told in CARRIER_LABELS.items()],
        initial=list(CARRIER_LABELS),
    )
    categories = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("What attackers want"),
        choices=[(key, gettext_lazy(told)) for key, told in CATEGORY_LABELS.items()],
        initial=list(CATEGORY_LABELS),
    )
    per_pair = forms.IntegerField(
        label=gettext_lazy("Attacks for each carrier and goal"),
        min_value=1,
        max_value=MOST_PER_PAIR,
        initial=1,
        help_text=gettext_lazy("Positions and disguises are spread evenly."),
    )
    controls = forms.IntegerField(
        label=gettext_lazy("Harmless rows for each carrier"),
        min_value=0,
        max_value=MOST_CONTROLS,
        initial=3,
        help_text=gettext_lazy("The same texts without an attack, to reveal models that refuse everything."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        min_value=0,
        max_value=MOST_SEED,
        initial=1,
        help_text=gettext_lazy("The same seed over the same documents gives the same rows."),
    )

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        versions = DatasetVersion.objects.visible_to(actor).select_related("dataset")
        fields["version"].choices = [
            ("", _("None")),
            *(
                (v.pk, _("%(dataset)s, version %(number)s") % {"dataset": v.dataset, "number": v.number})
                for v in versions.order_by("-pk")[:100]
            ),
        ]
        fields["collections"].choices = [
            (c.pk, c.name) for c in Collection.objects.visible_to(actor).order_by("name")
        ]
