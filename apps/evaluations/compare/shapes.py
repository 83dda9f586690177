"""What the REST API takes for a comparison, and gives of it: readings, checks, gates, pairs, repeats and what they rest on."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.evaluations.judges.trust import BAR
from apps.evaluations.results.shapes import EstimateOutput

_BIGINT = 2**63 - 1


class ReadingOutput(serializers.Serializer[Any]):
    """A score of an arm on the scale of people."""

    calibration = serializers.IntegerField()
    number = serializers.IntegerField(help_text="The calibration's version.")
    n = serializers.IntegerField(help_text="Answers it is based on.")
    raw = serializers.FloatField(help_text="Mean of the judge's scores.")
    value = serializers.FloatField(help_text="The same mean, calibrated.")
    low = serializers.FloatField(
        help_text="Lower end of its 95 % interval, given the calibration's uncertainty."
    )
    high = serializers.FloatField()


class CriterionOutput(serializers.Serializer[Any]):
    """One score of both arms."""

    name = serializers.CharField()
    n = serializers.IntegerField()
    a = EstimateOutput()
    b = EstimateOutput()
    change = EstimateOutput()
    p_value = serializers.FloatField()
    p_corrected = serializers.FloatField(help_text="p value after Holm's correction.")
    is_judged = serializers.BooleanField()
    may_gate = serializers.BooleanField(
        help_text="False: advisory, because the judge has not been shown to agree with people."
    )
    same_author = serializers.BooleanField()
    is_shown = serializers.BooleanField()
    calibrated = ReadingOutput(
        many=True, help_text="How A and B were calibrated; empty: the judge's raw scores."
    )


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
    smallest = serializers.FloatField(help_text="Change these rows can detect with 80 % power.")
    needed = serializers.IntegerField(allow_null=True, help_text="Rows needed to detect the observed change.")
    needs = NeedOutput(many=True, help_text="Rows needed to detect changes of some sizes.")
    left_out = serializers.IntegerField()
    solved_cost = serializers.ListField(
        child=serializers.FloatField(allow_null=True),
        allow_null=True,
        help_text="Cost per passing row, A and B.",
    )
    notes = serializers.ListField(child=serializers.CharField())
    rows = RowChangeOutput(many=True, help_text="Largest decline first, at most 500.")


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
    kappa_low = serializers.FloatField(
        allow_null=True, help_text="For a judged score: lower end of its judges' kappa with people."
    )
    ceiling = serializers.FloatField(allow_null=True, help_text="How much people agree with each other.")
    calibration = serializers.IntegerField(
        allow_null=True, help_text="The calibration used; null: the judge's raw score."
    )
    calibration_number = serializers.IntegerField(allow_null=True, help_text="Version of the calibration.")
    calibrated_low = serializers.FloatField(
        allow_null=True, help_text="Interval of the arm's mean, given the calibration's uncertainty."
    )
    calibrated_high = serializers.FloatField(allow_null=True)
    raw_baseline = serializers.FloatField(allow_null=True, help_text="The judge's raw value.")
    raw_value = serializers.FloatField(allow_null=True)


class GateOutput(serializers.Serializer[Any]):
    """What a gate decided."""

    code = serializers.IntegerField(help_text="0 passed, 1 failed, 3 not comparable.")
    reason = serializers.CharField()
    checks = CheckOutput(many=True)
    failed_rows = serializers.ListField(child=serializers.IntegerField())
    baseline_arm = serializers.IntegerField(allow_null=True)
    baseline_name = serializers.CharField(
        help_text="The baseline's arm with its experiment; empty without one."
    )
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
    ties = serializers.IntegerField(help_text="Includes verdicts that followed the order.")
    flips = serializers.IntegerField(help_text="Verdicts that followed the order of the answers.")
    unscored = serializers.IntegerField()
    controlled = serializers.FloatField(
        allow_null=True, help_text="How often B would win if both answers were equally long."
    )


class StrengthOutput(serializers.Serializer[Any]):
    """An arm's place among all."""

    arm = serializers.IntegerField(source="arm.pk")
    wins = serializers.FloatField(help_text="A tie counts as half a win.")
    games = serializers.IntegerField()
    chance = EstimateOutput(
        allow_null=True,
        help_text="Probability of beating an arm of average strength (Bradley-Terry); null if not finite.",
    )


class PairSummaryOutput(serializers.Serializer[Any]):
    """The pairwise verdicts of an experiment."""

    pairs = PairOutput(many=True)
    strengths = StrengthOutput(many=True, help_text="Strongest first.")
    verdicts = serializers.IntegerField()
    flips = serializers.IntegerField()
    flip_rate = serializers.FloatField()
    authors = serializers.ListField(child=serializers.CharField())
    problem = serializers.CharField(help_text="Why there are no strengths; empty when there are.")


