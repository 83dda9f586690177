"""Pages' parts about attached files: give one, see how far its reading is, take it back, have it read again."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.collections.documents.uploads import posted_file
from apps.conversations.attachments import services as attachments_services
from apps.conversations.attachments.selectors import attachment_bytes, attachment_get
from apps.conversations.chat.composer import collections_read, project_read
from apps.conversations.display.attached_files import attachment_view, is_audio
from apps.conversations.models import Attachment, Conversation
from apps.conversations.transcript import selectors
from apps.conversations.turns import services as turns_services
from basics.errors import Missing
from web.requests import TenantRequest, allowed

_RANGE = re.compile(r"bytes=(\d{0,12})-(\d{0,12})", re.ASCII)


@require_POST
@allowed("conversation.write")
def begin(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Begin a conversation with a file, before its first question."""
    row = turns_services.conversation_begin(
        tenant=request.tenant,
        actor=request.actor,
        collections=collections_read(request),
        model=request.POST.get("model", ""),
        assistant=request.POST.get("assistant", ""),
        project=project_read(request),
        **posted_file(request),
    )
    return _chip(request, row)


@require_POST
@allowed("conversation.write")
def add(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Attach a file to a conversation; answer with its chip."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    row = attachments_services.attachment_add(
        tenant=request.tenant, actor=request.actor, conversation=conversation, **posted_file(request)
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
    attachments_services.attachment_remove(**_who(request, conversation), pk=attachment_pk)
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return HttpResponse(status=204)


@require_POST
@allowed("conversation.write")
def retry(request: TenantRequest, tenant_slug: str, pk: int, attachment_pk: int) -> HttpResponse:
    """Retry reading a file that could not be read."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    row = attachments_services.attachment_retry(**_who(request, conversation), pk=attachment_pk)
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return _chip(request, row)


@never_cache
@require_GET
@allowed("conversation.read")
def sound(request: TenantRequest, tenant_slug: str, pk: int, attachment_pk: int) -> HttpResponse:
    """Return a recording for the page's player, whole or the part that it asks for (RFC 9110, section 14)."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    row = _row(request, conversation, attachment_pk)
    if not is_audio(row) or row.document is None:
        raise Missing("attachment")
    content = attachment_bytes(row)
    headers = {"Accept-Ranges": "bytes", "Content-Disposition": "inline"}
    part = _RANGE.fullmatch(request.headers.get("Range", ""))
    if part is None or not any(part.groups()):
        return HttpResponse(content, content_type=row.media_type, headers=headers)
    size = len(content)
    first, last = (int(digits) if digits else None for digits in part.groups())
    start = max(0, size - (last or 0)) if first is None else first
    end = size - 1 if first is None or last is None else min(last, size - 1)
    if start > end:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    headers["Content-Range"] = f"bytes {start}-{end}/{size}"
    return HttpResponse(content[start : end + 1], status=206, content_type=row.media_type, headers=headers)


def _who(request: TenantRequest, conversation: Conversation) -> dict[str, Any]:
    return {"tenant": request.tenant, "actor": request.actor, "conversation": conversation}


def _row(request: TenantRequest, conversation: Conversation, pk: int) -> Attachment:
    return attachment_get(actor=request.actor, conversation=conversation, pk=pk)


def _chip(request: TenantRequest, row: Attachment) -> HttpResponse:
    return render(request, "conversations/_attachment.html", {"file": attachment_view(row)})
