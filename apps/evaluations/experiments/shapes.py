"""What the REST API of evaluations takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.evaluations.experiments.services import MAX_CONCURRENCY, MAX_JUDGE_REPEATS, MAX_REPEATS
from apps.evaluations.models import Arm, Experiment, Score, Trial
from apps.evaluations.results.selectors import state_told
from batches.delivery import Delivery
from web.drf.batches import BatchRoundOutput

_BIGINT = 2**63 - 1


class ArmInput(serializers.Serializer[Any]):
    """An arm to be made."""

    name = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=160,
        default="",
        help_text="Empty: made from the target's settings.",
    )
    target = serializers.DictField(
        help_text="`kind` and its settings. retriever: collections, k, legs. model: model, system, with_sources. assistant: version, model, collections, prompt, mode, k, legs, neighbours, tools (none, read, ask or all of those it may call), executes (calls that change data are carried out, not just recorded). reference: nothing; the rows' own answers."
    )


class ScorerInput(serializers.Serializer[Any]):
    """A scorer with its options."""

    kind = serializers.CharField(
        max_length=40,
        help_text="rubric, faithfulness, exact, token_f1, rouge_l, numeric, codes, regex, json_schema, retrieval, citations, tool_calls, forbidden_tools, attack or pairwise.",
    )
    options = serializers.DictField(
        required=False,
        default=dict,
        help_text="For judges: models (several form a jury; `lexical` counts words); for rubric: rubric, "
        "number.",
    )


class ExperimentInput(serializers.Serializer[Any]):
    """An experiment to be started."""

    name = serializers.CharField(max_length=120)
    version = serializers.IntegerField(min_value=1, max_value=_BIGINT, help_text="Id of a dataset version.")
    split = serializers.CharField(required=False, allow_blank=True, max_length=10, default="")
    arms = ArmInput(many=True)
    scorers = ScorerInput(many=True)
    repeats = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MAX_REPEATS)
    judge_repeats = serializers.IntegerField(
        required=False,
        default=1,
        min_value=1,
        max_value=MAX_JUDGE_REPEATS,
        help_text="How often a model judges each answer; the mean counts.",
    )
    stops_dominated = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Stop an arm once another is shown to answer better at no higher cost.",
    )
    same_documents = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Arms search different collections with the same documents, split into passages "
        "differently.",
    )
    concurrency = serializers.IntegerField(required=False, default=4, min_value=1, max_value=MAX_CONCURRENCY)
    delivery = serializers.ChoiceField(
        choices=Delivery.choices,
        required=False,
        default=Delivery.NOW.value,
        help_text="now, or batch for half the price within a day for each turn of a model.",
    )
    budget_usd = serializers.DecimalField(
        required=False,
        allow_null=True,
        default=None,
        max_digits=12,
        decimal_places=6,
        min_value=0,
        help_text="Hard limit for answers and judges; null for none.",
    )


class StateInput(serializers.Serializer[Any]):
    """What becomes of an experiment."""

    do = serializers.ChoiceField(choices=["pause", "resume", "stop"])


class ArmOutput(serializers.ModelSerializer[Arm]):
    """An arm."""

    class Meta:
        model = Arm
        fields = ("id", "experiment", "position", "name", "target", "stopped_at", "stop_reason")


class ExperimentOutput(serializers.ModelSerializer[Experiment]):
    """An experiment with its counts."""

    arms = ArmOutput(many=True)
    trial_total = serializers.IntegerField()
    ended_total = serializers.IntegerField()
    failed_total = serializers.IntegerField(help_text="Answers without a score.")
    state_text = serializers.SerializerMethodField(
        help_text="The state in words, with the number of failed answers once it is complete."
    )

    def get_state_text(self, experiment: Experiment) -> str:
        """Return the state in words."""
        return state_told(experiment)[0]

    class Meta:
        model = Experiment
        fields = tuple(
            """
            id name dataset version split state state_text reason repeats judge_repeats stops_dominated
            concurrency delivery budget_usd spent_usd scorers corpus arms trial_total ended_total failed_total
            created_at finished_at
        """.split()
        )


class ExperimentDetailOutput(ExperimentOutput):
    """An experiment with what is with a provider."""

    batch = BatchRoundOutput(
        allow_null=True, help_text="Batches at the provider at half price; null if none."
    )

    class Meta:
        model = Experiment
        fields = (*ExperimentOutput.Meta.fields, "batch")


class ScoreOutput(serializers.ModelSerializer[Score]):
    """A score; a value of null is "unscored", and the reason says why."""

    class Meta:
        model = Score
        fields = ("name", "value", "level", "reason", "evidence", "details", "author_kind", "author")


class TrialOutput(serializers.ModelSerializer[Trial]):
    """An answer with its scores."""

    scores = ScoreOutput(many=True)

    class Meta:
        model = Trial
        fields = (
            "id",
            "arm",
            "row_ref",
            "position",
            "repeat",
            "state",
            "answer",
            "error",
            "latency_ms",
            "cost_usd",
            "judge_usd",
            "judge_asked",
            "judge_cached",
            "scores",
        )
