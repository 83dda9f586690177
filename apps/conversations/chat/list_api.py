"""REST of the search in one's conversations."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.chat.shapes import FoundOutput, SearchFilter
from apps.conversations.transcript.search import conversation_find
from web.drf.inputs import valid
from web.drf.pages import WholeList
from web.drf.views import TenantAPIView


class ConversationSearchView(TenantAPIView):
    """Search."""

    actions = {"GET": "conversation.read"}
    may_lag = frozenset({"GET"})
    pagination_class = WholeList

    @extend_schema(
        operation_id="conversations_search",
        tags=["conversations"],
        responses=FoundOutput(many=True),
        parameters=[
            OpenApiParameter(
                "q",
                str,
                required=True,
                description="Search words; each also finds longer words that begin with it.",
            )
        ],
    )
    def get(self, request: Request) -> Response:
        """Search your own conversations: titles, questions and answers. Returns the 30 most recently used."""
        query = valid(SearchFilter, request.query_params)["q"]
        found = conversation_find(actor=self.actor, query=query)
        return self.paginated(found, FoundOutput)
