"""What the REST API of approvals takes and gives."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from runs.approvals.argument_changes import argument_changes
from runs.models import ApproverKind, DecisionStatus, PendingDecision

_BIGINT = 2**63 - 1


class DecisionInput(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(choices=["approve", "reject", "answer"])
    arguments = serializers.DictField(
        required=False,
        allow_null=True,
        default=None,
        help_text="With approve: run the call with these instead. They are checked like the model's own.",
    )
    reason = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=4000,
        help_text="With reject: what the model reads.",
    )
    answer = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=200_000,
        help_text="With answer: the result of the call.",
    )


class HandOverInput(serializers.Serializer[Any]):
    to = serializers.IntegerField(min_value=1, max_value=_BIGINT, help_text="Id of the person.")


class ChangeOutput(serializers.Serializer[Any]):
    path = serializers.CharField(help_text="Such as `to.name` or `rows[2]`.")
    kind = serializers.ChoiceField(choices=["changed", "added", "removed"])
    before = serializers.CharField(help_text="JSON text; empty if there was none.")
    after = serializers.CharField(help_text="JSON text; empty if there is none.")

    class Meta:
        ref_name = "ArgumentChange"


class DecisionOutput(serializers.Serializer[PendingDecision]):
    id = serializers.IntegerField()
    run_id = serializers.IntegerField()
    step = serializers.IntegerField()
    call_id = serializers.CharField()
    name = serializers.CharField(help_text="The tool.")
    arguments = serializers.JSONField(help_text="As the model wrote them.")
    kind = serializers.ChoiceField(choices=PendingDecision.Kind.choices)
    reason = serializers.CharField(help_text="The tool's message to the approver.")
    status = serializers.ChoiceField(choices=DecisionStatus.choices)
    requested_by_id = serializers.IntegerField(source="run.user_id", allow_null=True)
    approver_kind = serializers.ChoiceField(
        choices=ApproverKind.choices,
        help_text="Who decides: the requester, someone else with a role or a higher one, or one person.",
    )
    approver = serializers.CharField(help_text="The role, or the id of the person.")
    assigned_to_id = serializers.IntegerField(allow_null=True, help_text="The member it was handed over to.")
    needs_reason = serializers.BooleanField(help_text="Rejecting requires a reason.")
    edited_arguments = serializers.JSONField(allow_null=True)
    changes = serializers.SerializerMethodField(help_text="What was edited.")
    decision_reason = serializers.CharField()
    decided_by_id = serializers.IntegerField(allow_null=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()

    class Meta:
        ref_name = "Decision"

    @extend_schema_field(ChangeOutput(many=True))
    def get_changes(self, row: PendingDecision) -> list[dict[str, Any]]:
        return [asdict(c) for c in argument_changes(row.arguments, row.edited_arguments)]
