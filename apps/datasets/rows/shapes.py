"""What the REST API of datasets takes and gives."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.datasets.models import (
    DatasetRow,
    Difficulty,
    ExpectedBehaviour,
    QuestionType,
    RowStatus,
    Split,
)
from apps.datasets.records.columns import record_of
from apps.datasets.records.facts import facts_of
from apps.datasets.records.record import to_values


class DatasetInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120)
    slug = serializers.SlugField(
        max_length=60,
        required=False,
        allow_blank=True,
        default="",
        help_text="Its name in files; default: made from the name.",
    )
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True, default="")
    needs_two_people = serializers.BooleanField(required=False, default=False)

    class Meta:
        ref_name = "DatasetCreate"


class DatasetUpdate(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120, required=False)
    description = serializers.CharField(max_length=2000, required=False, allow_blank=True)
    needs_two_people = serializers.BooleanField(required=False)

    class Meta:
        ref_name = "DatasetUpdate"


class DatasetOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    needs_two_people = serializers.BooleanField()
    rows = serializers.IntegerField(
        source="row_total", allow_null=True, help_text="Null if there are none yet."
    )
    approved = serializers.IntegerField(source="approved_total", allow_null=True)
    latest_version = serializers.IntegerField(source="latest", allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Dataset"


class RowFactsOutput(serializers.Serializer[Any]):
    iterations = serializers.IntegerField()
    is_complete = serializers.BooleanField()
    source_chunk_id = serializers.CharField(help_text="Empty for none.")

    class Meta:
        ref_name = "DatasetRowFacts"


class RowOutput(serializers.Serializer[Any]):
    """A row; ``record`` is what versions and exports keep of it, ``facts`` what they tell besides."""

    id = serializers.IntegerField()
    status = serializers.ChoiceField(choices=RowStatus.choices)
    quality = serializers.FloatField(allow_null=True, help_text="0 to 1; null if unscored.")
    content_hash = serializers.CharField()
    run_id = serializers.IntegerField(allow_null=True, help_text="The run that produced the answer.")
    record = serializers.SerializerMethodField()
    facts = serializers.SerializerMethodField(
        help_text="iterations: turns of the loop that answered; is_complete: whether it reached an answer; "
        "source_chunk_id: the passage it was asked about. Exports include them with the record's fields."
    )
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    class Meta:
        ref_name = "DatasetRow"

    @extend_schema_field(RowFactsOutput)
    def get_facts(self, row: DatasetRow) -> dict[str, Any]:
        return facts_of(record_of(row))

    def get_record(self, row: DatasetRow) -> dict[str, Any]:
        return to_values(record_of(row))


class RowUpdate(serializers.Serializer[Any]):
    question = serializers.CharField(max_length=20_000, required=False)
    answer = serializers.CharField(max_length=200_000, required=False, allow_blank=True)
    rationale = serializers.CharField(max_length=20_000, required=False, allow_blank=True)
    type = serializers.ChoiceField(choices=QuestionType.choices, required=False)
    difficulty = serializers.ChoiceField(choices=Difficulty.choices, required=False)
    expected = serializers.ChoiceField(choices=ExpectedBehaviour.choices, required=False)
    split = serializers.ChoiceField(choices=Split.choices, required=False)
    language = serializers.CharField(max_length=20, required=False, allow_blank=True)
    tags = serializers.ListField(child=serializers.CharField(max_length=60), required=False, max_length=50)

    class Meta:
        ref_name = "DatasetRowUpdate"
