"""REST of links to conversations, and of conversations as files."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.documents.shapes import UploadOutput
from apps.conversations.pictures.views import picture_response
from apps.conversations.sharing import export_services, services
from apps.conversations.sharing.papers import MEDIA_TYPES
from apps.conversations.sharing.selectors import (
    limited_sources,
    share_get,
    share_list,
    shared_picture,
    shared_view,
)
from apps.conversations.sharing.shapes import (
    AnswerFileFilter,
    AnswerSaveInput,
    ExportFilter,
    ExportOutput,
    FileFilter,
    SharedOutput,
    ShareMadeOutput,
    ShareOutput,
)
from apps.conversations.sharing.views import file_response
from apps.conversations.transcript import selectors
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


class SharedPictureView(ConversationAPIView):
    """A picture that a link shows."""

    actions = {"GET": "conversation.read"}

    @extend_schema(
        operation_id="shares_picture",
        tags=["conversations"],
        responses={(200, "image/png"): OpenApiTypes.BINARY, (200, "image/jpeg"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, key: uuid.UUID, picture_pk: int) -> HttpResponseBase:
        """Return a picture of a shared conversation."""
        share = share_get(actor=self.actor, key=key)
        row = shared_picture(actor=self.actor, share=share, pk=picture_pk)
        return picture_response(request._request, row)


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


def _files(*forms: str) -> dict[tuple[int, str], Any]:
    return {(200, MEDIA_TYPES[form].partition(";")[0]): OpenApiTypes.BINARY for form in forms}


class ConversationFileView(ConversationAPIView):
    """A conversation as a document."""

    actions = {"GET": "conversation.read"}

    @extend_schema(
        operation_id="conversations_file",
        tags=["conversations"],
        parameters=[FileFilter],
        responses=_files("docx", "pdf"),
    )
    def get(self, request: Request, pk: int) -> HttpResponse:
        """Export the current branch as a Word or PDF file; its sources are footnotes with the quoted words."""
        form = valid(FileFilter, request.query_params)["form"]
        return file_response(
            export_services.conversation_file(**self.who(), conversation=self.conversation(pk), form=form)
        )


class AnswerFileView(ConversationAPIView):
    """An answer as a document."""

    actions = {"GET": "conversation.read"}

    @extend_schema(
        operation_id="turns_file",
        tags=["conversations"],
        parameters=[AnswerFileFilter],
        responses=_files("docx", "pdf", "md"),
    )
    def get(self, request: Request, pk: int, turn_pk: int) -> HttpResponse:
        """Export one answer as a Word, PDF or Markdown file with its sources."""
        form = valid(AnswerFileFilter, request.query_params)["form"]
        conversation = self.conversation(pk)
        turn = selectors.turn_get(actor=self.actor, conversation=conversation, pk=turn_pk)
        return file_response(
            export_services.answer_file(**self.who(), conversation=conversation, turn=turn, form=form)
        )


class AnswerSaveView(ConversationAPIView):
    """An answer as a document of a collection."""

    stores = True
    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="turns_save",
        tags=["conversations"],
        request=AnswerSaveInput,
        responses={201: UploadOutput, 200: UploadOutput},
    )
    def post(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Add an answer with its sources to a collection as a document.

        Whoever can read the collection can read it. The same answer again returns the existing document (200).
        """
        values = valid(AnswerSaveInput, request.data)
        conversation = self.conversation(pk)
        turn = selectors.turn_get(actor=self.actor, conversation=conversation, pk=turn_pk)
        kept = export_services.answer_save(
            **self.who(),
            conversation=conversation,
            turn=turn,
            collection_pk=values["collection"],
            form=values["form"],
            name=values["name"],
        )
        kept.document.created = kept.created  # type: ignore[attr-defined]
        return Response(
            UploadOutput(kept.document).data,
            status=status.HTTP_201_CREATED if kept.created else status.HTTP_200_OK,
        )
