"""REST of conversations, questions and runs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.chat.queue_shapes import QueuedOutput
from apps.conversations.chat.shapes import (
    AskInput,
    BranchesInput,
    ConversationInput,
    ConversationOutput,
    ConversationsFilter,
    ConversationUpdate,
    RetryInput,
    RunOutput,
    TurnOutput,
)
from apps.conversations.models import Conversation, QueuedQuestion, Turn
from apps.conversations.transcript import selectors
from apps.conversations.transcript.shown import events_shown, run_answer, run_watch, run_withheld
from apps.conversations.turns import bulk, conversations, queue
from apps.conversations.turns import services as turns_services
from apps.conversations.turns.narrowing import Narrowing
from apps.tools.approvals.shapes import DecisionInput, DecisionOutput
from basics.errors import Missing
from basics.event_stream import EVENT_STREAM, position_of
from erasure.models import Erasure
from runs import services as run_services
from runs.approvals.selectors import approval_get
from runs.models import Run
from runs.selectors import decision_pages, run_get
from runs.standing import while_allowed
from runs.stream import event_frames
from tenancy.actors import Actor
from toolloop.deferred import Decision
from web.api_erasure import ContentErasureInput, ContentErasureOutput, ContentErasureView
from web.drf.inputs import valid
from web.drf.pages import Pagination
from web.drf.shared import shown
from web.drf.streaming import EventStreamRenderer, StreamingAPIView
from web.drf.views import TenantAPIView

_KEYS = uuid.UUID("6f0e6c9c-64a5-4c35-a0c3-6a1d2f8f7b11")  # namespace of keys that are no UUIDs


class ConversationsView(TenantAPIView):
    """The caller's own conversations."""

    actions = {"GET": "conversation.read", "POST": "conversation.write"}
    may_lag = frozenset({"GET"})
    pagination_class = Pagination

    @extend_schema(
        operation_id="conversations_list",
        tags=["conversations"],
        responses=ConversationOutput(many=True),
        parameters=[
            OpenApiParameter(
                "archived", bool, description="Return archived conversations instead of the others."
            ),
            OpenApiParameter("project", int, description="Only those of this project."),
        ],
    )
    def get(self, request: Request) -> Response:
        """List conversations, newest first."""
        wanted = valid(ConversationsFilter, request.query_params)
        rows = selectors.conversation_list(actor=self.actor, archived=wanted["archived"])
        rows = rows.select_related("assistant")
        if "project" in wanted:
            rows = rows.filter(project=wanted["project"])
        return self.paginated(rows, ConversationOutput)

    @extend_schema(
        operation_id="conversations_create",
        tags=["conversations"],
        request=ConversationInput,
        responses={201: ConversationOutput},
    )
    def post(self, request: Request) -> Response:
        """Create an empty conversation."""
        values = valid(ConversationInput, request.data)
        row = conversations.conversation_create(tenant=self.tenant, actor=self.actor, **values)
        return Response(conversation_out(self, row.pk), status=status.HTTP_201_CREATED)


