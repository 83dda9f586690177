"""The thumbs under an answer."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from apps.conversations.feedback import services
from apps.conversations.feedback.selectors import reasons_offered
from apps.conversations.models import Feedback
from apps.conversations.transcript import selectors
from web.requests import TenantRequest, allowed


@require_POST
@allowed("conversation.write")
def feedback(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Take what somebody thinks of an answer; an empty verdict takes it back. A verdict alone asks for a reason."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turn = selectors.turn_get(actor=request.actor, conversation=conversation, pk=turn_pk)
    who: Any = {"tenant": request.tenant, "actor": request.actor, "turn": turn}
    verdict, row = request.POST.get("verdict", ""), None
    if verdict:
        row = services.feedback_give(
            **who,
            verdict=verdict,
            reason=request.POST.get("reason", ""),
            comment=request.POST.get("comment", ""),
        )
    else:
        services.feedback_withdraw(**who)
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return render(request, "conversations/_feedback.html", _feedback(conversation, turn, row, request))


def _feedback(conversation: Any, turn: Any, row: Feedback | None, request: TenantRequest) -> dict[str, Any]:
    asks = row is not None and "reason" not in request.POST
    return {
        "conversation": conversation,
        "turn": {"pk": turn.pk, "run_id": turn.run_id, "feedback": row},
        "reasons": reasons_offered(turn, row.verdict).items() if row is not None and asks else None,
        "is_new": True,
    }
