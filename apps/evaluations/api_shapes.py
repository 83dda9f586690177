"""What the REST API of evaluations takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.evaluations.models import Arm, Experiment, Score, Trial
from apps.evaluations.services.experiments import MAX_CONCURRENCY, MAX_REPEATS
from apps.evaluations.trust import BAR

_BIGINT = 2**63 - 1


class ArmInput(serializers.Serializer[Any]):
    """An arm to be made."""

    name = serializers.CharField(required=False, allow_blank=True, max_length=160, default="", help_text="Empty: made of the target's settings.")  # fmt: skip
    target = serializers.DictField(help_text="`kind` and its settings. retriever: collections, k, legs. model: model, system, with_sources. assistant: version, model, collections, prompt, mode, k. reference: nothing; the rows' own answers.")  # fmt: skip


class ScorerInput(serializers.Serializer[Any]):
    """A scorer with its options."""

    kind = serializers.CharField(max_length=40, help_text="rubric, faithfulness, exact, token_f1, rouge_l, numeric, codes, regex, json_schema, retrieval, citations, tool_calls, forbidden_tools or pairwise.")  # fmt: skip
    options = serializers.DictField(required=False, default=dict, help_text="Of judges: models (several are a jury; `lexical` counts words), and of rubric: rubric, number.")  # fmt: skip


class ExperimentInput(serializers.Serializer[Any]):
    """An experiment to be started."""

    name = serializers.CharField(max_length=120)
    version = serializers.IntegerField(min_value=1, max_value=_BIGINT, help_text="Id of a dataset's version.")  # fmt: skip
    split = serializers.CharField(required=False, allow_blank=True, max_length=10, default="")
    arms = ArmInput(many=True)
    scorers = ScorerInput(many=True)
    repeats = serializers.IntegerField(
        required=False, default=1, min_value=1, max_value=MAX_REPEATS
    )
    concurrency = serializers.IntegerField(required=False, default=4, min_value=1, max_value=MAX_CONCURRENCY)  # fmt: skip
    budget_usd = serializers.DecimalField(required=False, allow_null=True, default=None, max_digits=12, decimal_places=6, min_value=0, help_text="Hard limit for answers and judges; null for none.")  # fmt: skip


class StateInput(serializers.Serializer[Any]):
    """What becomes of an experiment."""

    do = serializers.ChoiceField(choices=["pause", "resume", "stop"])


class BaselineInput(serializers.Serializer[Any]):
    """Which baseline of the dataset the arm becomes."""

    name = serializers.CharField(required=False, default="main", max_length=60)
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)


class GateInput(serializers.Serializer[Any]):
    """What the gate holds the arm to."""

    baseline = serializers.CharField(required=False, default="main", max_length=60)
    tolerance = serializers.FloatField(required=False, default=0.0, min_value=0, max_value=1, help_text="Fall of a mean that is accepted.")  # fmt: skip
    minima = serializers.DictField(child=serializers.FloatField(min_value=0, max_value=1), required=False, default=dict, help_text="Score to its least mean.")  # fmt: skip
    most_failed_rows = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=0, max_value=_BIGINT, help_text="Rows that may pass in the baseline and fail now.")  # fmt: skip
    bar = serializers.FloatField(required=False, default=BAR, min_value=0, max_value=1, help_text="Least lower end of a judge's kappa with people.")  # fmt: skip


class ArmOutput(serializers.ModelSerializer[Arm]):
    """An arm."""

    class Meta:
        model = Arm
        fields = ("id", "experiment", "position", "name", "target")


class ExperimentOutput(serializers.ModelSerializer[Experiment]):
    """An experiment with its counts."""

    arms = ArmOutput(many=True)
    trial_total = serializers.IntegerField()
    ended_total = serializers.IntegerField()
    failed_total = serializers.IntegerField()

    class Meta:
        model = Experiment
        fields = (
            "id", "name", "dataset", "version", "split", "state", "reason", "repeats", "concurrency", "budget_usd",
            "scorers", "corpus", "arms", "trial_total", "ended_total", "failed_total", "created_at", "finished_at",
        )  # fmt: skip


class ScoreOutput(serializers.ModelSerializer[Score]):
    """A score; a value of null is "unscored", and the reason says why."""

    class Meta:
        model = Score
        fields = ("name", "value", "level", "reason", "evidence", "author_kind", "author")


class TrialOutput(serializers.ModelSerializer[Trial]):
    """An answer with its scores."""

    scores = ScoreOutput(many=True)

    class Meta:
        model = Trial
        fields = (
            "id", "arm", "row_ref", "position", "repeat", "state", "answer", "error", "latency_ms", "cost_usd", "judge_usd",
            "judge_asked", "judge_cached", "scores",
        )  # fmt: skip


class EstimateOutput(serializers.Serializer[Any]):
    """A mean with its 95 % interval."""

    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()


class CriterionOutput(serializers.Serializer[Any]):
    """One score of both arms."""

    name = serializers.CharField()
    n = serializers.IntegerField()
    a = EstimateOutput()
    b = EstimateOutput()
    change = EstimateOutput()
    p_value = serializers.FloatField()
    p_corrected = serializers.FloatField(help_text="After Holm.")
    is_judged = serializers.BooleanField()
    may_gate = serializers.BooleanField(help_text="False: advisory, as people were not shown to agree with the judge.")  # fmt: skip
    same_author = serializers.BooleanField()
    is_shown = serializers.BooleanField()


class RowChangeOutput(serializers.Serializer[Any]):
    """One row in both arms."""

    row = serializers.IntegerField()
    a = serializers.FloatField()
    b = serializers.FloatField()
    change = serializers.FloatField()


class ComparisonOutput(serializers.Serializer[Any]):
    """Two arms compared; B is the arm of the address."""

    headline = serializers.CharField()
    sentence = serializers.CharField()
    criteria = CriterionOutput(many=True)
    wins = serializers.IntegerField()
    ties = serializers.IntegerField()
    losses = serializers.IntegerField()
    smallest = serializers.FloatField(help_text="Change that so many rows show with 80 % power.")
    needed = serializers.IntegerField(allow_null=True, help_text="Rows that the change seen needs.")
    left_out = serializers.IntegerField()
    solved_cost = serializers.ListField(child=serializers.FloatField(allow_null=True), allow_null=True, help_text="Money per row that passes, A and B.")  # fmt: skip
    notes = serializers.ListField(child=serializers.CharField())
    rows = RowChangeOutput(many=True, help_text="Worst change first, at most 500.")


class CheckOutput(serializers.Serializer[Any]):
    """One decision of a gate."""

    name = serializers.CharField()
    verdict = serializers.ChoiceField(choices=["passed", "failed", "advisory"])
    message = serializers.CharField()
    baseline = serializers.FloatField(allow_null=True)
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    noise = serializers.FloatField()
    kappa_low = serializers.FloatField(allow_null=True, help_text="Of a judged score: lower end of its judges' kappa with people.")  # fmt: skip
    ceiling = serializers.FloatField(allow_null=True, help_text="How far people agree with each other.")  # fmt: skip


class GateOutput(serializers.Serializer[Any]):
    """What a gate decided."""

    code = serializers.IntegerField(help_text="0 passed, 1 failed, 3 not comparable.")
    reason = serializers.CharField()
    checks = CheckOutput(many=True)
    failed_rows = serializers.ListField(child=serializers.IntegerField())
    baseline_arm = serializers.IntegerField(allow_null=True)
    arm = serializers.IntegerField(allow_null=True)


class BaselineOutput(serializers.Serializer[Any]):
    """A baseline as it is now."""

    name = serializers.CharField()
    dataset = serializers.IntegerField(source="dataset_id")
    arm = serializers.IntegerField(source="arm_id")
    note = serializers.CharField()
    created_at = serializers.DateTimeField()


class PairOutput(serializers.Serializer[Any]):
    """Two arms by all their rows."""

    a = serializers.IntegerField(source="a.pk")
    b = serializers.IntegerField(source="b.pk")
    a_wins = serializers.IntegerField()
    b_wins = serializers.IntegerField()
    ties = serializers.IntegerField(help_text="Verdicts that followed the order are among them.")
    flips = serializers.IntegerField(help_text="Verdicts that followed the order of the answers.")
    unscored = serializers.IntegerField()
    controlled = serializers.FloatField(allow_null=True, help_text="How often B would win if both answers were equally long.")  # fmt: skip


class StrengthOutput(serializers.Serializer[Any]):
    """An arm's place among all."""

    arm = serializers.IntegerField(source="arm.pk")
    wins = serializers.FloatField(help_text="A tie is half a win.")
    games = serializers.IntegerField()
    chance = EstimateOutput(allow_null=True, help_text="To beat an arm of mean strength (Bradley-Terry); null where none is finite.")  # fmt: skip


class PairSummaryOutput(serializers.Serializer[Any]):
    """The pairwise verdicts of an experiment."""

    pairs = PairOutput(many=True)
    strengths = StrengthOutput(many=True, help_text="The strongest first.")
    verdicts = serializers.IntegerField()
    flips = serializers.IntegerField()
    flip_rate = serializers.FloatField()
    authors = serializers.ListField(child=serializers.CharField())
    problem = serializers.CharField(help_text="Why there are no strengths; empty when there are.")
