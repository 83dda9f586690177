"""REST of the search in one's conversations, and of changes to several of them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.chat.shapes import BulkInput, BulkOutput, FoundOutput, SearchFilter
from apps.conversations.transcript.search import conversation_find
from apps.conversations.turns import bulk
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


class ConversationsBulkView(TenantAPIView):
    """Several conversations at once."""

    actions = {"POST": "conversation.write"}

    @extend_schema(
        operation_id="conversations_bulk", tags=["conversations"], request=BulkInput, responses=BulkOutput
    )
    def post(self, request: Request) -> Response:
        """Move, archive or delete several conversations; all of them, or none if one isn't yours.

        A deletion can be undone for an hour with `undelete`. `DELETE /conversations/{id}` deletes at once.
        """
        values = valid(BulkInput, request.data)
        who: dict[str, Any] = {
            "tenant": self.tenant,
            "actor": self.actor,
            "conversations": values["conversations"],
        }
        what = values["do"]
        changed: list[int]
        if what == "move":
            changed = list(bulk.conversations_move(**who, project=values["project"]))
        elif what in ("archive", "unarchive"):
            changed = bulk.conversations_archive(**who, is_archived=what == "archive")
        elif what == "delete":
            changed = bulk.conversations_delete(**who)
        else:
            changed = bulk.conversations_undelete(**who)
        return Response({"changed": changed})
