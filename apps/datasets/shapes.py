"""What the REST API of datasets takes and gives."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.datasets.columns import record_of
from apps.datasets.generation.claiming import job_spend
from apps.datasets.models import (
    DatasetRow,
    Difficulty,
    ExpectedBehaviour,
    GenerationJob,
    GenerationState,
    QuestionType,
    RowStatus,
    Split,
)
from apps.datasets.record import to_values
from apps.datasets.row_facts import facts_of
from web.drf.batches import BatchRoundOutput


class DatasetInput(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120)
    slug = serializers.SlugField(
        max_length=60,
        required=False,
        allow_blank=True,
        default="",
        help_text="Its name in files; made of the name if not given.",
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
    rows = serializers.IntegerField(source="row_total", allow_null=True, help_text="None yet: null.")
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
    quality = serializers.FloatField(allow_null=True, help_text="0 to 1; null is unscored.")
    content_hash = serializers.CharField()
    run_id = serializers.IntegerField(allow_null=True, help_text="The run that answered it.")
    record = serializers.SerializerMethodField()
    facts = serializers.SerializerMethodField(
        help_text="iterations: turns of the loop that answered; is_complete: it came to an answer; source_chunk_id: the passage it was asked about. "
        "Exports have them beside the record's fields."
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


class VersionInput(serializers.Serializer[Any]):
    status = serializers.ChoiceField(
        choices=RowStatus.choices,
        required=False,
        allow_blank=True,
        default="",
        help_text="Rows of this state alone.",
    )
    note = serializers.CharField(max_length=200, required=False, allow_blank=True, default="")

    class Meta:
        ref_name = "DatasetVersionCreate"


class VersionOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="What experiments, exports and safety suites name it by.")
    number = serializers.IntegerField(help_text="From 1, within the dataset.")
    content_hash = serializers.CharField(help_text="SHA-256 over the rows' hashes, in order.")
    row_count = serializers.IntegerField()
    manifest = serializers.DictField()
    signature = serializers.CharField()
    note = serializers.CharField()
    created_at = serializers.DateTimeField()

    class Meta:
        ref_name = "DatasetVersion"


class GenerationInput(serializers.Serializer[Any]):
    model = serializers.CharField(
        max_length=120, required=False, default="extractive", help_text="An id of the model list."
    )
    settings = serializers.DictField(
        help_text="collections [ids], rows, types {type: share}, difficulty {level: share}, judge_model, language (a tag such as de), personas [texts], styles [texts], max_turns, script [texts], keep_at, repair_at, "
        "weights, minima, max_refines, max_repairs, rounds, max_steps, concurrency, drivers, seed, row_usd, service_tier (standard, flex, priority), cache_ttl, background, "
        "delivery (now, or batch for half the price within a day for each turn of a model)."
    )
    budget_usd = serializers.DecimalField(
        max_digits=12, decimal_places=6, required=False, allow_null=True, default=None
    )
    probe = serializers.IntegerField(
        min_value=0,
        max_value=1000,
        required=False,
        default=0,
        help_text="Pause after so many ended items with an estimate; 0 goes on.",
    )

    class Meta:
        ref_name = "GenerationStart"


class GenerationResumeInput(serializers.Serializer[Any]):
    budget_usd = serializers.DecimalField(
        max_digits=12, decimal_places=6, required=False, allow_null=True, default=None
    )

    class Meta:
        ref_name = "GenerationResume"


class GenerationOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    dataset_id = serializers.IntegerField()
    model = serializers.CharField()
    settings = serializers.DictField(source="options")
    state = serializers.ChoiceField(choices=GenerationState.choices)
    reason = serializers.CharField(help_text="Why it waits or has ended.")
    wanted = serializers.IntegerField()
    kept = serializers.IntegerField()
    dropped = serializers.IntegerField()
    failed = serializers.IntegerField()
    estimate = serializers.DictField(help_text="low, middle, high in USD; empty before a probe.")
    budget_usd = serializers.DecimalField(max_digits=12, decimal_places=6, allow_null=True)
    spent_usd = serializers.SerializerMethodField()
    shortfall = serializers.ListField(child=serializers.DictField())
    manifest = serializers.DictField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Generation"

    def get_spent_usd(self, job: GenerationJob) -> str:
        if hasattr(job, "open_spent_usd"):  # a list has counted it for all its jobs at once
            return f"{job.spent_usd + (job.open_spent_usd or 0):.8f}"
        return f"{job_spend(job):.8f}"


class GenerationDetailOutput(GenerationOutput):
    batch = BatchRoundOutput(
        allow_null=True, help_text="What is with a provider at half price; null while nothing is."
    )

    class Meta:
        ref_name = "GenerationDetail"
