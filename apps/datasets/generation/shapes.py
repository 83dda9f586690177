"""What the REST API of generation jobs takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.datasets.generation.claiming import job_spend
from apps.datasets.models import (
    GenerationJob,
    GenerationState,
)
from web.drf.batches import BatchRoundOutput


class GenerationInput(serializers.Serializer[Any]):
    model = serializers.CharField(
        max_length=120, required=False, default="extractive", help_text="An id from the model list."
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
        help_text="Pause with an estimate after this many finished items; 0: don't pause.",
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
    reason = serializers.CharField(help_text="Why it is waiting or has ended.")
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
    batch = BatchRoundOutput(allow_null=True, help_text="Half-price batches at the provider; null if none.")

    class Meta:
        ref_name = "GenerationDetail"
