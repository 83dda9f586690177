"""Pages of shares and exports."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.collections.display.selectors import collection_list
from apps.conversations.models import Conversation, Turn
from apps.conversations.pictures.views import picture_response
from apps.conversations.sharing import export_services, services
from apps.conversations.sharing.export_services import PaperFile
from apps.conversations.sharing.exports import answer_markdown
from apps.conversations.sharing.papers import WRITERS, question_line
from apps.conversations.sharing.selectors import limited_sources, share_get, share_list, shared_view
from apps.conversations.sharing.selectors import shared_picture as shared_picture_get
from apps.conversations.transcript import selectors
from web.downloads import attachment
from web.requests import TenantRequest, allowed

_TYPES = {"json": "application/json", "markdown": "text/markdown; charset=utf-8"}
_LIMITED_NAMED = 5


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("conversation.write")
def shares(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show the links to a conversation, and who has opened them; POST makes one."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    if request.method == "POST":
        services.share_create(tenant=request.tenant, actor=request.actor, conversation=conversation)
    return _shares(request, conversation)


@require_POST
@allowed("conversation.write")
def share_revoke(request: TenantRequest, tenant_slug: str, pk: int, share_pk: int) -> HttpResponse:
    """Create link work no more."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    services.share_revoke(tenant=request.tenant, actor=request.actor, conversation=conversation, pk=share_pk)
    return _shares(request, conversation)


@never_cache
@require_GET
@allowed("conversation.read")
def shared(request: TenantRequest, tenant_slug: str, key: uuid.UUID) -> HttpResponse:
    """Show a shared conversation; of each source, what the reader may see now."""
    share = services.share_open(tenant=request.tenant, actor=request.actor, key=key)
    view = shared_view(actor=request.actor, share=share)
    return render(request, "conversations/shared.html", {"shared": view})


@require_GET
@allowed("conversation.read")
def shared_picture(
    request: TenantRequest, tenant_slug: str, key: uuid.UUID, picture_pk: int
) -> HttpResponseBase:
    """Return a picture of a shared conversation; ``?download=1`` as a file to be saved."""
    share = share_get(actor=request.actor, key=key)
    row = shared_picture_get(actor=request.actor, share=share, pk=picture_pk)
    return picture_response(request, row)


@never_cache
@require_GET
@allowed("conversation.read")
def export(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Hand out a conversation as a file: ``?form=docx``, ``pdf``, ``markdown`` or ``json``."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    form = request.GET.get("form", "markdown")
    if form in WRITERS:
        return file_response(
            export_services.conversation_file(
                tenant=request.tenant, actor=request.actor, conversation=conversation, form=form
            )
        )
    made = export_services.conversation_export(
        tenant=request.tenant, actor=request.actor, conversation=conversation, form=form
    )
    body = made.markdown or json.dumps(made.conversation, ensure_ascii=False, indent=2)
    response = HttpResponse(body, content_type=_TYPES[form])
    response.headers["Content-Disposition"] = f'attachment; filename="{_ascii(made.name)}"'
    return response


@never_cache
@require_GET
@allowed("conversation.read")
def answer(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Hand out one answer as Markdown with its sources, to copy."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turn = selectors.turn_get(actor=request.actor, conversation=conversation, pk=turn_pk)
    text = answer_markdown(actor=request.actor, turn=turn, has_pictures=False)
    return HttpResponse(text, content_type=_TYPES["markdown"])


@never_cache
@require_GET
@allowed("conversation.read")
def answer_file(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Hand out one answer as a file: ``?form=docx``, ``pdf`` or ``md``."""
    conversation, turn = _turn(request, pk, turn_pk)
    form = request.GET.get("form", "docx")
    return file_response(
        export_services.answer_file(
            tenant=request.tenant, actor=request.actor, conversation=conversation, turn=turn, form=form
        )
    )


@never_cache
@require_GET
@allowed("conversation.read")
def answer_document(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Offer an answer as a file, and as a document of a collection to those who may add documents."""
    conversation, turn = _turn(request, pk, turn_pk)
    can_save = request.actor.can("document.write") and request.actor.can("collection.read")
    collections = collection_list(actor=request.actor).values_list("pk", "name") if can_save else []
    limited = limited_sources(actor=request.actor, conversation=conversation, turn=turn)
    context = {
        "conversation": conversation,
        "turn": turn,
        "question": question_line(turn),
        "has_answer": not turn.is_active and bool(turn.run.answer.strip()),
        "can_save": can_save,
        "collections": list(collections),
        "limited_names": ", ".join(f"“{name}”" for name in limited[:_LIMITED_NAMED]),
        "limited_more": max(0, len(limited) - _LIMITED_NAMED),
    }
    return render(request, "conversations/answer_document.html", context)


@require_POST
@allowed("document.write")
def answer_save(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Add an answer to a collection as a document, and open the document."""
    conversation, turn = _turn(request, pk, turn_pk)
    chosen = request.POST.get("collection", "")
    if not chosen.isdecimal():
        messages.error(request, _("Choose a collection."))
        return redirect("conversations:turn-document", request.tenant.slug, conversation.pk, turn.pk)
    kept = export_services.answer_save(
        tenant=request.tenant,
        actor=request.actor,
        conversation=conversation,
        turn=turn,
        collection_pk=int(chosen),
        form=request.POST.get("form", "md"),
        name=request.POST.get("name", ""),
    )
    said = _("Saved as a document.") if kept.created else _("This document was already there.")
    messages.success(request, said)
    return redirect(
        "collections:document", request.tenant.slug, kept.document.collection_id, kept.document.pk
    )


def file_response(file: PaperFile) -> HttpResponse:
    """Return a document as a download."""
    response = HttpResponse(file.body, content_type=file.media_type)
    response.headers["Content-Disposition"] = attachment(file.name)
    return response


def _turn(request: TenantRequest, pk: int, turn_pk: int) -> tuple[Conversation, Turn]:
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    return conversation, selectors.turn_get(actor=request.actor, conversation=conversation, pk=turn_pk)


def _shares(request: TenantRequest, conversation: Conversation) -> HttpResponse:
    if not request.htmx:
        return redirect("conversations:detail", request.tenant.slug, conversation.pk)
    rows: list[dict[str, Any]] = [
        {
            "share": row,
            "url": request.build_absolute_uri(
                reverse("conversations:shared", args=[request.tenant.slug, row.key])
            ),
            "readers": ", ".join(str(reader.user) for reader in row.readers.all()),
        }
        for row in share_list(actor=request.actor, conversation=conversation)
    ]
    limited = limited_sources(actor=request.actor, conversation=conversation)
    context = {
        "conversation": conversation,
        "rows": rows,
        "limited": limited,
        "limited_names": ", ".join(f"“{name}”" for name in limited[:_LIMITED_NAMED]),
        "limited_more": max(0, len(limited) - _LIMITED_NAMED),
    }
    return render(request, "conversations/_shares.html", context)


def _ascii(name: str) -> str:
    return name.encode("ascii", "ignore").decode() or "conversation"
