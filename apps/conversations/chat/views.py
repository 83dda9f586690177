"""Pages of conversations, under /t/<slug>/chat/."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from apps.collections.documents.uploads import upload_limits
from apps.conversations.assistants.selectors import assistant_choices
from apps.conversations.chat.composer import (
    client_id_read,
    collections_read,
    composer_context,
    ids_read,
    narrowing_read,
    project_read,
    tools_off_read,
)
from apps.conversations.chat.first_steps import first_steps
from apps.conversations.chat.frames import Target, answer_frames
from apps.conversations.chat.queued_lines import queued_lines
from apps.conversations.chat.starters import starters_made
from apps.conversations.display.presentation import TurnView, turn_view_new, with_files
from apps.conversations.models import Conversation, Turn
from apps.conversations.projects.selectors import project_list
from apps.conversations.transcript import selectors, sources
from apps.conversations.turns import conversations, drafts, queue
from apps.conversations.turns import services as turns_services
from basics.errors import Invalid, Missing
from basics.event_stream import EVENT_STREAM, position_of
from erasure.models import Erasure
from runs.models import Run
from runs.standing import while_allowed
from web.decision_form import decision_read
from web.requests import TenantRequest, allowed
from web.views.erasure import content_erasure_page


@require_GET
@allowed("conversation.read")
def home(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show the composer of a new conversation."""
    whom = list(assistant_choices(actor=request.actor))
    chosen = next((a for a in whom if a.slug == request.GET.get("assistant")), None)
    made = starters_made(actor=request.actor)
    asked = request.GET.get("project", "")
    project = None
    if (
        asked.isascii() and asked.isdigit() and len(asked) < 19
    ):  # one that isn't shared any more is no project
        project = project_list(actor=request.actor).filter(pk=int(asked)).first()
    context = composer_context(request, None, chosen, project) | {
        "whom": whom,
        "has_documents": made is not None,
        "can_add": request.actor.can("collection.write"),
        "can_upload": request.actor.can("document.write"),
        "steps": first_steps(actor=request.actor, has_documents=made is not None),
        **upload_limits(),
        "starters": chosen.published.starters if chosen else made,
    }
    return render(request, "conversations/home.html", context)


