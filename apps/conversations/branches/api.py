"""REST of branches: edit a question, answer it once more, go on, choose a branch or an answer, fork. The views hold no rules."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.branches import services
from apps.conversations.chat.api import conversation_out, question_id, turn_out
from apps.conversations.chat.shapes import AgainInput, ConversationOutput, KeepInput, TurnInput, TurnOutput
from apps.conversations.models import Turn
from apps.conversations.transcript import selectors
from web.drf.inputs import valid
from web.drf.views import TenantAPIView


class _TurnActionView(TenantAPIView):
    """Base of what is done to one turn."""

    actions = {"POST": "conversation.write"}

    def turn(self, pk: int, turn_pk: int) -> Turn:
        """Return the turn. Raises Missing."""
        conversation = selectors.conversation_get(actor=self.actor, pk=pk)
        turn = selectors.turn_get(actor=self.actor, conversation=conversation, pk=turn_pk)
        turn.conversation = conversation
        return turn

    def asked(self, request: Request, values: dict[str, Any]) -> dict[str, Any]:
        """Return what every new question needs."""
        return {
            "tenant": self.tenant,
            "actor": self.actor,
            "client_id": values.get("client_id") or question_id(request),
            "model": values["model"],
        }


class TurnEditView(_TurnActionView):
    """Ask in other words."""

    @extend_schema(
        operation_id="turns_edit", tags=["conversations"], request=TurnInput, responses={201: TurnOutput}
    )
    def post(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Ask an edited question in a new branch; the original turn stays as it was."""
        values = valid(TurnInput, request.data)
        asked = self.asked(request, values)
        turn = services.turn_edit(
            **asked,
            turn=self.turn(pk, turn_pk),
            text=values["text"],
            assistant=values["assistant"],
            attachments=values["attachments"],
        )
        return Response(turn_out(self, turn), status=status.HTTP_201_CREATED)


class TurnRegenerateView(_TurnActionView):
    """Answer once more."""

    @extend_schema(
        operation_id="turns_regenerate",
        tags=["conversations"],
        request=AgainInput,
        responses={201: TurnOutput},
    )
    def post(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Answer a question again in a new branch; the original turn stays as it was."""
        asked = self.asked(request, valid(AgainInput, request.data))
        turn = services.turn_regenerate(**asked, turn=self.turn(pk, turn_pk))
        return Response(turn_out(self, turn), status=status.HTTP_201_CREATED)


class TurnContinueView(_TurnActionView):
    """Go on."""

    @extend_schema(
        operation_id="turns_continue", tags=["conversations"], request=AgainInput, responses={201: TurnOutput}
    )
    def post(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Continue an answer that was stopped, or reached a limit, in a new turn."""
        asked = self.asked(request, valid(AgainInput, request.data))
        turn = services.turn_continue(**asked, turn=self.turn(pk, turn_pk))
        return Response(turn_out(self, turn), status=status.HTTP_201_CREATED)


class TurnChooseView(_TurnActionView):
    """Choose a branch."""

    @extend_schema(
        operation_id="turns_choose", tags=["conversations"], request=None, responses=ConversationOutput
    )
    def post(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Show the newest branch that goes through a turn; the next question follows its end."""
        services.turn_choose(tenant=self.tenant, actor=self.actor, turn=self.turn(pk, turn_pk))
        return Response(conversation_out(self, pk))


class TurnKeepView(_TurnActionView):
    """Keep one of two answers."""

    @extend_schema(
        operation_id="turns_keep", tags=["conversations"], request=KeepInput, responses=ConversationOutput
    )
    def post(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Continue with one of two answers that were asked for with `compare_with`; the other one is a branch.

        If the other answer is still in progress, it stops.
        """
        services.turn_keep(
            tenant=self.tenant,
            actor=self.actor,
            turn=self.turn(pk, turn_pk),
            gives_feedback=valid(KeepInput, request.data)["feedback"],
        )
        return Response(conversation_out(self, pk))


class TurnForkView(_TurnActionView):
    """Fork."""

    @extend_schema(
        operation_id="turns_fork", tags=["conversations"], request=None, responses={201: ConversationOutput}
    )
    def post(self, request: Request, pk: int, turn_pk: int) -> Response:
        """Start a new conversation with a copy of the branch up to and including a turn."""
        fork = services.conversation_fork(tenant=self.tenant, actor=self.actor, turn=self.turn(pk, turn_pk))
        return Response(conversation_out(self, fork.pk), status=status.HTTP_201_CREATED)