class ConversationView(TenantAPIView):
    """One conversation."""

    actions = {"GET": "conversation.read", "PATCH": "conversation.write", "DELETE": "conversation.write"}

    @extend_schema(operation_id="conversations_get", tags=["conversations"], responses=ConversationOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a conversation."""
        return Response(conversation_out(self, pk))

    @extend_schema(
        operation_id="conversations_update",
        tags=["conversations"],
        request=ConversationUpdate,
        responses=ConversationOutput,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change the title, whether it is pinned or archived, its project, or the collections that are searched."""
        conversation = selectors.conversation_get(actor=self.actor, pk=pk)
        values = valid(ConversationUpdate, request.data)
        who: dict[str, Any] = {"tenant": self.tenant, "actor": self.actor, "conversation": conversation}
        if "title" in values:
            conversations.conversation_rename(**who, title=values["title"])
        if "is_pinned" in values:
            conversations.conversation_pin(**who, is_pinned=values["is_pinned"])
        if "collections" in values:
            conversations.scope_set(**who, collections=values["collections"])
        several: dict[str, Any] = {"tenant": self.tenant, "actor": self.actor, "conversations": [pk]}
        if "project" in values:
            bulk.conversations_move(**several, project=values["project"])
        if "is_archived" in values:
            bulk.conversations_archive(**several, is_archived=values["is_archived"])
        return Response(conversation_out(self, pk))

    @extend_schema(operation_id="conversations_delete", tags=["conversations"], responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a conversation with its turns and runs."""
        conversation = selectors.conversation_get(actor=self.actor, pk=pk)
        conversations.conversation_delete(tenant=self.tenant, actor=self.actor, conversation=conversation)
        return Response(status=status.HTTP_204_NO_CONTENT)


class ConversationErasureView(ContentErasureView):
    """Erasing a conversation with everything that was made of it."""

    actions = {"GET": "conversation.write", "POST": "conversation.write"}
    kind = Erasure.Kind.CONVERSATION

    def subject(self, pk: int) -> Conversation:
        return selectors.conversation_get(actor=self.actor, pk=pk)

    @extend_schema(
        operation_id="conversations_erasure", tags=["conversations"], responses=ContentErasureOutput
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return how far the erasure is that you asked for, with its report."""
        return self.tell(pk)

    @extend_schema(
        operation_id="conversations_erase",
        tags=["conversations"],
        request=ContentErasureInput,
        responses={202: ContentErasureOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Erase a conversation, the files attached to it, and the dataset rows made of it.

        Deleting leaves these rows as they are. An older backup that is restored is erased again.
        """
        return self.ask(request, pk)


class TurnsView(TenantAPIView):
    """Questions and answers of a conversation."""

    actions = {"GET": "conversation.read", "POST": "conversation.write"}
    pagination_class = Pagination

    @extend_schema(
        operation_id="turns_list",
        tags=["conversations"],
        responses=TurnOutput(many=True),
        parameters=[
            OpenApiParameter(
                "branches",
                str,
                enum=["shown", "all"],
                description="`shown` (the default): the branch that ends with the conversation's `head_id`; `all`: every turn, a tree by `parent_id`.",
            )
        ],
    )
    def get(self, request: Request, pk: int) -> Response:
        """List the turns of the current branch, or of all branches, newest first."""
        conversation = selectors.conversation_get(actor=self.actor, pk=pk)
        every = valid(BranchesInput, request.query_params)["branches"] == "all"
        rows = selectors.turn_list(actor=self.actor, conversation=conversation, all_branches=every)
        return self.paginated(rows, TurnOutput)

    @extend_schema(
        operation_id="turns_create",
        tags=["conversations"],
        request=AskInput,
        responses={201: TurnOutput, 202: QueuedOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Ask a question; the answer is written in the background, see /runs/{id}/events. 402 if a budget is used up."""
        values = valid(AskInput, request.data)
        question: dict[str, Any] = {
            "tenant": self.tenant,
            "actor": self.actor,
            "conversation": Conversation(pk=pk, tenant=self.tenant),
            "text": values["text"],
            "client_id": values.get("client_id") or question_id(request),
            "model": values["model"],
            "assistant": values["assistant"],
            "attachments": values["attachments"],
            "narrowing": _narrowing(values["only"]),
            "compare_with": values["compare_with"],
        }
        if values["when_busy"] == "refuse":
            asked = turns_services.turn_submit(**question)
        else:
            queued = queue.question_queue(**question)
            if isinstance(queued, QueuedQuestion):
                return Response(QueuedOutput(queued).data, status=status.HTTP_202_ACCEPTED)
            asked = queued
        return Response(turn_out(self, asked), status=status.HTTP_201_CREATED)


class TurnView(TenantAPIView):
    """One turn."""

    actions = {"GET": "conversation.read"}

    @extend_schema(operation_id="turns_get", tags=["conversations"], responses=TurnOutput)
    def get(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Return a turn."""
        conversation = selectors.conversation_get(actor=self.actor, pk=pk)
        turn = selectors.turn_get(actor=self.actor, conversation=conversation, pk=turn_pk)
        return Response(TurnOutput(turn).data)


class TurnRetryView(TenantAPIView):
    """Ask again."""

    actions = {"POST": "conversation.write"}

    @extend_schema(
        operation_id="turns_retry", tags=["conversations"], request=RetryInput, responses=TurnOutput
    )
    def post(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Answer a branch's last question again in place, after its answer failed or was stopped."""
        conversation = selectors.conversation_get(actor=self.actor, pk=pk)
        turn = selectors.turn_get(actor=self.actor, conversation=conversation, pk=turn_pk)
        model = valid(RetryInput, request.data)["model"]
        turn = turns_services.turn_retry(tenant=self.tenant, actor=self.actor, turn=turn, model=model)
        return Response(turn_out(self, turn))


class RunView(TenantAPIView):
    """One run of the caller."""

    actions = {"GET": "run.read"}

    @extend_schema(operation_id="runs_get", tags=["runs"], responses=RunOutput)
    def get(self, request: Request, pk: int) -> Response:
        """Return a run."""
        return Response(run_out(self.actor, run_get(actor=self.actor, pk=pk)))


def run_out(actor: Actor, run: Run) -> Any:
    """Return a run's JSON form, its answer as the actor may read it."""
    found = run_withheld(actor, run)
    shown: Any = run  # the shape reads them beside the row's own columns
    shown.text, shown.marks = run_answer(run, found)
    data: dict[str, Any] = dict(RunOutput(shown).data)
    return data | {"answer": found.text(run.answer), "error_message": found.text(run.error_message)}


class RunStopView(TenantAPIView):
    """Stop a run."""

    actions = {"POST": "conversation.write"}

    @extend_schema(operation_id="runs_stop", tags=["runs"], request=None, responses={202: RunOutput})
    def post(self, request: Request, pk: int) -> Response:
        """Stop a run; its text so far is kept. Does nothing if it has already ended."""
        run = run_get(actor=self.actor, pk=pk)
        run = run_services.run_stop(tenant=self.tenant, actor=self.actor, run=run)
        return Response(run_out(self.actor, run), status=status.HTTP_202_ACCEPTED)


class DecisionsView(TenantAPIView):
    """What a run has waited for."""

    actions = {"GET": "run.read"}
    pagination_class = Pagination

    @extend_schema(operation_id="decisions_list", tags=["runs"], responses=DecisionOutput(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """List the calls a run is or was waiting for, newest first; `pending` ones can be decided."""
        run = run_get(actor=self.actor, pk=pk)
        return self.paginated(decision_pages(actor=self.actor, run=run), DecisionOutput)


class DecisionView(TenantAPIView):
    """One call that waits."""

    actions = {"POST": "conversation.write"}

    @extend_schema(
        operation_id="decisions_decide", tags=["runs"], request=DecisionInput, responses=DecisionOutput
    )
    def post(self, request: Request, pk: int, decision_pk: int) -> Response:
        """Approve (optionally with other arguments), reject or answer a call; after the last one the run continues."""
        values = valid(DecisionInput, request.data)
        waiting = approval_get(actor=self.actor, pk=decision_pk, run_id=pk)
        turns_services.call_decide(
            tenant=self.tenant,
            actor=self.actor,
            run=waiting.run,
            decision_id=decision_pk,
            decision=Decision(
                values["decision"],
                arguments=values["arguments"],
                reason=values["reason"],
                content=values["answer"],
            ),
        )
        return Response(DecisionOutput(approval_get(actor=self.actor, pk=decision_pk)).data)


class RunEventsView(StreamingAPIView):
    """Events of a run, as they happen."""

    actions = {"GET": "run.read"}
    renderer_classes = [EventStreamRenderer, JSONRenderer]

    @extend_schema(
        operation_id="runs_events",
        tags=["runs"],
        parameters=[
            OpenApiParameter("after", int, description="Continue after this event."),
            OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER),
        ],
        responses={
            (200, EVENT_STREAM): OpenApiResponse(
                OpenApiTypes.STR,
                description="Server-sent events: `event` is the kind (text, reasoning, step_started, step_reset, "
                "tool_started, tool_progress, tool_finished, tool_waiting, parked, decided, limit, finished), `id` its number, `data` JSON; `event: end` is the last.",
            )
        },
    )
    def get(self, request: Request, pk: int) -> StreamingHttpResponse:
        """Stream the events of a run from the beginning, or after a position; ends with the run."""
        run = run_get(actor=self.actor, pk=pk)
        after = position_of(request.headers, request.query_params)
        response = StreamingHttpResponse(
            while_allowed(
                event_frames(
                    self.tenant.pk, run.pk, after, partial(events_shown, run_watch(self.actor, run))
                ),
                actor=self.actor,
                right="run.read",
            ),
            content_type=EVENT_STREAM,
        )
        response["Cache-Control"] = "no-cache, no-transform"
        response["X-Accel-Buffering"] = "no"
        return response


def _narrowing(only: Mapping[str, Any] | None) -> Narrowing:
    return Narrowing(**{kind: tuple(named) for kind, named in (only or {}).items()})


def conversation_out(view: TenantAPIView, pk: int) -> dict[str, Any]:
    """Return a conversation as the API shows it. Raises Missing."""
    row = selectors.conversation_list(actor=view.actor, archived=None).filter(pk=pk).first()
    if row is None:
        raise Missing("conversation")
    return dict(ConversationOutput(row).data)


def turn_out(view: TenantAPIView, turn: Turn) -> dict[str, Any]:
    """Return a turn as the API shows it. Raises Missing."""
    if turn.asked:  # it was just made: nothing is to be read, nor withheld from who has said it
        return shown(TurnOutput, turn)
    conversation = Conversation(pk=turn.conversation_id, tenant=view.tenant)
    stored = selectors.turn_get(actor=view.actor, conversation=conversation, pk=turn.pk)
    return shown(TurnOutput, stored)


def question_id(request: Request) -> uuid.UUID:
    """Return the question's id as its ``Idempotency-Key`` names it, so that it is known for ever and not for a day.

    A request without one is a new question each time.
    """
    text = request.headers.get("Idempotency-Key", "").strip()
    if not text:
        return uuid.uuid4()
    try:
        return uuid.UUID(text)
    except ValueError:
        return uuid.uuid5(_KEYS, text)