class FrontPointOutput(serializers.Serializer[Any]):
    """An arm by quality and cost."""

    arm = serializers.IntegerField(source="arm.pk")
    quality = serializers.FloatField(
        allow_null=True, help_text="Weighted mean of its scores; null without any."
    )
    cost_usd = serializers.FloatField(
        allow_null=True, help_text="Mean per answer; null if no price is known."
    )
    is_on_front = serializers.BooleanField(help_text="No arm answers better at no higher cost.")
    is_stopped = serializers.BooleanField(help_text="It was stopped early, so it has fewer rows.")


class VarianceOutput(serializers.Serializer[Any]):
    """Variance components, in squared units of the score; null where nothing was repeated."""

    rows = serializers.FloatField(allow_null=True)
    generator = serializers.FloatField(allow_null=True, help_text="Variance between answers to one row.")
    judge = serializers.FloatField(allow_null=True, help_text="Variance between judgements of one answer.")
    judge_share = serializers.FloatField(
        allow_null=True, help_text="The judge's share of the variance within rows."
    )


class FlakyRowOutput(serializers.Serializer[Any]):
    """A row that passes in some repeats and fails in others."""

    row = serializers.IntegerField()
    values = serializers.ListField(child=serializers.FloatField(), help_text="One for each repeat.")
    passes = serializers.IntegerField()
    spread = serializers.FloatField()
    judge_spread = serializers.FloatField(help_text="How much judgements of one answer differed.")


class RepeatsOutput(serializers.Serializer[Any]):
    """An arm by its repeats."""

    score = serializers.CharField()
    names = serializers.ListField(child=serializers.CharField())
    rows = serializers.IntegerField(help_text="Rows scored in every repeat.")
    repeats = serializers.IntegerField()
    means = serializers.ListField(child=serializers.FloatField(), help_text="One for each repeat.")
    deviation = serializers.FloatField(allow_null=True, help_text="Standard deviation of the means.")
    variance = VarianceOutput()
    pass_all = serializers.FloatField(
        allow_null=True, help_text="Share of rows that pass in every repeat (pass^k)."
    )
    flaky_count = serializers.IntegerField()
    flaky = FlakyRowOutput(many=True, help_text="Widest spread first, at most 100.")


class FindingOutput(serializers.Serializer[Any]):
    """One score of a judge over the gold answers."""

    name = serializers.CharField()
    n = serializers.IntegerField()
    kappa = EstimateOutput(allow_null=True, help_text="Quadratic kappa with the gold levels.")
    change = EstimateOutput(
        allow_null=True, help_text="Change of its mean level since the first check; null for the first one."
    )
    is_drifted = serializers.BooleanField()


class JudgeCheckOutput(serializers.Serializer[Any]):
    """A judge on the gold answers of its rubric."""

    author = serializers.CharField()
    rubric_version = serializers.IntegerField(source="rubric_version_id")
    is_drifted = serializers.BooleanField()
    findings = FindingOutput(many=True)
    at = serializers.DateTimeField()


class BaselineInput(serializers.Serializer[Any]):
    """Which baseline of the dataset the arm becomes."""

    name = serializers.CharField(required=False, default="main", max_length=60)
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)


class GateInput(serializers.Serializer[Any]):
    """What the gate holds the arm to."""

    baseline = serializers.CharField(required=False, default="main", max_length=60)
    tolerance = serializers.FloatField(
        required=False, default=0.0, min_value=0, max_value=1, help_text="Allowed drop of a mean."
    )
    minima = serializers.DictField(
        child=serializers.FloatField(min_value=0, max_value=1),
        required=False,
        default=dict,
        help_text="Minimum mean for each score.",
    )
    most_failed_rows = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=0,
        max_value=_BIGINT,
        help_text="Maximum rows that may pass in the baseline and fail now.",
    )
    must_pass = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        default=list,
        max_length=1_000,
        help_text="Rows (`row_ref`) that must pass regardless of the means.",
    )
    bar = serializers.FloatField(
        required=False,
        default=BAR,
        min_value=0,
        max_value=1,
        help_text="Minimum lower end of a judge's kappa with people.",
    )
    calibrated = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Adjust judges' scores to people's grades, using the newest calibration.",
    )


class CalibratedInput(serializers.Serializer[Any]):
    """How judges' scores are read."""

    calibrated = serializers.BooleanField(required=False, default=False)
