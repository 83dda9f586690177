"""The list of one's conversations, with its search, and what the side bar shows of it."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from django.views.decorators.vary import vary_on_headers

from apps.conversations.display.days import days_grouped
from apps.conversations.projects.selectors import project_list
from apps.conversations.transcript import selectors
from apps.conversations.transcript.search import MAX_QUERY, MOST_FOUND, conversation_find
from apps.conversations.turns.conversations import conversation_pin
from apps.conversations.turns.undo import undo_take
from budgets.selectors import budget_notices
from notices.services import notices_claim
from web.reader_zone import reader_zone
from web.requests import TenantRequest, allowed

PAGE = 30


@vary_on_headers("HX-Request")
@require_GET
@allowed("conversation.read")
def index(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List one's own conversations, or those that hold what is searched for; the list alone when it asks for itself."""
    query = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_QUERY]
    archived = request.GET.get("show") == "archived"
    can_write = request.actor.can("conversation.write")
    context: dict[str, Any] = {"text": query, "archived": archived, "can_write": can_write}
    if query:
        found = conversation_find(actor=request.actor, query=query)
        context |= {"found": found, "is_cut": len(found) == MOST_FOUND}
    else:
        found_rows = selectors.conversation_list_pinned(actor=request.actor, archived=archived)
        rows = Paginator(found_rows.select_related("project"), PAGE)
        page = rows.get_page(request.GET.get("page"))
        shown: list[dict[str, Any]] = [{"row": row, "state": selectors.live_state(row)} for row in page]
        zone = reader_zone(request)
        groups = days_grouped(
            shown,
            used_at=lambda line: line["row"].updated_at,
            is_pinned=lambda line: line["row"].is_pinned,
            zone=zone,
        )
        busy = any(row["state"] in selectors.BUSY for row in shown)
        context |= {"page_obj": page, "groups": groups, "zone": zone, "is_busy": busy}
        context["query"] = "show=archived" if archived else ""
        if request.htmx:
            return render(request, "conversations/_convs.html", context)
        context["projects"] = list(project_list(actor=request.actor)) if can_write else []
    context["undo"] = undo_take(request)
    return render(request, "conversations/index.html", context)


@never_cache
@require_GET
@allowed("conversation.read")
def recent(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Return the side bar's list as it is now, and the title of the conversation that is open (``?open=``)."""
    pk = request.GET.get("open", "")
    context: dict[str, Any] = {}
    if pk.isascii() and pk.isdigit() and len(pk) < 19:
        rows = selectors.conversation_list(actor=request.actor, archived=None)
        context["open"] = rows.filter(pk=int(pk)).first()
    if context.get("open") is not None:
        assistant_id = context["open"].assistant_id
        context["notices"] = budget_notices(actor=request.actor, assistant_id=assistant_id)
    if request.headers.get("X-Notify") == "1":
        context["claimed"], context["claim_again"] = notices_claim(tenant=request.tenant, actor=request.actor)
    return render(request, "conversations/_recent_news.html", context)


@require_POST
@allowed("conversation.write")
def pin(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Pin a conversation to the top of the list; without ``is_pinned`` it is unpinned."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    conversation_pin(
        tenant=request.tenant,
        actor=request.actor,
        conversation=conversation,
        is_pinned=bool(request.POST.get("is_pinned")),
    )
    return HttpResponse(status=204) if request.htmx else redirect("conversations:detail", tenant_slug, pk)
