"""The page of a person's memory, and the card under an answer that shows what was remembered."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.conversations.memory import services
from apps.conversations.memory.forms import EntryForm
from apps.conversations.memory.selectors import entry_list, memory_get
from apps.conversations.memory.tool import ENTRY, REMEMBER
from apps.conversations.models import MemoryEntry
from apps.conversations.transcript import selectors
from basics.errors import DomainError, Missing
from runs.models import ToolCall
from web.forms import add_refusal
from web.requests import TenantRequest, allowed


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("memory.use")
def memory(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show one's notes and the switch; POST adds a note."""
    form = EntryForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.entry_add(**_who(request), text=form.cleaned_data["text"])
        except DomainError as error:
            add_refusal(form, error)
        else:
            messages.success(request, _("Note added."))
            return redirect("conversations:settings-memory", tenant_slug)
    context = {
        "section": "memory",
        "memory": memory_get(actor=request.actor),
        "entries": list(entry_list(actor=request.actor)),
        "most": services.MAX_ENTRIES,
        "form": form,
    }
    return render(request, "settings/memory.html", context, status=422 if form.errors else 200)


@require_POST
@allowed("memory.use")
def memory_switch(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Switch one's memory on or off."""
    is_on = request.POST.get("is_on") == "1"
    try:
        services.memory_switch(**_who(request), is_on=is_on)
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("Memory is on.") if is_on else _("Memory is off."))
    return redirect("conversations:settings-memory", tenant_slug)


@require_POST
@allowed("memory.use")
def memory_erase(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Delete all of one's notes."""
    count = services.memory_erase(**_who(request))
    said = ngettext("%(count)s note deleted.", "%(count)s notes deleted.", count)
    messages.success(request, said % {"count": count})
    return redirect("conversations:settings-memory", tenant_slug)


@require_POST
@allowed("memory.use")
def entry_change(request: TenantRequest, tenant_slug: str, entry_pk: int) -> HttpResponse:
    """Change what a note says."""
    try:
        services.entry_change(**_who(request), pk=entry_pk, text=request.POST.get("text", ""))
    except Missing:
        raise
    except DomainError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("Note saved."))
    return redirect("conversations:settings-memory", tenant_slug)


@require_POST
@allowed("memory.use")
def entry_remove(request: TenantRequest, tenant_slug: str, entry_pk: int) -> HttpResponse:
    """Delete a note; under an answer that is “Undo”, and the card says so."""
    services.entry_remove(**_who(request), pk=entry_pk)
    if request.htmx:
        return render(request, "conversations/_remembered.html", {"entry": None, "is_new": True})
    messages.success(request, _("Note deleted."))
    return redirect("conversations:settings-memory", tenant_slug)


@never_cache
@require_GET
@allowed("memory.use")
def remembered(request: TenantRequest, tenant_slug: str, pk: int, run_pk: int, call_pk: int) -> HttpResponse:
    """Show what a call of ``remember`` has kept, as it is now; its words are with the note alone."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turn = selectors.turn_get(actor=request.actor, conversation=conversation, run_id=run_pk)
    call = ToolCall.objects.filter(
        tenant=request.tenant, run_id=turn.run_id, pk=call_pk, name=REMEMBER
    ).first()
    if call is None:
        raise Missing("call")
    number = call.payload.get(ENTRY) if isinstance(call.payload, dict) else None
    entry = MemoryEntry.objects.visible_to(request.actor).filter(pk=number).first() if number else None
    return render(request, "conversations/_remembered.html", {"entry": entry, "was_known": number is None})


def _who(request: TenantRequest) -> dict[str, Any]:
    return {"tenant": request.tenant, "actor": request.actor}
