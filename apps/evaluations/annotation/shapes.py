"""What the REST API of annotation takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.datasets.records.rubric import LEVELS
from apps.evaluations.annotation.services import MAX_ITEMS, MAX_REVIEWS
from apps.evaluations.judges.scoring import LEXICAL
from apps.evaluations.models import AnnotationQueue

_BIGINT = 2**63 - 1


class QueueInput(serializers.Serializer[Any]):
    """A queue of answers to grade."""

    name = serializers.CharField(max_length=120)
    rubric_version = serializers.IntegerField(min_value=1, max_value=_BIGINT)
    experiment = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=_BIGINT,
        help_text="Grade this experiment's answers; or choose a version.",
    )
    version = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=_BIGINT,
        help_text="A dataset version: grade the answers in its rows.",
    )
    reviews = serializers.IntegerField(
        required=False, default=2, min_value=1, max_value=MAX_REVIEWS, help_text="People per answer."
    )
    most = serializers.IntegerField(required=False, default=100, min_value=1, max_value=MAX_ITEMS)
    disputed_first = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Sorts by how much judges disagree, times how many live answers in 90 days cite the "
        "row's documents.",
    )
    assignees = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=_BIGINT),
        required=False,
        default=list,
        max_length=200,
        help_text="Ids of the members who grade; none: all who can.",
    )
    instructions = serializers.CharField(required=False, allow_blank=True, default="", max_length=2_000)
    judge = serializers.CharField(
        required=False,
        default=LEXICAL,
        max_length=120,
        help_text="For a version's answers: a model, or `lexical`.",
    )


class QueueOutput(serializers.ModelSerializer[AnnotationQueue]):
    """A queue with its totals."""

    item_total = serializers.IntegerField()
    grade_total = serializers.IntegerField()

    class Meta:
        model = AnnotationQueue
        fields = (
            "id",
            "name",
            "experiment",
            "rubric_version",
            "reviews",
            "assignees",
            "instructions",
            "item_total",
            "grade_total",
            "created_at",
            "closed_at",
        )


class QueueStateInput(serializers.Serializer[Any]):
    """What becomes of a queue."""

    do = serializers.ChoiceField(choices=["close", "reopen"])


class GraderOutput(serializers.Serializer[Any]):
    """One person's work."""

    name = serializers.CharField()
    done = serializers.IntegerField()
    skipped = serializers.IntegerField()
    seconds = serializers.FloatField(allow_null=True, help_text="Median time per grade.")
    gold_right = serializers.IntegerField(help_text="Correct grades of known answers.")
    gold_total = serializers.IntegerField()


class ProgressOutput(serializers.Serializer[Any]):
    """How far a queue is."""

    items = serializers.IntegerField()
    complete = serializers.IntegerField()
    waiting = serializers.IntegerField(help_text="Answers that aren't ready yet.")
    grades = serializers.IntegerField()
    wanted = serializers.IntegerField()
    graders = GraderOutput(many=True)


class LevelOutput(serializers.Serializer[Any]):
    """A criterion to grade."""

    name = serializers.CharField()
    question = serializers.CharField()
    anchors = serializers.ListField(child=serializers.CharField(), help_text="What levels 1 to 5 mean.")


class SaidOutput(serializers.Serializer[Any]):
    """What one side said before the question."""

    role = serializers.ChoiceField(choices=["user", "assistant"])
    text = serializers.CharField()


class PassageOutput(serializers.Serializer[Any]):
    """A passage that was found."""

    document = serializers.CharField()
    text = serializers.CharField()


class SheetOutput(serializers.Serializer[Any]):
    """One answer to grade, blind: neither model nor judge nor other grades."""

    assignment = serializers.IntegerField(source="assignment.pk")
    conversation = SaidOutput(source="said", many=True, help_text="The conversation before the question.")
    question = serializers.CharField(source="record.question")
    reference = serializers.CharField(source="record.answer")
    sources = serializers.SerializerMethodField()
    answer = serializers.CharField()
    passages = PassageOutput(
        many=True, help_text="Passages found, best first, if they are needed for grading."
    )
    criteria = serializers.SerializerMethodField()
    left = serializers.IntegerField()

    def get_sources(self, sheet: Any) -> list[str]:
        """Return the quotes of the row's sources."""
        return [source.quote for source in sheet.record.sources]

    def get_criteria(self, sheet: Any) -> list[dict[str, Any]]:
        """Return what is graded."""
        return [dict(LevelOutput(criterion).data) for criterion, _ in sheet.criteria]


class TakenOutput(serializers.Serializer[Any]):
    """The next answer to grade; null when nothing is left for this person."""

    sheet = SheetOutput(allow_null=True)


class GradeInput(serializers.Serializer[Any]):
    """A decision about one answer."""

    do = serializers.ChoiceField(
        choices=["grade", "skip", "gold"], help_text="gold: marks your own grades as the correct ones."
    )
    levels = serializers.DictField(
        child=serializers.IntegerField(min_value=1, max_value=LEVELS),
        required=False,
        default=dict,
        help_text="Level of each criterion.",
    )
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=2_000)


class AssignmentOutput(serializers.Serializer[Any]):
    """An answer and what its person did with it."""

    id = serializers.IntegerField(source="pk")
    queue = serializers.IntegerField(source="item.queue_id")
    state = serializers.ChoiceField(choices=["open", "done", "skipped"])
