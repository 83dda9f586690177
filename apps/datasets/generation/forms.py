"""The form that starts a generation."""

from __future__ import annotations

from typing import Any

from django import forms

from apps.collections.display.forms import RefusableForm
from apps.datasets.generation.settings import MADE_TYPES, MAX_ROWS, MAX_TURNS, Settings
from apps.datasets.models import Difficulty
from batches.delivery import Delivery
from toolloop.service import NAMES
from web import service_fields

_DEFAULTS = Settings(collections=())


class GenerateForm(RefusableForm):
    """What rows to make.

    Args:
        collections: (id, name) of those that can be asked about.
        models: (routing name, label).
    """

    collections = forms.TypedMultipleChoiceField(
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        help_text="Documents that are limited to some people are left out: whoever reads the dataset reads their words.",
    )
    model = forms.ChoiceField(help_text="Without a language model, rules make the rows, and say so.")
    judge_model = forms.ChoiceField(
        required=False,
        label="Judge",
        help_text="Selects questions and scores answers; another model than the writer judges more fairly.",
    )
    delivery = service_fields.delivery()
    rows = forms.IntegerField(min_value=1, max_value=MAX_ROWS, initial=_DEFAULTS.rows)
    language = forms.CharField(
        required=False,
        max_length=40,
        help_text="Of questions and answers: a tag such as de, or an English name. Empty: that of the documents.",
    )
    personas = forms.CharField(
        required=False,
        max_length=4500,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Who asks, one a line; the rows take them in turn. Needs a language model.",
    )
    styles = forms.CharField(
        required=False,
        max_length=4500,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="How they write, one a line, such as: a few keywords.",
    )
    max_turns = forms.IntegerField(
        required=False,
        min_value=2,
        max_value=MAX_TURNS,
        initial=_DEFAULTS.max_turns,
        label="Turns at most",
        help_text="Of rows with several turns: what their user says at most.",
    )
    script = forms.CharField(
        required=False,
        max_length=4500,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What the user says after the first question, one a line. Empty: the model plays the user.",
    )
    budget_usd = forms.DecimalField(
        required=False,
        min_value=0,
        max_digits=9,
        decimal_places=2,
        label="Budget in USD",
        help_text="Never passed. Empty: no limit.",
    )
    probe = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=100,
        initial=5,
        label="Probe",
        help_text="Pause after so many rows with an estimate of the whole; 0 goes on.",
    )
    keep_at = forms.FloatField(
        min_value=0,
        max_value=1,
        initial=_DEFAULTS.keep_at,
        label="Keep from",
        help_text="Weighted scores, 0 to 1.",
    )
    concurrency = forms.IntegerField(
        min_value=1, max_value=200, initial=_DEFAULTS.concurrency, label="At once"
    )
    service_tier = service_fields.tier()
    cache_ttl = service_fields.cache()
    background = service_fields.background()
    seed = forms.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        initial=0,
        help_text="Chooses the passages; the same seed, the same ones.",
    )

    def __init__(
        self, *args: Any, collections: list[tuple[int, str]], models: list[tuple[str, str]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        chosen: Any = self.fields["collections"]
        chosen.choices = collections
        model: Any = self.fields["model"]
        model.choices = models
        judge: Any = self.fields["judge_model"]
        judge.choices = [("", "The same model"), *models]
        for prefix, names, defaults in (
            ("type", [(t.value, t.label) for t in MADE_TYPES], _DEFAULTS.types),
            ("difficulty", Difficulty.choices, _DEFAULTS.difficulty),
        ):
            for name, label in names:
                self.fields[f"{prefix}_{name}"] = forms.FloatField(
                    label=str(label),
                    min_value=0,
                    max_value=1000,
                    required=False,
                    initial=defaults.get(name, 0),
                )

    def options(self) -> dict[str, Any]:
        """Return the settings as ``generation_start`` takes them."""
        data = self.cleaned_data
        plain = ("rows", "judge_model", "language", "keep_at", "concurrency", "seed", "collections", *NAMES)
        shares = {
            field: {
                name.removeprefix(f"{prefix}_"): value
                for name, value in data.items()
                if name.startswith(f"{prefix}_") and value
            }
            for field, prefix in (("types", "type"), ("difficulty", "difficulty"))
        }
        return {
            **{name: data[name] for name in plain},
            **{name: lines_of(data[name]) for name in ("personas", "styles", "script")},
            "delivery": data["delivery"] or Delivery.NOW.value,
            "max_turns": data["max_turns"] or _DEFAULTS.max_turns,
            **shares,
            "repair_at": min(_DEFAULTS.repair_at, data["keep_at"]),
        }

    def shares(self) -> list[tuple[str, list[Any]]]:
        """Return the fields of shares in their two groups."""
        return [
            (legend, [self[name] for name in self.fields if name.startswith(prefix)])
            for legend, prefix in (("Shares of types", "type_"), ("Shares of difficulties", "difficulty_"))
        ]

    def plain(self) -> list[Any]:
        """Return the other fields."""
        return [self[name] for name in self.fields if not name.startswith(("type_", "difficulty_"))]


def lines_of(text: str) -> list[str]:
    """Return the lines of a text that are not empty."""
    return [line.strip() for line in text.splitlines() if line.strip()]