@require_POST
@allowed("conversation.write")
def create(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Start a conversation with its first question, and go to its page; ``conversation`` has begun with files."""
    begun = ids_read(request, "conversation")
    turn = turns_services.conversation_ask(
        tenant=request.tenant,
        actor=request.actor,
        text=request.POST.get("text", ""),
        client_id=client_id_read(request),
        collections=collections_read(request),
        model=request.POST.get("model", ""),
        assistant=request.POST.get("assistant", ""),
        tools_off=tools_off_read(request),
        project=project_read(request),
        begun=begun[0] if begun else None,
        attachments=ids_read(request, "attachments"),
        narrowing=narrowing_read(request),
        compare_with=request.POST.get("compare_with", ""),
    )
    url = reverse("conversations:detail", args=[tenant_slug, turn.conversation_id])
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


@require_GET
@allowed("conversation.read")
def detail(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a conversation; an answer under way goes on by its stream."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    who: Any = {"actor": request.actor, "conversation": conversation}
    drafts.conversation_seen(tenant=request.tenant, **who)
    queued = queued_lines(**who)  # before the turns: see queue_fragment
    context = composer_context(request, conversation) | {
        "turns": selectors.turn_views(**who),
        "queued": queued,
        "cost_usd": selectors.cost_of(**who),
    }
    return render(request, "conversations/detail.html", context)


@require_POST
@allowed("conversation.write")
def turn_create(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Take a question; answer with its turn, which opens the stream, or with the questions that wait."""
    asked = queue.question_queue(
        tenant=request.tenant,
        actor=request.actor,
        conversation=Conversation(pk=pk, tenant=request.tenant),
        text=request.POST.get("text", ""),
        client_id=client_id_read(request),
        model=request.POST.get("model", ""),
        attachments=ids_read(request, "attachments"),
        narrowing=narrowing_read(request),
        compare_with=request.POST.get("compare_with", ""),
    )
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    if not isinstance(asked, Turn):
        return queue_fragment(request, pk)
    # One that waited, or was asked in another tab, may have been asked since the page looked: this one follows it.
    follows_unseen = "after" in request.POST and asked.parent_id != (_shown_last(request) or None)
    if asked.has_decided or follows_unseen:
        return branch_fragment(request, pk)
    return turn_fragment(request, asked)


@require_POST
@allowed("conversation.write")
def turn_retry(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Answer the last question once more; of two answers to it, this one."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turn = selectors.turn_get(actor=request.actor, conversation=conversation, pk=turn_pk)
    turn = turns_services.turn_retry(
        tenant=request.tenant, actor=request.actor, turn=turn, model=request.POST.get("model", "")
    )
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    if turn.is_undecided:  # the other answer may still be written: it stays as it is
        context = {"conversation": conversation, "turn": _stored(request, turn), "can_write": True}
        return render(request, "conversations/_answer.html", context)
    return turn_fragment(request, turn)


@require_POST
@allowed("conversation.write")
def run_stop(request: TenantRequest, tenant_slug: str, pk: int, run_pk: int) -> HttpResponse:
    """Stop an answer; what it has said so far stays, and the stream tells the rest."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turn = selectors.turn_get(actor=request.actor, conversation=conversation, run_id=run_pk)
    turns_services.turn_stop(tenant=request.tenant, actor=request.actor, turn=turn)
    return HttpResponse(status=204)


@require_POST
@allowed("conversation.write")
def run_decide(
    request: TenantRequest, tenant_slug: str, pk: int, run_pk: int, decision_pk: int
) -> HttpResponse:
    """Approve, reject or answer a call that waits; the stream tells how the answer goes on."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turn = selectors.turn_get(actor=request.actor, conversation=conversation, run_id=run_pk)
    turns_services.call_decide(
        tenant=request.tenant,
        actor=request.actor,
        run=turn.run,
        decision_id=decision_pk,
        decision=decision_read(request.POST),
    )
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return HttpResponse(status=204)


@require_GET
@allowed("conversation.read")
def run_stream(request: TenantRequest, tenant_slug: str, pk: int, run_pk: int) -> StreamingHttpResponse:
    """Stream an answer as HTML frames, from ``?after=`` or ``Last-Event-ID`` on."""
    tenant, actor = request.tenant, request.actor
    turn, model, output = selectors.stream_target(actor=actor, conversation_pk=pk, run_id=run_pk)
    view = turn_view_new(turn, Run(pk=run_pk, model=model), "", output)
    target = Target(tenant, actor, pk, turn.pk, run_pk, view)
    after = position_of(request.headers, request.GET)
    response = StreamingHttpResponse(
        while_allowed(answer_frames(target, after), actor=actor, right="conversation.read"),
        content_type=EVENT_STREAM,
    )
    response["Cache-Control"] = "no-cache, no-transform"
    response["X-Accel-Buffering"] = "no"
    return response


@require_GET
@allowed("conversation.read")
def source(request: TenantRequest, tenant_slug: str, pk: int, source: str) -> HttpResponse:
    """Show a source of an answer, named "<run>-<number>", in its surroundings."""
    run_id, _dash, number = source.partition("-")
    if not (run_id.isdecimal() and number.isdecimal()) or len(source) > 30:
        raise Missing("source")
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    shown = sources.source_get(
        actor=request.actor, conversation=conversation, run_id=int(run_id), number=int(number)
    )
    context = {
        "citation": {"number": shown.number},
        "document": shown.document,
        "page": shown.page,
        "chunk": shown.chunk,
        "chunk_count": shown.chunk_count,
        "before": shown.before,
        "quote": shown.quote,
        "mark": shown.mark,
        "after": shown.after,
        "has_image": shown.has_image,
    }
    return render(request, "conversations/_source.html", context)


@require_POST
@allowed("conversation.write")
def rename(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Rename a conversation."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    try:
        conversations.conversation_rename(
            tenant=request.tenant,
            actor=request.actor,
            conversation=conversation,
            title=request.POST.get("title", ""),
        )
    except Invalid as error:
        if request.htmx:
            raise
        messages.error(request, error.message)
    return HttpResponse(status=204) if request.htmx else redirect("conversations:detail", tenant_slug, pk)


@require_POST
@allowed("conversation.write")
def delete(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Delete a conversation; from a list, the page that shows the list stays."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    conversations.conversation_delete(tenant=request.tenant, actor=request.actor, conversation=conversation)
    own = reverse("conversations:detail", args=[tenant_slug, pk])
    if request.htmx and urlsplit(request.htmx.current_url or "").path != own:
        return HttpResponse(status=204)
    messages.success(request, _("“%(conversation)s” is deleted.") % {"conversation": conversation})
    home = reverse("conversations:home", args=[tenant_slug])
    return HttpResponseClientRedirect(home) if request.htmx else redirect(home)


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("conversation.write")
def erase(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show what erasing a conversation does; POST asks for it."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    return content_erasure_page(
        request,
        kind=Erasure.Kind.CONVERSATION,
        subject=conversation,
        back=reverse("conversations:detail", args=[tenant_slug, pk]),
        goes=_("its attached files, its links, and dataset rows made from it"),
    )


def turn_fragment(request: TenantRequest, turn: Turn) -> HttpResponse:
    """Return a turn as the page shows it; a new one without reading anything."""
    context: dict[str, Any] = {
        "conversation": {"pk": turn.conversation_id},
        "can_write": request.actor.can("conversation.write"),
    }
    if turn.asked is not None:
        context["turn"] = with_files(turn_view_new(turn, turn.run, turn.asked), turn.attached)
        if turn.second is not None:
            context["turn"].second = turn_view_new(turn.second, turn.second.run, turn.asked)
    elif turn.side is not None:
        return branch_fragment(request, turn.conversation_id)
    else:
        context["turn"] = _stored(request, turn)
    return render(request, "conversations/_turn.html", context)


def _stored(request: TenantRequest, turn: Turn) -> TurnView:
    conversation = Conversation(pk=turn.conversation_id, tenant=request.tenant)
    return selectors.turn_view(selectors.turn_get(actor=request.actor, conversation=conversation, pk=turn.pk))


def branch_fragment(request: TenantRequest, pk: int) -> HttpResponse:
    """Return the branch that is shown now, whole: turns and their sources."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    context = {
        "conversation": conversation,
        "turns": selectors.turn_views(actor=request.actor, conversation=conversation),
        "can_write": True,
    }
    return render(request, "conversations/_branch.html", context)


def queue_fragment(request: TenantRequest, pk: int) -> HttpResponse:
    """Return the questions that wait, and the turns of the branch that is shown which the page does not show yet.

    The page says what it shows last (``after``): a question that it shows as waiting may have been asked since.
    """
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    who: Any = {"actor": request.actor, "conversation": conversation}
    # The queue first: a question that is asked between the two reads is then shown as one that waits and as a turn, and the
    # page looks again. The other way round it would be in neither, for good.
    queued = list(queued_lines(**who))
    conversation.refresh_from_db(fields=["head"])
    shown = selectors.turn_views(**who)
    after = _shown_last(request)
    turns = [turn for turn in shown if turn.pk > after]
    context = {
        "conversation": conversation,
        "queued": queued,
        "turns": turns,
        # What follows one of two answers shows that one alone from now on.
        "branch": shown if turns and any(turn.is_kept for turn in shown[-len(turns) - 1 : -1]) else [],
    }
    return render(request, "conversations/_queue_news.html", context)


def _shown_last(request: TenantRequest) -> int:
    """Return the id of the turn that the page shows last; 0 where it shows none, or doesn't say."""
    after = (request.POST if request.method == "POST" else request.GET).get("after", "")
    return int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0
