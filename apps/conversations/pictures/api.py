"""REST of pictures."""

from __future__ import annotations

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from apps.conversations.pictures.selectors import picture_get
from apps.conversations.pictures.views import picture_response
from apps.conversations.transcript.api import ConversationAPIView


class PictureView(ConversationAPIView):
    """One picture."""

    actions = {"GET": "conversation.read"}

    @extend_schema(
        operation_id="pictures_get",
        tags=["conversations"],
        responses={(200, "image/png"): OpenApiTypes.BINARY, (200, "image/jpeg"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, pk: int, picture_pk: int) -> HttpResponseBase:
        """Return a picture that a tool returned in this conversation."""
        row = picture_get(actor=self.actor, conversation=self.conversation(pk), pk=picture_pk)
        return picture_response(request._request, row)
