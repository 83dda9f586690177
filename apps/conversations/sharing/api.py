"""REST of links to conversations, and of conversations as files."""

from __future__ import annotations

import uuid

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.sharing import export_services, services
from apps.conversations.sharing.selectors import limited_sources, share_list, shared_view
from apps.conversations.sharing.shapes import (
    ExportFilter,
    ExportOutput,
    SharedOutput,
    ShareMadeOutput,
    ShareOutput,
)
from apps.conversations.transcript.api import ConversationAPIView
from web.drf.inputs import valid
from web.drf.pages import Pagination


class SharesView(ConversationAPIView):
    """Links to a conversation."""

    actions = {"GET": "conversation.read", "POST": "conversation.write"}
    pagination_class = Pagination

    @extend_schema(operation_id="shares_list", tags=["conversations"], responses=ShareOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List active links, newest first, with who opened them."""
        rows = share_list(actor=self.actor, conversation=self.conversation(pk))
        return self.paginated(rows, ShareOutput)

    @extend_schema(
        operation_id="shares_create", tags=["conversations"], request=None, responses={201: ShareMadeOutput}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Create a link to the current branch as it is now; members of the workspace can open it."""
        conversation = self.conversation(pk)
        share = services.share_create(**self.who(), conversation=conversation)
        share.limited_sources = limited_sources(  # type: ignore[attr-defined]
            actor=self.actor, conversation=conversation
        )
        return Response(ShareMadeOutput(share).data, status=status.HTTP_201_CREATED)


class ShareView(ConversationAPIView):
    """One link."""

    actions = {"DELETE": "conversation.write"}

    @extend_schema(operation_id="shares_revoke", tags=["conversations"], responses={204: None})
    def delete(self, request: Request, pk: int, share_pk: int) -> Response:
        """Revoke a link."""
        services.share_revoke(**self.who(), conversation=self.conversation(pk), pk=share_pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SharedView(ConversationAPIView):
    """What a link shows."""

    actions = {"GET": "conversation.read"}

    @extend_schema(operation_id="shares_read", tags=["conversations"], responses=SharedOutput)
    def get(self, request: Request, key: uuid.UUID) -> Response:
        """Read a shared conversation, with the sources you can currently see."""
        share = services.share_open(**self.who(), key=key)
        return Response(SharedOutput(shared_view(actor=self.actor, share=share)).data)


class ConversationExportView(ConversationAPIView):
    """A conversation as a file."""

    actions = {"GET": "conversation.read"}

    @extend_schema(
        operation_id="conversations_export",
        tags=["conversations"],
        parameters=[ExportFilter],
        responses=ExportOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Export a conversation: all branches as JSON, or the current one as Markdown with its sources."""
        form = valid(ExportFilter, request.query_params)["form"]
        made = export_services.conversation_export(
            **self.who(), conversation=self.conversation(pk), form=form
        )
        return Response(ExportOutput(made).data)
