"""REST of files attached to a conversation."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.documents.uploads import posted_file
from apps.conversations.attachments import services
from apps.conversations.attachments.selectors import attachment_get, attachment_list
from apps.conversations.attachments.shapes import AttachmentInput, AttachmentOutput
from apps.conversations.transcript import selectors
from web.drf.pages import Pagination
from web.drf.views import TenantAPIView


class _AttachmentView(TenantAPIView):
    """Base of what belongs to the files of one conversation."""

    def who(self, pk: int) -> dict[str, Any]:
        """Return for whom services act, and where. Raises Missing."""
        conversation = selectors.conversation_get(actor=self.actor, pk=pk)
        return {"tenant": self.tenant, "actor": self.actor, "conversation": conversation}


class AttachmentsView(_AttachmentView):
    """Files of a conversation."""

    stores = True

    actions = {"GET": "conversation.read", "POST": "conversation.write"}
    pagination_class = Pagination
    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="attachments_list", tags=["conversations"], responses=AttachmentOutput(many=True)
    )
    def get(self, request: Request, pk: int) -> Response:
        """List the files of a conversation, newest first."""
        conversation = selectors.conversation_get(actor=self.actor, pk=pk)
        rows = attachment_list(actor=self.actor, conversation=conversation)
        return self.paginated(rows, AttachmentOutput)

    @extend_schema(
        operation_id="attachments_add",
        tags=["conversations"],
        request={"multipart/form-data": AttachmentInput},
        responses={201: AttachmentOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Attach a file; send its id in `attachments` with the next question. It is private to you and read immediately."""
        row = services.attachment_add(**self.who(pk), **posted_file(request))
        return Response(AttachmentOutput(row).data, status=status.HTTP_201_CREATED)


class AttachmentView(_AttachmentView):
    """One file."""

    actions = {"GET": "conversation.read", "DELETE": "conversation.write"}

    @extend_schema(operation_id="attachments_get", tags=["conversations"], responses=AttachmentOutput)
    def get(self, request: Request, pk: int, attachment_pk: int) -> Response:
        """Return a file with its reading progress."""
        conversation = selectors.conversation_get(actor=self.actor, pk=pk)
        row = attachment_get(actor=self.actor, conversation=conversation, pk=attachment_pk)
        return Response(AttachmentOutput(row).data)

    @extend_schema(operation_id="attachments_remove", tags=["conversations"], responses={204: None})
    def delete(self, request: Request, pk: int, attachment_pk: int) -> Response:
        """Remove a file that has not been sent with a question."""
        services.attachment_remove(**self.who(pk), pk=attachment_pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class AttachmentRetryView(_AttachmentView):
    """Another reading."""

    actions = {"POST": "conversation.write"}

    @extend_schema(
        operation_id="attachments_retry",
        tags=["conversations"],
        request=None,
        responses={202: AttachmentOutput},
    )
    def post(self, request: Request, pk: int, attachment_pk: int) -> Response:
        """Retry reading a file that could not be read."""
        row = services.attachment_retry(**self.who(pk), pk=attachment_pk)
        return Response(AttachmentOutput(row).data, status=status.HTTP_202_ACCEPTED)
