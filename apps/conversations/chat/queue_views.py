"""Drafts, and questions that wait for the answer under way."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.conversations.chat.composer import client_id_read
from apps.conversations.chat.views import queue_fragment
from apps.conversations.transcript import selectors
from apps.conversations.turns import drafts
from apps.conversations.turns import queue as turns_queue
from web.requests import TenantRequest, allowed


@require_POST
@allowed("conversation.write")
def draft(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Keep what is typed and not sent."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    drafts.draft_set(
        tenant=request.tenant,
        actor=request.actor,
        conversation=conversation,
        text=request.POST.get("text", ""),
        client_id=client_id_read(request),
    )
    return HttpResponse(status=204)


@never_cache
@require_GET
@allowed("conversation.read")
def queue(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Return the questions that wait, and turns that came after the one the page shows last (``?after=``)."""
    return queue_fragment(request, pk)


@require_POST
@allowed("conversation.write")
def queue_remove(request: TenantRequest, tenant_slug: str, pk: int, queued_pk: int) -> HttpResponse:
    """Remove a queued question."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turns_queue.queued_remove(
        tenant=request.tenant, actor=request.actor, conversation=conversation, pk=queued_pk
    )
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return queue_fragment(request, pk)


@require_POST
@allowed("conversation.write")
def queue_ask(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Ask the oldest question that waits, now."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turns_queue.queued_ask(tenant=request.tenant, actor=request.actor, conversation=conversation)
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return queue_fragment(request, pk)
