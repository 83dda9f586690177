"""What the REST API of rubrics and trust takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.datasets.records.rubric import LEVELS
from apps.evaluations.models import JudgeCalibration, Rubric, RubricVersion
from apps.evaluations.results.shapes import EstimateOutput


class CriterionShape(serializers.Serializer[Any]):
    """One thing that is graded."""

    name = serializers.CharField(max_length=60, help_text="Letters, digits and _.")
    question = serializers.CharField(max_length=500)
    anchors = serializers.ListField(
        child=serializers.CharField(max_length=300),
        min_length=LEVELS,
        max_length=LEVELS,
        help_text="What levels 1 to 5 mean.",
    )
    weight = serializers.FloatField(required=False, default=1.0, min_value=0, max_value=100)
    minimum = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=LEVELS
    )


class RubricVersionOutput(serializers.ModelSerializer[RubricVersion]):
    """A version of a rubric."""

    criteria = CriterionShape(many=True)

    class Meta:
        model = RubricVersion
        fields = ("id", "rubric", "number", "note", "criteria", "created_at")


class RubricOutput(serializers.ModelSerializer[Rubric]):
    """A rubric with its versions."""

    slug = serializers.CharField(
        read_only=True, help_text="Those of the built-in claim judges contain a dot."
    )
    versions = RubricVersionOutput(many=True)

    class Meta:
        model = Rubric
        fields = ("id", "slug", "name", "versions", "created_at")


class RubricInput(serializers.Serializer[Any]):
    """A rubric to be made."""

    name = serializers.CharField(max_length=120)
    slug = serializers.SlugField(required=False, allow_blank=True, default="", max_length=40)
    criteria = serializers.ListField(child=CriterionShape(), min_length=1, max_length=20)


class RubricVersionInput(serializers.Serializer[Any]):
    """The next version of a rubric."""

    criteria = serializers.ListField(child=CriterionShape(), min_length=1, max_length=20)
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)


class CalibrationInput(serializers.Serializer[Any]):
    """Whose score is calibrated, as the agreement names them."""

    name = serializers.CharField(max_length=60, help_text="Name of the score.")
    author = serializers.CharField(max_length=300, help_text="The judge.")


class CurveOutput(serializers.Serializer[Any]):
    """Where the judge gives x, people give y, between low and high (95 %); 0 to 1, straight lines between."""

    x = serializers.ListField(child=serializers.FloatField())
    y = serializers.ListField(child=serializers.FloatField())
    low = serializers.ListField(child=serializers.FloatField())
    high = serializers.ListField(child=serializers.FloatField())


class CalibrationOutput(serializers.ModelSerializer[JudgeCalibration]):
    """How a judge's score is read on the scale of people."""

    curve = CurveOutput()

    class Meta:
        model = JudgeCalibration
        fields = ("id", "rubric_version", "name", "author", "number", "n", "curve", "created_at")


class PeopleOutput(serializers.Serializer[Any]):
    """How far people agree with each other."""

    n = serializers.IntegerField(help_text="Answers graded by two or more people.")
    alpha = EstimateOutput(allow_null=True, help_text="Krippendorff's alpha, ordinal.")
    cohen = serializers.FloatField(allow_null=True, help_text="Mean quadratic kappa of pairs.")
    fleiss = serializers.FloatField(source="fleiss.value", allow_null=True)
    percent = serializers.FloatField(source="percent.value", allow_null=True)


class AgreementOutput(serializers.Serializer[Any]):
    """One score of one judge, beside people."""

    name = serializers.CharField()
    author = serializers.CharField()
    n = serializers.IntegerField(help_text="Answers graded by both the judge and people.")
    judge_human = EstimateOutput(allow_null=True, help_text="Quadratic kappa between the judge and people.")
    percent = serializers.FloatField(source="percent.value", allow_null=True)
    people = PeopleOutput()
    may_gate = serializers.SerializerMethodField()
    reason = serializers.SerializerMethodField()

    def get_may_gate(self, one: Any) -> bool:
        """Return whether the score may stop a release."""
        return bool(one.is_trusted())

    def get_reason(self, one: Any) -> str:
        """Return why, in a sentence."""
        return str(one.told())
