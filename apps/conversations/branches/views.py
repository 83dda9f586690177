"""Pages of branches: what is done to a question and its answer, and which branch is shown."""

from __future__ import annotations

import uuid

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from apps.conversations.branches import services
from apps.conversations.chat.composer import client_id_read
from apps.conversations.chat.views import branch_fragment, turn_fragment
from apps.conversations.models import Turn
from apps.conversations.transcript import selectors
from web.requests import TenantRequest, allowed


@require_http_methods(["GET", "POST"])
@allowed("conversation.write")
def turn_edit(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Show the form that asks a question in other words; POST asks it, in a new branch."""
    turn = _turn(request, pk, turn_pk)
    if request.method == "GET":
        view = selectors.turn_view(turn)
        context = {"conversation": turn.conversation, "turn": view, "client_id": uuid.uuid4()}
        return render(request, "conversations/_edit.html", context)
    services.turn_edit(
        tenant=request.tenant,
        actor=request.actor,
        turn=turn,
        text=request.POST.get("text", ""),
        client_id=client_id_read(request),
    )
    return _branch(request, pk)


@require_POST
@allowed("conversation.write")
def turn_regenerate(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Answer a question once more, in a new branch."""
    services.turn_regenerate(
        tenant=request.tenant,
        actor=request.actor,
        turn=_turn(request, pk, turn_pk),
        client_id=client_id_read(request),
        model=request.POST.get("model", ""),
    )
    return _branch(request, pk)


@require_POST
@allowed("conversation.write")
def turn_continue(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Have a stopped answer go on; answer with the turn that does."""
    turn = services.turn_continue(
        tenant=request.tenant,
        actor=request.actor,
        turn=_turn(request, pk, turn_pk),
        client_id=client_id_read(request),
    )
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return turn_fragment(request, turn)


@require_POST
@allowed("conversation.write")
def turn_choose(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Show another branch."""
    services.turn_choose(tenant=request.tenant, actor=request.actor, turn=_turn(request, pk, turn_pk))
    return _branch(request, pk)


@require_POST
@allowed("conversation.write")
def turn_keep(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Continue with one of two answers; ``feedback`` tells the admins too that it is the better one."""
    services.turn_keep(
        tenant=request.tenant,
        actor=request.actor,
        turn=_turn(request, pk, turn_pk),
        gives_feedback="feedback" in request.POST,
    )
    return _branch(request, pk)


@require_POST
@allowed("conversation.write")
def turn_fork(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Begin another conversation with this branch, and go there."""
    fork = services.conversation_fork(
        tenant=request.tenant, actor=request.actor, turn=_turn(request, pk, turn_pk)
    )
    url = reverse("conversations:detail", args=[tenant_slug, fork.pk])
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


def _turn(request: TenantRequest, pk: int, turn_pk: int) -> Turn:
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turn = selectors.turn_get(actor=request.actor, conversation=conversation, pk=turn_pk)
    turn.conversation = conversation
    return turn


def _branch(request: TenantRequest, pk: int) -> HttpResponse:
    return (
        branch_fragment(request, pk)
        if request.htmx
        else redirect("conversations:detail", request.tenant.slug, pk)
    )
