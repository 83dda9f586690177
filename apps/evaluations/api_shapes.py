"""What the REST API of evaluations takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.evaluations.models import Arm, Experiment, Score, Trial
from apps.evaluations.selectors import state_told
from apps.evaluations.services.experiments import MAX_CONCURRENCY, MAX_JUDGE_REPEATS, MAX_REPEATS
from apps.evaluations.trust import BAR
from batches.delivery import Delivery
from web.drf.batches import BatchRoundOutput

_BIGINT = 2**63 - 1


class ArmInput(serializers.Serializer[Any]):
    """An arm to be made."""

    name = serializers.CharField(required=False, allow_blank=True, max_length=160, default="", help_text="Empty: made of the target's settings.")  # fmt: skip
    target = serializers.DictField(help_text="`kind` and its settings. retriever: collections, k, legs. model: model, system, with_sources. assistant: version, model, collections, prompt, mode, k, legs, neighbours, tools (none, read, ask or all of those it may call), executes (calls that change something are carried out, not just recorded). reference: nothing; the rows' own answers.")  # fmt: skip


class ScorerInput(serializers.Serializer[Any]):
    """A scorer with its options."""

    kind = serializers.CharField(max_length=40, help_text="rubric, faithfulness, exact, token_f1, rouge_l, numeric, codes, regex, json_schema, retrieval, citations, tool_calls, forbidden_tools, attack or pairwise.")  # fmt: skip
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
    judge_repeats = serializers.IntegerField(required=False, default=1, min_value=1, max_value=MAX_JUDGE_REPEATS, help_text="How often a model judges each answer; the mean counts.")  # fmt: skip
    stops_dominated = serializers.BooleanField(required=False, default=False, help_text="Ask an arm no further once another is shown to answer better at no higher cost.")  # fmt: skip
    same_documents = serializers.BooleanField(required=False, default=False, help_text="Arms search different collections, which must hold the same documents: what differs is how these are cut into passages.")  # fmt: skip
    concurrency = serializers.IntegerField(required=False, default=4, min_value=1, max_value=MAX_CONCURRENCY)  # fmt: skip
    delivery = serializers.ChoiceField(choices=Delivery.choices, required=False, default=Delivery.NOW.value, help_text="now, or batch for half the price within a day for each turn of a model.")  # fmt: skip
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
    must_pass = serializers.ListField(child=serializers.IntegerField(min_value=1, max_value=_BIGINT), required=False, default=list, max_length=1_000, help_text="Rows (`row_ref`) that must pass whatever the means are.")  # fmt: skip
    bar = serializers.FloatField(required=False, default=BAR, min_value=0, max_value=1, help_text="Least lower end of a judge's kappa with people.")  # fmt: skip
    calibrated = serializers.BooleanField(required=False, default=False, help_text="Read judges' scores on the scale of people, by their newest calibration.")  # fmt: skip


class CalibratedInput(serializers.Serializer[Any]):
    """How judges' scores are read."""

    calibrated = serializers.BooleanField(required=False, default=False)


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
    state_text = serializers.SerializerMethodField(help_text="The state in words, with how many answers of a completed one failed.")  # fmt: skip

    def get_state_text(self, experiment: Experiment) -> str:
        """Return the state in words."""
        return state_told(experiment)[0]

    class Meta:
        model = Experiment
        fields = (
            "id", "name", "dataset", "version", "split", "state", "state_text", "reason", "repeats", "judge_repeats",
            "stops_dominated", "concurrency", "delivery", "budget_usd", "spent_usd", "scorers", "corpus", "arms", "trial_total", "ended_total", "failed_total", "created_at", "finished_at",
        )  # fmt: skip


class ExperimentDetailOutput(ExperimentOutput):
    """An experiment with what is with a provider."""

    batch = BatchRoundOutput(
        allow_null=True, help_text="What is with a provider at half price; null while nothing is."
    )

    class Meta:
        model = Experiment
        fields = (*ExperimentOutput.Meta.fields, "batch")


class ScoreOutput(serializers.ModelSerializer[Score]):
    """A score; a value of null is "unscored", and the reason says why."""

    class Meta:
        model = Score
        fields = (
            "name",
            "value",
            "level",
            "reason",
            "evidence",
            "details",
            "author_kind",
            "author",
        )


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


class ReadingOutput(serializers.Serializer[Any]):
    """A score of an arm on the scale of people."""

    calibration = serializers.IntegerField()
    number = serializers.IntegerField(help_text="The calibration's version.")
    n = serializers.IntegerField(help_text="Answers that it rests on.")
    raw = serializers.FloatField(help_text="Mean of what the judge gave.")
    value = serializers.FloatField(help_text="The same, calibrated.")
    low = serializers.FloatField(help_text="Lower end of its 95 % interval, as far as the calibration is known.")  # fmt: skip
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
    calibrated = ReadingOutput(many=True, help_text="How A and B were read; empty: as the judge gave it.")  # fmt: skip


