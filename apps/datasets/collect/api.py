"""REST of rows from conversations and feedback. The views hold no rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.transcript.selectors import conversation_get
from apps.datasets.collect import services
from apps.datasets.collect.services import Collected
from apps.datasets.collect.shapes import CollectedOutput, FromConversationInput, FromFeedbackInput
from apps.datasets.models import Dataset
from apps.datasets.rows import selectors
from apps.datasets.rows.services import RowsAdded
from web.drf.inputs import valid
from web.drf.views import TenantAPIView

_WRITE = "dataset.write"


class _Base(TenantAPIView):
    def _dataset(self, pk: int) -> Dataset:
        return selectors.dataset_get(actor=self.actor, pk=pk)

    def _answer(self, found: Sequence[Collected], made: RowsAdded | None) -> Response:
        values = {
            "rows": [_shown(one) for one in found],
            "created": made.created if made else [],
            "duplicates": made.duplicates if made else 0,
        }
        return Response(CollectedOutput(values).data)


class FromConversationView(_Base):
    """Rows from a conversation."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="dataset_rows_from_conversation",
        tags=["datasets"],
        request=FromConversationInput,
        responses=CollectedOutput,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Add answers from one of your conversations as redacted rows to review; a trial only previews them."""
        dataset, values = self._dataset(pk), valid(FromConversationInput, request.data)
        talk = conversation_get(actor=self.actor, pk=values["conversation"])
        found = services.turns_collect(actor=self.actor, conversation_pk=talk.pk, turn_pks=values["turns"])
        made = None
        if not values["is_trial"]:
            made = services.rows_collect(
                tenant=self.tenant,
                actor=self.actor,
                dataset=dataset,
                conversation=talk,
                turn_pks=values["turns"],
            )
        return self._answer(found, made)


class FromFeedbackView(_Base):
    """Rows from feedback."""

    actions = {"POST": _WRITE}

    @extend_schema(
        operation_id="dataset_rows_from_feedback",
        tags=["datasets"],
        request=FromFeedbackInput,
        responses=CollectedOutput,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Add rated answers as redacted rows to review; a trial only previews them."""
        dataset, values = self._dataset(pk), valid(FromFeedbackInput, request.data)
        found = services.feedback_collect(actor=self.actor, feedback_pks=values["feedback"])
        made = None
        if not values["is_trial"]:
            made = services.feedback_rows_collect(
                tenant=self.tenant, actor=self.actor, dataset=dataset, feedback_pks=values["feedback"]
            )
        return self._answer(found, made)


def _shown(one: Collected) -> dict[str, Any]:
    return {
        "turn": one.turn_id,
        "feedback": one.feedback.pk if one.feedback else None,
        "verdict": one.verdict,
        "reason": one.feedback.reason if one.feedback else "",
        "question": one.after.question,
        "answer": one.after.answer,
        "changes": [{"name": n, "before": old, "after": new} for n, old, new in one.changed],
        "hidden": one.hidden,
    }
