"""The page's way to ask a version of an assistant that one is writing."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.conversations.assistants import selectors as reads
from apps.conversations.assistants.views import version_number
from apps.conversations.turns import services
from basics.errors import DomainError
from web.requests import TenantRequest, allowed


@require_POST
@allowed("assistant.write")
def attempt(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Ask a version in a conversation of one's own, published or not."""
    assistant = reads.assistant_get(actor=request.actor, pk=pk)
    try:
        client_id = uuid.UUID(request.POST.get("client_id", ""))
    except ValueError:
        client_id = uuid.uuid4()
    try:
        turn = services.conversation_ask(
            tenant=request.tenant,
            actor=request.actor,
            text=request.POST.get("text", ""),
            client_id=client_id,
            assistant=assistant.slug,
            assistant_version=version_number(request.POST.get("version", "")) or None,
        )
    except DomainError as error:
        if error.status in (403, 404):
            raise
        messages.error(request, error.message)
        return redirect("assistants:detail", tenant_slug, pk)
    return redirect("conversations:detail", tenant_slug, turn.conversation_id)
