"""REST of feedback: what one thinks of an answer, and the list of it."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.feedback import services
from apps.conversations.feedback.selectors import feedback_list
from apps.conversations.feedback.shapes import FeedbackFilter, FeedbackInput, FeedbackOutput
from apps.conversations.models import Turn
from apps.conversations.transcript import selectors
from apps.conversations.transcript.api import ConversationAPIView
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView


class TurnFeedbackView(ConversationAPIView):
    """What one thinks of an answer."""

    actions = {"PUT": "conversation.write", "DELETE": "conversation.write"}

    @extend_schema(
        operation_id="feedback_give", tags=["conversations"], request=FeedbackInput, responses=FeedbackOutput
    )
    def put(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Rate an answer; this replaces an earlier rating. Admins of the workspace can read it."""
        values = valid(FeedbackInput, request.data)
        row = services.feedback_give(**self.who(), turn=self._turn(pk, turn_pk), **values)
        stored = feedback_list(actor=self.actor).get(pk=row.pk)
        return Response(FeedbackOutput(stored).data)

    @extend_schema(operation_id="feedback_withdraw", tags=["conversations"], responses={204: None})
    def delete(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Remove your rating of an answer."""
        services.feedback_withdraw(**self.who(), turn=self._turn(pk, turn_pk))
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _turn(self, pk: int, turn_pk: int) -> Turn:
        return selectors.turn_get(actor=self.actor, conversation=self.conversation(pk), pk=turn_pk)


class FeedbackListView(TenantAPIView):
    """Feedback."""

    actions = {"GET": "conversation.read"}
    pagination_class = Pagination

    @extend_schema(
        operation_id="feedback_list",
        tags=["conversations"],
        parameters=[FeedbackFilter],
        responses=FeedbackOutput(many=True),
    )
    def get(self, request: Request) -> Response:
        """List feedback with questions and answers, newest first: your own, or everyone's if you can read the audit log."""
        verdict = valid(FeedbackFilter, request.query_params)["verdict"]
        return self.paginated(feedback_list(actor=self.actor, verdict=verdict), FeedbackOutput)
