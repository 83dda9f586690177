"""Pages' parts about attached files: give one, see how far its reading is, take it back, have it read again."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.collections.uploads import posted_file
from apps.conversations import selectors, services
from apps.conversations.attachments import attachment_get, attachment_view
from apps.conversations.composer import collections_read
from apps.conversations.models import Attachment, Conversation
from web.requests import TenantRequest, allowed


@require_POST
@allowed("conversation.write")
def begin(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Begin a conversation with a file, before its first question."""
    row = services.conversation_begin(
        tenant=request.tenant,
        actor=request.actor,
        collections=collections_read(request),
        model=request.POST.get("model", ""),
        assistant=request.POST.get("assistant", ""),
        **posted_file(request),
    )
    return _chip(request, row)


@require_POST
@allowed("conversation.write")
def add(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Attach a file to a conversation; answer with its chip."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    row = services.attachment_add(
        tenant=request.tenant,
        actor=request.actor,
        conversation=conversation,
        **posted_file(request),
    )
    return _chip(request, row)


@never_cache
@require_GET
@allowed("conversation.read")
def chip(request: TenantRequest, tenant_slug: str, pk: int, attachment_pk: int) -> HttpResponse:
    """Return the chip of a file as it is now."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    return _chip(request, _row(request, conversation, attachment_pk))


@require_POST
@allowed("conversation.write")
def remove(request: TenantRequest, tenant_slug: str, pk: int, attachment_pk: int) -> HttpResponse:
    """Take back a file that was not sent."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    services.attachment_remove(**_who(request, conversation), pk=attachment_pk)
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return HttpResponse(status=204)


@require_POST
@allowed("conversation.write")
def retry(request: TenantRequest, tenant_slug: str, pk: int, attachment_pk: int) -> HttpResponse:
    """Read a file again that could not be read."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    row = services.attachment_retry(**_who(request, conversation), pk=attachment_pk)
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return _chip(request, row)


def _who(request: TenantRequest, conversation: Conversation) -> dict[str, Any]:
    return {"tenant": request.tenant, "actor": request.actor, "conversation": conversation}


def _row(request: TenantRequest, conversation: Conversation, pk: int) -> Attachment:
    return attachment_get(actor=request.actor, conversation=conversation, pk=pk)


def _chip(request: TenantRequest, row: Attachment) -> HttpResponse:
    return render(request, "conversations/_attachment.html", {"file": attachment_view(row)})
