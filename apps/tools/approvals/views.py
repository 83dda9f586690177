"""The inbox of approvals, under /t/<slug>/tools/approvals: what waits for the reader, for others, and what was decided."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from basics.errors import Conflict, DomainError, Invalid
from basics.event_stream import EVENT_STREAM, HEARTBEAT, HEARTBEAT_S, HELLO, frame
from runs.approvals.argument_changes import argument_changes
from runs.approvals.deciders import APPROVALS, approver_labels, decidable, heirs
from runs.approvals.selectors import approval_count, approval_get, approval_list, open_decisions
from runs.approvals.services import call_decide, call_hand_over
from runs.models import PendingDecision
from runs.standing import while_allowed
from runs.stream import hub
from tenancy.actors import Actor
from tenancy.database.waiting import in_db
from tenancy.models import Membership, Tenant
from tenancy.scope import tenant_scope
from tenancy.selectors import user_actor
from toolloop.deferred import Decision
from web.decision_form import decision_read
from web.requests import TenantRequest, allowed
from web.views.members import posted_id

BOXES = {
    "to_decide": gettext_lazy("To decide"),
    "waiting": gettext_lazy("Waiting for others"),
    "decided": gettext_lazy("Decided"),
}
PER_PAGE = 25
MAX_BULK = 100


@never_cache
@require_GET
@allowed("run.read")
def approvals(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List one box of the inbox."""
    return render(request, "tools/approvals.html", _box(request.tenant, request.actor, request.GET))


async def stream(request: HttpRequest, tenant_slug: str) -> HttpResponseBase:
    """Stream a box of the inbox as it is now, each time something begins or ceases to wait."""
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    tenant: Tenant = request.tenant  # type: ignore[attr-defined]
    actor: Actor = request.actor  # type: ignore[attr-defined]
    actor.require("run.read")
    response = StreamingHttpResponse(
        while_allowed(_frames(tenant, actor, request.GET, get_token(request)), actor=actor, right="run.read"),
        content_type=EVENT_STREAM,
    )
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


async def _frames(tenant: Tenant, actor: Actor, query: QueryDict, token: str) -> AsyncGenerator[bytes, None]:
    seq, shown = 0, None
    with tenant_scope(tenant.pk):  # the middleware's scope ended with the view
        async with hub.subscribe(tenant.pk, APPROVALS) as waker:
            yield HELLO
            while True:
                html = await in_db(_drawn, tenant, actor, query, token)
                if html is None:
                    yield frame("signed out", seq=seq, event="end")
                    return
                if html != shown:
                    shown, seq = html, seq + 1
                    yield frame(html, seq=seq)
                while not await waker.wait(HEARTBEAT_S):
                    yield HEARTBEAT


def _drawn(tenant: Tenant, actor: Actor, query: QueryDict, token: str) -> str | None:
    """Return the box with the rights of this moment, None for a former member.

    Args:
        token: against forged requests; the form that approves several calls is drawn with it.
    """
    with tenant_scope(tenant.pk):
        found = Membership.objects.select_related("user").filter(
            tenant=tenant, user_id=actor.user_id or 0, user__is_active=True
        )
        membership = found.first()
        if membership is None:
            return None
        now = user_actor(membership)
        context = _box(tenant, now, query)
        context |= {
            "tenant": tenant,
            "actor": now,
            "csrf_token": token,
            "approvals_waiting": context["to_decide"],
        }
        return render_to_string("tools/_approvals_news.html", context)


def _box(tenant: Tenant, actor: Actor, query: QueryDict) -> dict[str, Any]:
    box = query.get("box", "")
    box = box if box in BOXES else "to_decide"
    page = Paginator(approval_list(actor=actor, box=box), PER_PAGE).get_page(query.get("page"))
    rows = list(page.object_list)
    return {
        "tab": "approvals",
        "box": box,
        "boxes": BOXES,
        "to_decide": approval_count(actor=actor),
        "approvals": [_shown(row, label) for row, label in zip(rows, approver_labels(rows), strict=True)],
        "page_obj": page,
        "query": urlencode({"box": box}),
    }


