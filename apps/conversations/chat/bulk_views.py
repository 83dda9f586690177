"""What the list of conversations does with several of them at once, and how that is undone."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from apps.conversations.chat.composer import ids_read, project_read
from apps.conversations.turns import bulk
from apps.conversations.turns.undo import undo_do, undo_keep
from basics.errors import Invalid
from basics.texts import gettext as _
from web.requests import TenantRequest, allowed


@require_POST
@allowed("conversation.write")
def change(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Move, archive, bring back or delete the chosen conversations; the next page offers to undo it."""
    who: dict[str, Any] = {
        "tenant": request.tenant,
        "actor": request.actor,
        "conversations": ids_read(request, "conversations"),
    }
    what = request.POST.get("do", "")
    if not who["conversations"]:
        messages.error(request, _("Choose conversations first."))
    elif what == "move":
        undo_keep(request, what, bulk.conversations_move(**who, project=project_read(request)))
    elif what in ("archive", "unarchive"):
        undo_keep(request, what, bulk.conversations_archive(**who, is_archived=what == "archive"))
    elif what == "delete":
        undo_keep(request, what, bulk.conversations_delete(**who))
    else:
        raise Invalid("invalid", _("Choose what to do with the conversations."))
    return HttpResponse(status=204) if request.htmx else _back(request)


@require_POST
@allowed("conversation.write")
def undo(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Take back what was done to several conversations, as the token that came with it says."""
    undo_do(request, request.POST.get("undo", ""))
    messages.success(request, _("Undone."))
    return _back(request)


def _back(request: TenantRequest) -> HttpResponse:
    """Return to the list that was shown: a project's, or that of all conversations."""
    back = ids_read(request, "back")
    if back:
        return redirect("conversations:project", request.tenant.slug, back[0])
    return redirect("conversations:list", request.tenant.slug)
