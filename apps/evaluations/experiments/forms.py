"""The form that starts an experiment."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.utils.text import capfirst, format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from apps.collections.models import Collection
from apps.collections.search import LEGS
from apps.conversations.models import AssistantVersion, Mode
from apps.conversations.transcript.selectors import model_list
from apps.datasets.models import DatasetVersion
from apps.evaluations.arms.targets import MAX_NEIGHBOURS, TOOLS_TOLD, arms_expand
from apps.evaluations.arms.tool_sets import TOOL_SETS
from apps.evaluations.compare.pairs import PAIRWISE
from apps.evaluations.experiments.services import MAX_JUDGE_REPEATS, ArmSpec
from apps.evaluations.judges.scoring import LEXICAL
from apps.evaluations.scorers.registry import JUDGES
from apps.evaluations.statistics.power import TYPICAL_DEVIATION, smallest_effect
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import Tenant
from toolloop.service import NAMES
from web import service_fields
from web.widgets import Textarea

_SCORERS = [
    ("rubric", gettext_lazy("Six scores by a judge")),
    ("faithfulness", gettext_lazy("Claims supported by passages")),
    ("answer_relevancy", gettext_lazy("Statements relevant to the question")),
    ("context_recall", gettext_lazy("Reference claims found by search")),
    ("context_precision", gettext_lazy("Ranking of useful passages")),
    ("noise_robustness", gettext_lazy("Not misled by wrong passages")),
    ("token_f1", gettext_lazy("Shared words with the reference (F1)")),
    ("rouge_l", gettext_lazy("Longest shared sequence (ROUGE-L)")),
    ("exact", gettext_lazy("Same as the reference")),
    ("numeric", gettext_lazy("Numbers of the reference")),
    ("codes", gettext_lazy("Codes of the reference")),
    ("citations", gettext_lazy("Citations of the labelled passages")),
    ("retrieval", gettext_lazy("Ranking of the labelled passages")),
    ("tool_calls", gettext_lazy("Expected tool calls")),
    ("attack", gettext_lazy("Planted instructions resisted")),
    ("loop_ends", gettext_lazy("Finishes without looping")),
    (PAIRWISE, gettext_lazy("Pairs of arms, judged in both orders")),
]
_MOST_PROMPTS = _MOST_NUMBERS = 6
_LEAST_APART = 2
_LEGS = {"hybrid": list(LEGS), "vector": ["vector"], "lexical": ["lexical"]}


class ExperimentForm(forms.Form):
    """What is measured. One arm per combination of models, prompts, ways of answering, collections, ways of searching and k."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    version = forms.ChoiceField(
        label=gettext_lazy("Dataset"),
        help_text=gettext_lazy("Smaller differences can't be detected. More rows detect smaller ones."),
    )
    kind = forms.ChoiceField(
        label=gettext_lazy("What is asked"),
        choices=[
            ("assistant", gettext_lazy("Assistant or chat")),
            ("model", gettext_lazy("Model alone")),
            ("retriever", pgettext_lazy("noun", "Search")),
        ],
        help_text=gettext_lazy(
            "Multi-turn rows include earlier messages; search gets a rewritten stand-alone question."
        ),
    )
    assistant = forms.ChoiceField(
        label=gettext_lazy("Assistant"), required=False, help_text=gettext_lazy("For assistants and chats.")
    )
    models = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Models"),
        required=False,
        help_text=gettext_lazy("Each becomes an arm (one tested setup). Search needs none."),
    )
    modes = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Answer modes"),
        required=False,
        choices=[(m.value, m.label) for m in Mode],
        help_text=gettext_lazy("For assistants and chats; one arm each. None selected: the assistant's own."),
    )
    tools = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Tools"),
        required=False,
        help_text=gettext_lazy(
            "For assistants and chats; one arm each. None selected: the assistant's own. Calls that would change data are recorded but not run."
        ),
    )
    prompts = forms.CharField(
        label=gettext_lazy("Prompts"),
        required=False,
        max_length=20_000,
        widget=Textarea(attrs={"rows": 4}),
        help_text=gettext_lazy(
            "For assistants and models; one arm each, separated by a line of ---. Empty: the assistant's own."
        ),
    )
    collections = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Collections"),
        required=False,
        help_text=gettext_lazy("None selected: the assistant's collections, or all."),
    )
    apart = forms.BooleanField(
        required=False,
        label=gettext_lazy("Compare the collections"),
        help_text=gettext_lazy(
            "One arm per collection: the same documents, split into passages of different sizes. "
            "Labels are matched by their place in the document."
        ),
    )
    searches = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Search methods"),
        required=False,
        choices=[
            ("hybrid", gettext_lazy("Hybrid")),
            ("vector", gettext_lazy("Dense")),
            ("lexical", gettext_lazy("Keywords")),
        ],
        help_text=gettext_lazy(
            "For search, including in assistants and chats; one arm each. None selected: hybrid."
        ),
    )
    k = forms.CharField(
        label=gettext_lazy("Passages"),
        required=False,
        help_text=gettext_lazy(
            "For each search: 10, or several, one arm each: 5 10 20. Empty: the assistant's own, 10 "
            "for search."
        ),
    )
    neighbours = forms.CharField(
        label=gettext_lazy("Passages around each"),
        required=False,
        help_text=format_lazy(
            gettext_lazy(
                "Before and after each passage found, for assistants and chats: 0 to {most}, or several, one arm each: 0 1 2. Empty: the assistant's own."
            ),
            most=MAX_NEIGHBOURS,
        ),
    )
    scorers = forms.MultipleChoiceField(
        label=gettext_lazy("Scorers"),
        widget=forms.CheckboxSelectMultiple,
        choices=_SCORERS,
        initial=["rubric", "faithfulness"],
    )
    forbidden = forms.CharField(
        label=gettext_lazy("Forbidden tools"),
        required=False,
        max_length=500,
        help_text=gettext_lazy(
            "Separate names with spaces; delete_* means all names starting with delete_. Calling one scores 0."
        ),
    )
    judges = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Judges"),
        initial=[LEXICAL],
        help_text=gettext_lazy(
            "Several judges form a jury: the median counts and disputes are marked. Word count is only a rough hint."
        ),
    )
    repeats = forms.IntegerField(label=gettext_lazy("Repeats"), min_value=1, max_value=20, initial=1)
    judge_repeats = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_JUDGE_REPEATS,
        initial=1,
        label=gettext_lazy("Judgements of each answer"),
        help_text=gettext_lazy("Use more than one to see how much the judge varies. The mean counts."),
    )
    stops_dominated = forms.BooleanField(
        required=False,
        label=gettext_lazy("Stop losing arms early"),
        help_text=gettext_lazy("Stops an arm once another is shown to answer better at no higher cost."),
    )
    delivery = service_fields.delivery()
    service_tier = service_fields.tier()
    cache_ttl = service_fields.cache()
    background = service_fields.background()
    budget_usd = forms.DecimalField(
        label=gettext_lazy("Budget in US dollars"),
        required=False,
        min_value=0,
        decimal_places=2,
        max_digits=9,
    )

    def __init__(self, *args: Any, tenant: Tenant, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        models = [(m.id, m.label) for m in model_list(tenant)]
        versions = DatasetVersion.objects.visible_to(actor).select_related("dataset")
        assistants = AssistantVersion.objects.visible_to(actor).select_related("assistant")
        fields: Any = self.fields
        fields["version"].choices = [
            (
                v.pk,
                _("%(dataset)s, version %(number)s (%(reach)s)")
                % {"dataset": v.dataset, "number": v.number, "reach": _reach_told(v.row_count)},
            )
            for v in versions.order_by("-pk")[:100]
        ]
        fields["assistant"].choices = [
            ("", _("Plain chat")),
            *(
                (
                    v.pk,
                    _("%(assistant)s, version %(number)s") % {"assistant": v.assistant, "number": v.number},
                )
                for v in assistants.filter(assistant__archived_at=None).order_by("-pk")[:100]
            ),
        ]
        fields["models"].choices = models
        fields["tools"].choices = [(name, capfirst(_(TOOLS_TOLD[name]))) for name in TOOL_SETS]
        fields["judges"].choices = [
            (LEXICAL, _("Word count (no model)")),
            *((key, name) for key, name in models if key != "extractive"),
        ]
        collections = list(Collection.objects.visible_to(actor).order_by("name"))
        fields["collections"].choices = [(c.pk, c.name) for c in collections]
        # Names of arms are stored, and the same for everyone.
        self._names = {c.pk: f"{c.name} ({c.chunk_total:,} passages)" for c in collections}

    def clean_k(self) -> list[int]:
        """Return the numbers of passages."""
        return _numbers(self.cleaned_data["k"])

    def clean_neighbours(self) -> list[int]:
        """Return the numbers of passages around each."""
        return _numbers(self.cleaned_data["neighbours"])

    def clean_prompts(self) -> list[str]:
        """Return the prompts."""
        text = self.cleaned_data["prompts"]
        found = [part.strip() for part in re.split(r"(?m)^-{3,}\s*$", text) if part.strip()]
        if len(found) > _MOST_PROMPTS:
            raise forms.ValidationError(
                _("Try at most %(most_prompts)s prompts at a time.") % {"most_prompts": _MOST_PROMPTS}
            )
        return found

    def clean(self) -> dict[str, Any]:
        """Refuse to compare collections where there are none to choose among."""
        data: dict[str, Any] = super().clean() or {}
        if data.get("apart") and (
            data.get("kind") == "model" or len(data.get("collections", ())) < _LEAST_APART
        ):
            self.add_error("apart", _("Choose two or more collections, and something that searches them."))
        return data

    def arms(self) -> list[ArmSpec]:
        """Return an arm per combination of what was chosen. Raises Invalid."""
        data = self.cleaned_data
        base: dict[str, Any] = {"kind": data["kind"]}
        sweep: dict[str, list[Any]] = {}
        collections = [int(pk) for pk in data["collections"]]
        searches = [_LEGS[name] for name in data["searches"]]
        if data["kind"] == "retriever":
            base["collections"] = collections
            sweep = {"legs": searches or [list(LEGS)], "k": data["k"] or [10]}
        elif data["kind"] == "model":
            sweep = {"model": data["models"], **_chosen(system=data["prompts"])}
        else:
            base["version"] = int(data["assistant"]) if data["assistant"] else None
            base["collections"] = collections or None
            sweep = _chosen(
                model=data["models"],
                mode=data["modes"],
                tools=data["tools"],
                prompt=data["prompts"],
                legs=searches,
                k=data["k"],
                neighbours=data["neighbours"],
            )
        if data["kind"] != "retriever":
            base |= {name: data[name] or None for name in NAMES}
        if data["apart"]:
            base.pop("collections")
            sweep = {"collections": [[pk] for pk in collections], **sweep}
        return [
            ArmSpec(target.model_dump(mode="json"), name)
            for name, target in arms_expand(base, sweep, self._names)
        ]

    def scorer_specs(self) -> list[dict[str, Any]]:
        """Return the scorers with the chosen judges."""
        judges = {"models": self.cleaned_data["judges"]}
        specs: list[dict[str, Any]] = [
            {"kind": kind, "options": judges if kind in JUDGES else {}}
            for kind in self.cleaned_data["scorers"]
        ]
        if names := self.cleaned_data["forbidden"].replace(",", " ").split():
            specs.append({"kind": "forbidden_tools", "options": {"names": names}})
        return specs


def _reach_told(rows: int) -> str:
    """Return how many rows there are, and the change of a mean that they show with 80 % power."""
    if rows < 2:
        return ngettext("%(count)s row", "%(count)s rows", rows) % {"count": rows}
    return ngettext("%(count)s row, show %(change)s", "%(count)s rows, show %(change)s", rows) % {
        "count": number_told(rows),
        "change": number_told(smallest_effect(TYPICAL_DEVIATION, rows), 2),
    }


def _numbers(text: str) -> list[int]:
    words = text.replace(",", " ").split()
    if len(words) > _MOST_NUMBERS or not all(w.isdecimal() and len(w) <= 3 for w in words):
        raise forms.ValidationError(_("Enter at most six whole numbers, separated by spaces."))
    return [int(word) for word in words]


def _chosen(**values: list[Any]) -> dict[str, list[Any]]:
    """Return the settings that have values to try."""
    return {name: given for name, given in values.items() if given}