def _shown(row: PendingDecision, label: str) -> dict[str, Any]:
    return {
        "row": row,
        "approver": label,
        "arguments": _text(row.arguments, indent=2),
        "line": _text(row.arguments)[:200],
        "changes": argument_changes(row.arguments, row.edited_arguments),
        "conversation": row.run.request.get("conversation"),
    }


def _text(value: Any, indent: int | None = None) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, indent=indent, ensure_ascii=False)


@never_cache
@require_GET
@allowed("run.read")
def approval(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show one call, with what can be done about it."""
    return _page(request, approval_get(actor=request.actor, pk=pk))


def _page(request: TenantRequest, row: PendingDecision, problem: str = "") -> HttpResponse:
    actor = request.actor
    (label,) = approver_labels([row])
    rows = PendingDecision.objects.visible_to(actor).filter(open_decisions(), pk=row.pk)
    is_open = rows.exists()
    can_decide = is_open and rows.filter(decidable(actor)).exists()
    may_assign = can_decide or (is_open and actor.can("tool.manage"))
    posted = request.POST
    context = _shown(row, label) | {
        "tab": "approvals",
        "is_open": is_open,
        "can_decide": can_decide,
        "heirs": [m for m in heirs(row) if m.user_id != actor.user_id] if may_assign else [],
        "problem": problem,
        "typed": {key: posted.get(key, "") for key in ("arguments", "reason", "answer")},
    }
    return render(request, "tools/approval.html", context, status=422 if problem else 200)


@require_POST
@allowed("conversation.write")
def decide(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Approve, reject or answer a call; what was typed is kept when it does not fit."""
    row = approval_get(actor=request.actor, pk=pk)
    try:
        done = call_decide(
            tenant=request.tenant,
            actor=request.actor,
            run=row.run,
            decision_id=pk,
            decision=decision_read(request.POST),
        )
    except Invalid as error:
        return _page(request, row, error.message)
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("tools:approval", tenant_slug, pk)
    messages.success(
        request,
        _("%(tool)s is %(status)s.") % {"tool": done.name, "status": done.get_status_display().lower()},
    )
    return redirect("tools:approvals", tenant_slug)


@require_POST
@allowed("conversation.write")
def hand_over(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Hand a decision over to another member."""
    row = approval_get(actor=request.actor, pk=pk)
    try:
        done = call_hand_over(
            tenant=request.tenant,
            actor=request.actor,
            run=row.run,
            decision_id=pk,
            to=posted_id(request, "to"),
        )
    except (Conflict, Invalid) as error:
        messages.error(request, error.message)
    else:
        messages.success(
            request,
            _("%(person)s can now decide about %(tool)s.") % {"person": done.assigned_to, "tool": done.name},
        )
    return redirect("tools:approval", tenant_slug, pk)


@require_POST
@allowed("conversation.write")
def approve_many(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Approve the chosen calls as they were asked for, each by itself: one that is over holds up no other."""
    chosen = [
        int(v) for v in request.POST.getlist("approval") if v.isascii() and v.isdecimal() and len(v) < 19
    ]
    if not 0 < len(chosen) <= MAX_BULK:
        messages.error(request, _("Choose 1 to %(most)s calls.") % {"most": MAX_BULK})
        return redirect("tools:approvals", tenant_slug)
    approved, problems = 0, []
    for pk in dict.fromkeys(chosen):
        try:
            row = approval_get(actor=request.actor, pk=pk)
            call_decide(
                tenant=request.tenant,
                actor=request.actor,
                run=row.run,
                decision_id=pk,
                decision=Decision("approve"),
            )
            approved += 1
        except DomainError as error:
            problems.append(error.message)
    if approved:
        told = ngettext("%(count)s call approved.", "%(count)s calls approved.", approved)
        messages.success(request, told % {"count": approved})
    for problem in dict.fromkeys(problems):
        messages.error(request, problem)
    return redirect("tools:approvals", tenant_slug)
