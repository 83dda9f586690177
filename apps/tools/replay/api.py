"""REST of replays. The views hold no rules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.tools.replay.services import recorded_call_replay, recorded_run_replay
from web.drf.inputs import valid
from web.drf.views import TenantAPIView


class ReplayInput(serializers.Serializer[Any]):
    """How to replay a run."""

    ask_model = serializers.BooleanField(
        default=False, help_text="Ask the run's model again; this is billed like any request."
    )

    class Meta:
        ref_name = "ReplayInput"


class ReplayRowOutput(serializers.Serializer[Any]):
    """One thing, as it was recorded and as it would be now."""

    step = serializers.IntegerField()
    kind = serializers.CharField(
        help_text="For a run: says, calls, result, ends. For a call: tool, arguments, policy."
    )
    recorded = serializers.CharField()
    replayed = serializers.CharField()
    is_equal = serializers.BooleanField()

    class Meta:
        ref_name = "ReplayRow"


class ReplayOutput(serializers.Serializer[Any]):
    """A replay beside its record."""

    is_equal = serializers.BooleanField()
    diverged_at = serializers.IntegerField(allow_null=True, help_text="Place of the first row that differs.")
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Tools that are no longer available."
    )
    rows = ReplayRowOutput(many=True)

    class Meta:
        ref_name = "Replay"


class RunReplayView(TenantAPIView):
    """Replays of a run."""

    actions = {"POST": "run.read"}
    waits = True  # for the model, when it is asked

    @extend_schema(operation_id="runs_replay", tags=["tools"], request=ReplayInput, responses=ReplayOutput)
    def post(self, request: Request, pk: int) -> Response:
        """Replay one of your runs with recorded outputs; no tool runs, and no model is used unless you ask for it."""
        values = valid(ReplayInput, request.data)
        _, replay = recorded_run_replay(
            tenant=self.tenant, actor=self.actor, pk=pk, ask_model=values["ask_model"]
        )
        return Response(ReplayOutput(replay).data)


class CallReplayView(TenantAPIView):
    """Replays of a call."""

    actions = {"POST": "run.read"}

    @extend_schema(operation_id="tool_calls_replay", tags=["tools"], request=None, responses=ReplayOutput)
    def post(self, request: Request, pk: int) -> Response:
        """Check a recorded call against the current tool and rules, without running it."""
        _, replay = recorded_call_replay(actor=self.actor, pk=pk)
        return Response(ReplayOutput(replay).data)