class RowChangeOutput(serializers.Serializer[Any]):
    """One row in both arms."""

    row = serializers.IntegerField()
    a = serializers.FloatField()
    b = serializers.FloatField()
    change = serializers.FloatField()


class NeedOutput(serializers.Serializer[Any]):
    """How many rows show a change with 80 % power."""

    change = serializers.FloatField()
    rows = serializers.IntegerField()


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
    needs = NeedOutput(many=True, help_text="Rows that a change needs, for some changes.")
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
    calibration = serializers.IntegerField(allow_null=True, help_text="What the score was read by; null: it is as the judge gave it.")  # fmt: skip
    calibration_number = serializers.IntegerField(allow_null=True, help_text="Its version.")
    calibrated_low = serializers.FloatField(allow_null=True, help_text="Of the arm's mean, as far as the calibration is known.")  # fmt: skip
    calibrated_high = serializers.FloatField(allow_null=True)
    raw_baseline = serializers.FloatField(allow_null=True, help_text="What the judge gave.")
    raw_value = serializers.FloatField(allow_null=True)


class GateOutput(serializers.Serializer[Any]):
    """What a gate decided."""

    code = serializers.IntegerField(help_text="0 passed, 1 failed, 3 not comparable.")
    reason = serializers.CharField()
    checks = CheckOutput(many=True)
    failed_rows = serializers.ListField(child=serializers.IntegerField())
    baseline_arm = serializers.IntegerField(allow_null=True)
    baseline_name = serializers.CharField(help_text="Of the baseline's arm, with its experiment; empty without one.")  # fmt: skip
    arm = serializers.IntegerField(allow_null=True)
    arm_name = serializers.CharField()


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


class FrontPointOutput(serializers.Serializer[Any]):
    """An arm by quality and cost."""

    arm = serializers.IntegerField(source="arm.pk")
    quality = serializers.FloatField(allow_null=True, help_text="Weighted mean of its scores; null without any.")  # fmt: skip
    cost_usd = serializers.FloatField(allow_null=True, help_text="Mean of an answer; null where no price is known.")  # fmt: skip
    is_on_front = serializers.BooleanField(help_text="No arm answers better at no higher cost.")
    is_stopped = serializers.BooleanField(help_text="It was stopped early: fewer rows.")


class VarianceOutput(serializers.Serializer[Any]):
    """Variance components, in squared units of the score; null where nothing was repeated."""

    rows = serializers.FloatField(allow_null=True)
    generator = serializers.FloatField(allow_null=True, help_text="Between answers to one row.")
    judge = serializers.FloatField(allow_null=True, help_text="Between judgements of one answer.")
    judge_share = serializers.FloatField(allow_null=True, help_text="The judge's part of what varies within rows.")  # fmt: skip


class FlakyRowOutput(serializers.Serializer[Any]):
    """A row that passes in some repeats and fails in others."""

    row = serializers.IntegerField()
    values = serializers.ListField(child=serializers.FloatField(), help_text="Of each repeat.")
    passes = serializers.IntegerField()
    spread = serializers.FloatField()
    judge_spread = serializers.FloatField(help_text="How far judgements of one answer lay apart.")


class RepeatsOutput(serializers.Serializer[Any]):
    """An arm by its repeats."""

    score = serializers.CharField()
    names = serializers.ListField(child=serializers.CharField())
    rows = serializers.IntegerField(help_text="Scored in every repeat.")
    repeats = serializers.IntegerField()
    means = serializers.ListField(child=serializers.FloatField(), help_text="Of each repeat.")
    deviation = serializers.FloatField(allow_null=True, help_text="Standard deviation of the means.")  # fmt: skip
    variance = VarianceOutput()
    pass_all = serializers.FloatField(allow_null=True, help_text="Share of rows that pass in every repeat (pass^k).")  # fmt: skip
    flaky_count = serializers.IntegerField()
    flaky = FlakyRowOutput(many=True, help_text="The widest spread first, at most 100.")


class FindingOutput(serializers.Serializer[Any]):
    """One score of a judge over the gold answers."""

    name = serializers.CharField()
    n = serializers.IntegerField()
    kappa = EstimateOutput(allow_null=True, help_text="Quadratic kappa with the gold levels.")
    change = EstimateOutput(allow_null=True, help_text="Of its mean level since the first check; null for the first one.")  # fmt: skip
    is_drifted = serializers.BooleanField()


class JudgeCheckOutput(serializers.Serializer[Any]):
    """A judge on the gold answers of its rubric."""

    author = serializers.CharField()
    rubric_version = serializers.IntegerField(source="rubric_version_id")
    is_drifted = serializers.BooleanField()
    findings = FindingOutput(many=True)
    at = serializers.DateTimeField()
