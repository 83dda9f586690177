"""REST of traces: how an answer came about."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.traces.selectors import trace_get
from runs.models import RunStatus
from web.drf.views import TenantAPIView


class TraceHitOutput(serializers.Serializer[Any]):
    rank = serializers.IntegerField()
    chunk_id = serializers.IntegerField()
    document_id = serializers.IntegerField(allow_null=True)
    document = serializers.CharField()
    page = serializers.IntegerField(allow_null=True)
    score = serializers.FloatField(allow_null=True)
    vector_rank = serializers.IntegerField(allow_null=True, help_text="Place in the search by meaning.")
    lexical_rank = serializers.IntegerField(allow_null=True, help_text="Place in the search by words.")
    exact_rank = serializers.IntegerField(allow_null=True, help_text="Place among exact codes and numbers.")
    citation = serializers.IntegerField(allow_null=True, help_text="Number of its citation.")

    class Meta:
        ref_name = "TraceHit"


class TraceCallOutput(serializers.Serializer[Any]):
    id = serializers.CharField()
    parent_id = serializers.CharField(help_text="The call that made it; empty if the model did.")
    name = serializers.CharField()
    status = serializers.CharField()
    error_code = serializers.CharField()
    arguments = serializers.JSONField(allow_null=True, help_text="Secrets are masked.")
    decision = serializers.CharField(help_text="The policy's decision: allow, ask or deny.")
    decision_why = serializers.CharField()
    summary = serializers.CharField()
    started_at = serializers.DateTimeField()
    duration_ms = serializers.IntegerField(allow_null=True)
    results = TraceHitOutput(many=True, help_text="What a search found, best first.")

    class Meta:
        ref_name = "TraceCall"


class TraceStepOutput(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    model = serializers.CharField()
    is_by_rule = serializers.BooleanField(help_text="No model was asked for this turn.")
    stop = serializers.CharField()
    reasoning = serializers.CharField()
    input_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    cost_usd = serializers.DecimalField(max_digits=14, decimal_places=8, allow_null=True)
    service_tier = serializers.CharField(
        help_text="The provider's service tier it was priced by; empty for the default."
    )
    finished_at = serializers.DateTimeField()
    calls = TraceCallOutput(many=True)

    class Meta:
        ref_name = "TraceStep"


class TracePlanStepOutput(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    action = serializers.CharField()
    description = serializers.CharField()
    status = serializers.CharField(help_text="pending, running, waiting, ok, error or skipped.")

    class Meta:
        ref_name = "TracePlanStep"


class TracePlanOutput(serializers.Serializer[Any]):
    reasoning = serializers.CharField()
    attempt = serializers.IntegerField(help_text="1 for the first plan; higher if it was revised.")
    steps = TracePlanStepOutput(many=True)

    class Meta:
        ref_name = "TracePlan"


class TraceOutput(serializers.Serializer[Any]):
    run_id = serializers.IntegerField()
    model = serializers.CharField()
    status = serializers.ChoiceField(choices=RunStatus.choices)
    question = serializers.CharField(help_text="Empty for a run outside a conversation.")
    searched_for = serializers.CharField(
        help_text="The question as it was rewritten for the first search; empty: as it was asked."
    )
    plan = TracePlanOutput(allow_null=True)
    steps = TraceStepOutput(many=True, help_text="The model's turns.")
    removed_citations = serializers.IntegerField()
    limit_reached = serializers.CharField()
    usage = serializers.DictField(child=serializers.IntegerField())
    cost_usd = serializers.DecimalField(max_digits=12, decimal_places=6, allow_null=True)
    queued_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)

    class Meta:
        ref_name = "Trace"


class RunTraceView(TenantAPIView):
    """How one of the caller's answers came about."""

    actions = {"GET": "run.read"}

    @extend_schema(operation_id="runs_trace", tags=["runs"], responses=TraceOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return what was searched for and found, turn by turn, with calls, tokens, cost and times."""
        return Response(TraceOutput(trace_get(actor=self.actor, run_pk=pk)).data)
