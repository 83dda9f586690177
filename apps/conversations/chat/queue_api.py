"""REST of what is not sent yet: drafts, and questions that wait for the answer under way."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.chat.queue_shapes import DraftInput, QueuedOutput, QueuedUpdate
from apps.conversations.transcript import selectors
from apps.conversations.transcript.api import ConversationAPIView
from apps.conversations.turns import drafts, queue
from web.drf.inputs import valid
from web.drf.pages import Pagination


class DraftView(ConversationAPIView):
    """What is typed and not sent."""

    actions = {"PUT": "conversation.write"}

    @extend_schema(
        operation_id="conversations_draft", tags=["conversations"], request=DraftInput, responses={204: None}
    )
    def put(self, request: Request, pk: int) -> Response:
        """Save text that is typed but not sent; sending it as a question clears the draft."""
        text = valid(DraftInput, request.data)["text"]
        drafts.draft_set(**self.who(), conversation=self.conversation(pk), text=text)
        return Response(status=status.HTTP_204_NO_CONTENT)


class QueueView(ConversationAPIView):
    """Questions that wait for the answer under way."""

    actions = {"GET": "conversation.read"}
    pagination_class = Pagination

    @extend_schema(operation_id="queue_list", tags=["conversations"], responses=QueuedOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List queued questions, newest first; they are asked oldest first. `turns_create` adds to them."""
        rows = selectors.queued_list(actor=self.actor, conversation=self.conversation(pk))
        return self.paginated(rows, QueuedOutput)


class QueuedView(ConversationAPIView):
    """A question that waits."""

    actions = {"PATCH": "conversation.write", "DELETE": "conversation.write"}

    @extend_schema(
        operation_id="queue_update", tags=["conversations"], request=QueuedUpdate, responses=QueuedOutput
    )
    def patch(self, request: Request, pk: int, queued_pk: int) -> Response:
        """Change a queued question."""
        text = valid(QueuedUpdate, request.data)["text"]
        row = queue.queued_edit(**self.who(), conversation=self.conversation(pk), pk=queued_pk, text=text)
        return Response(QueuedOutput(row).data)

    @extend_schema(operation_id="queue_remove", tags=["conversations"], responses={204: None})
    def delete(self, request: Request, pk: int, queued_pk: int) -> Response:
        """Remove a queued question."""
        queue.queued_remove(**self.who(), conversation=self.conversation(pk), pk=queued_pk)
        return Response(status=status.HTTP_204_NO_CONTENT)
