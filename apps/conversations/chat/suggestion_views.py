"""The lists that the composer opens while somebody types, and the menus of scope and tools."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.conversations.assistants.selectors import assistant_choices
from apps.conversations.chat.composer import collections_read, tools_off_read
from apps.conversations.chat.suggestions import Where, suggestions, where_of
from apps.conversations.chat.tools_offered import tool_lines
from apps.conversations.transcript import selectors
from apps.conversations.turns import conversations
from web.requests import TenantRequest, allowed


@never_cache
@require_GET
@allowed("conversation.read")
def suggest(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List what can be chosen: ``?what=`` names the list, ``?q=`` what is typed; see ``suggestions``."""
    given, what = request.GET, request.GET.get("what", "mentions")
    where = where_of(
        actor=request.actor,
        conversation=_number(given.get("conversation", "")),
        assistant=given.get("assistant", ""),
        collections=[pk for pk in map(_number, given.getlist("collections")) if pk is not None],
        project=_number(given.get("project", "")),
        off=given.getlist("off"),
    )
    is_menu = bool(given.get("menu"))
    groups = suggestions(
        actor=request.actor, what=what, query=given.get("q", ""), where=where, is_menu=is_menu
    )
    # The same list may be open in a menu and in the message box: ids of options stay apart.
    prefix = "menu" if is_menu else "composer"
    context = {"groups": groups, "what": what, "prefix": f"{prefix}-{what}"}
    return render(request, "conversations/_suggestions.html", context)


@require_POST
@allowed("conversation.write")
def scope(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Choose the collections a conversation searches; answer with their label."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    chosen = conversations.scope_set(
        tenant=request.tenant,
        actor=request.actor,
        conversation=conversation,
        collections=collections_read(request),
    )
    return render(request, "conversations/_scope_label.html", {"chosen": chosen})


@require_http_methods(["GET", "POST"])
@allowed("conversation.read")
def tools(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show which tools a conversation may use; POST says which not, and is answered with their label."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    if request.method == "POST":
        off = conversations.tools_off_set(
            tenant=request.tenant,
            actor=request.actor,
            conversation=conversation,
            names=tools_off_read(request),
        )
        return render(request, "conversations/_tools_label.html", {"tools_off": off})
    assistant = conversation.assistant
    version = conversation.pinned_version or (assistant.published if assistant else None)
    return _tools(request, Where(conversation, version, off=conversation.tools_off), assistant)


@require_GET
@allowed("conversation.read")
def tools_new(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show the tools that a new conversation may use, with the assistant that ``?assistant=`` names."""
    slug = request.GET.get("assistant", "")
    assistant = next((a for a in assistant_choices(actor=request.actor) if a.slug == slug), None)
    return _tools(request, Where(None, assistant.published if assistant else None), assistant)


def _tools(request: TenantRequest, where: Where, assistant: Any) -> HttpResponse:
    lines = tool_lines(actor=request.actor, version=where.version, off=where.off)
    context = {
        "conversation": where.conversation,
        "assistant": assistant,
        "count": len(lines),
        "off": [line for line in lines if not line.is_on],
        # What is not there today stays switched off for the day it comes back.
        "absent": sorted(set(where.off) - {line.name for line in lines}),
        "groups": suggestions(actor=request.actor, what="tools", query="", where=where, is_menu=True),
        "what": "tools",
        "prefix": "menu-tools",
    }
    return render(request, "conversations/_tools.html", context)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
