"""How an answer came about: the page's view of its trace, and a tool's whole output."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.conversations.traces.selectors import trace_get
from apps.conversations.transcript import selectors
from apps.conversations.transcript.shown import run_withheld
from runs.selectors import call_output
from web.requests import TenantRequest, allowed


@require_GET
@allowed("conversation.read")
def run_trace(request: TenantRequest, tenant_slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Show how an answer of a conversation came about."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    selectors.turn_get(actor=request.actor, conversation=conversation, run_id=run_pk)
    trace = trace_get(actor=request.actor, run_pk=run_pk)
    return render(request, "conversations/_trace.html", {"trace": trace})


@require_GET
@allowed("conversation.read")
def run_output(request: TenantRequest, tenant_slug: str, pk: int, run_pk: int, call_pk: int) -> HttpResponse:
    """Show the whole text that a tool gave; its card shows the beginning."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turn = selectors.turn_get(actor=request.actor, conversation=conversation, run_id=run_pk)
    output = run_withheld(request.actor, turn.run).content(call_output(turn.run, call_pk))
    return HttpResponse(output, content_type="text/plain; charset=utf-8")
