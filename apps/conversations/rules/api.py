"""REST of the rules for all conversations of a workspace."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.rules.instructions import instructions_get, instructions_set
from apps.conversations.rules.services import rules_get, rules_preview, rules_set
from apps.conversations.rules.shapes import (
    ConversationRulesInput,
    ConversationRulesOutput,
    InstructionsInput,
    InstructionsOutput,
    KeepDaysFilter,
    RulesPreviewOutput,
)
from apps.conversations.transcript.api import ConversationAPIView
from web.drf.inputs import valid


class ConversationRulesView(ConversationAPIView):
    """What the workspace says about all its conversations."""

    actions = {"GET": "audit.read", "PUT": "retention.manage"}

    @extend_schema(
        operation_id="conversations_rules", tags=["conversations"], responses=ConversationRulesOutput
    )
    def get(self, request: Request) -> Response:
        """Return how long conversations are kept, and whether a model names them."""
        return Response(ConversationRulesOutput(rules_get(self.tenant)).data)

    @extend_schema(
        operation_id="conversations_rules_set",
        tags=["conversations"],
        request=ConversationRulesInput,
        responses=ConversationRulesOutput,
    )
    def put(self, request: Request) -> Response:
        """Set these rules. How long conversations are kept is better set by `retention_rules_set`; it is the same rule."""
        values = valid(ConversationRulesInput, request.data)
        rules = rules_set(
            **self.who(),
            days=values.get("keep_days", ...),
            makes_titles=values["makes_titles"],
            support_model=values["support_model"],
        )
        return Response(ConversationRulesOutput(rules).data)


class InstructionsView(ConversationAPIView):
    """What the workspace tells every model first."""

    actions = {"GET": "conversation.read", "PUT": "instruction.manage"}

    @extend_schema(operation_id="instructions", tags=["conversations"], responses=InstructionsOutput)
    def get(self, request: Request) -> Response:
        """Return the workspace's instructions for models, and whether its people can have a memory."""
        return Response(InstructionsOutput(instructions_get(actor=self.actor)).data)

    @extend_schema(
        operation_id="instructions_set",
        tags=["conversations"],
        request=InstructionsInput,
        responses=InstructionsOutput,
    )
    def put(self, request: Request) -> Response:
        """Set them, from the next question on. Needs a signed-in admin: no API key can change what models are told."""
        values = valid(InstructionsInput, request.data)
        return Response(InstructionsOutput(instructions_set(**self.who(), **values)).data)


class ConversationRulesPreviewView(ConversationAPIView):
    """What a rule would delete."""

    actions = {"GET": "audit.read"}

    @extend_schema(
        operation_id="conversations_rules_preview",
        tags=["conversations"],
        deprecated=True,
        parameters=[KeepDaysFilter],
        responses=RulesPreviewOutput,
    )
    def get(self, request: Request) -> Response:
        """Return what a rule would delete now; nothing is changed. Use `retention_preview`, which counts the same."""
        days = valid(KeepDaysFilter, request.query_params)["keep_days"]
        return Response(RulesPreviewOutput(rules_preview(**self.who(), days=days)).data)
