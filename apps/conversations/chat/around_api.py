"""REST of what stands around a conversation: drafts, waiting questions, feedback, shares, exports, search, rules."""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.chat.around_shapes import (
    ConversationRulesInput,
    ConversationRulesOutput,
    DraftInput,
    ExportFilter,
    ExportOutput,
    FeedbackFilter,
    FeedbackInput,
    FeedbackOutput,
    FoundOutput,
    KeepDaysFilter,
    QueuedOutput,
    QueuedUpdate,
    RulesPreviewOutput,
    SearchFilter,
    SharedOutput,
    ShareMadeOutput,
    ShareOutput,
)
from apps.conversations.feedback import services as feedback_services
from apps.conversations.feedback.selectors import feedback_list
from apps.conversations.models import Conversation, Turn
from apps.conversations.sharing import export_services
from apps.conversations.sharing import services as sharing_services
from apps.conversations.sharing.selectors import limited_sources, share_list, shared_view
from apps.conversations.transcript import selectors
from apps.conversations.transcript.search import conversation_find
from apps.conversations.turns import drafts, queue
from apps.conversations.turns.retention import rules_get, rules_preview, rules_set
from web.drf.inputs import valid
from web.drf.pages import Pagination, WholeList
from web.drf.views import TenantAPIView

_BOTH = {"GET": "conversation.read", "POST": "conversation.write"}


class _AroundView(TenantAPIView):
    """Base of what belongs to one conversation."""

    def conversation(self, pk: int) -> Conversation:
        """Return the actor's conversation. Raises Missing."""
        return selectors.conversation_get(actor=self.actor, pk=pk)

    def who(self) -> dict[str, Any]:
        """Return for whom services act."""
        return {"tenant": self.tenant, "actor": self.actor}


class DraftView(_AroundView):
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


class QueueView(_AroundView):
    """Questions that wait for the answer under way."""

    actions = {"GET": "conversation.read"}
    pagination_class = Pagination

    @extend_schema(operation_id="queue_list", tags=["conversations"], responses=QueuedOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List queued questions, newest first; they are asked oldest first. `turns_create` adds to them."""
        rows = selectors.queued_list(actor=self.actor, conversation=self.conversation(pk))
        return self.paginated(rows, QueuedOutput)


class QueuedView(_AroundView):
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


class TurnFeedbackView(_AroundView):
    """What one thinks of an answer."""

    actions = {"PUT": "conversation.write", "DELETE": "conversation.write"}

    @extend_schema(
        operation_id="feedback_give", tags=["conversations"], request=FeedbackInput, responses=FeedbackOutput
    )
    def put(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Rate an answer; this replaces an earlier rating. Admins of the workspace can read it."""
        values = valid(FeedbackInput, request.data)
        row = feedback_services.feedback_give(**self.who(), turn=self._turn(pk, turn_pk), **values)
        stored = feedback_list(actor=self.actor).get(pk=row.pk)
        return Response(FeedbackOutput(stored).data)

    @extend_schema(operation_id="feedback_withdraw", tags=["conversations"], responses={204: None})
    def delete(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Remove your rating of an answer."""
        feedback_services.feedback_withdraw(**self.who(), turn=self._turn(pk, turn_pk))
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


class SharesView(_AroundView):
    """Links to a conversation."""

    actions = _BOTH
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
        share = sharing_services.share_create(**self.who(), conversation=conversation)
        share.limited_sources = limited_sources(  # type: ignore[attr-defined]
            actor=self.actor, conversation=conversation
        )
        return Response(ShareMadeOutput(share).data, status=status.HTTP_201_CREATED)


class ShareView(_AroundView):
    """One link."""

    actions = {"DELETE": "conversation.write"}

    @extend_schema(operation_id="shares_revoke", tags=["conversations"], responses={204: None})
    def delete(self, request: Request, pk: int, share_pk: int) -> Response:
        """Revoke a link."""
        sharing_services.share_revoke(**self.who(), conversation=self.conversation(pk), pk=share_pk)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SharedView(_AroundView):
    """What a link shows."""

    actions = {"GET": "conversation.read"}

    @extend_schema(operation_id="shares_read", tags=["conversations"], responses=SharedOutput)
    def get(self, request: Request, key: uuid.UUID) -> Response:
        """Read a shared conversation, with the sources you can currently see."""
        share = sharing_services.share_open(**self.who(), key=key)
        return Response(SharedOutput(shared_view(actor=self.actor, share=share)).data)


class ConversationExportView(_AroundView):
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


class ConversationRulesView(_AroundView):
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


class ConversationRulesPreviewView(_AroundView):
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
