"""Pages of what stands around a conversation: waiting questions, drafts, feedback, the list with its search, rules."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django.views.decorators.vary import vary_on_headers

from apps.conversations.chat.days import days_grouped
from apps.conversations.chat.views import queue_fragment
from apps.conversations.feedback import services as feedback_services
from apps.conversations.feedback.selectors import REASONS
from apps.conversations.models import Feedback
from apps.conversations.transcript import selectors
from apps.conversations.transcript.search import MAX_QUERY, MOST_FOUND, conversation_find
from apps.conversations.turns import drafts
from apps.conversations.turns import queue as turns_queue
from apps.conversations.turns.conversations import conversation_pin
from apps.conversations.turns.retention import rules_get, rules_set
from basics.errors import Invalid
from budgets.selectors import budget_notices
from erasure.models import RetentionRule
from erasure.retention import MOST_DAYS
from web.forms import add_refusal
from web.reader_zone import reader_zone
from web.requests import TenantRequest, allowed

PAGE = 30


@vary_on_headers("HX-Request")
@require_GET
@allowed("conversation.read")
def index(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List one's own conversations, or those that hold what is searched for; the list alone when it asks for itself."""
    query = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_QUERY]
    context: dict[str, Any] = {"query": query}
    if query:
        found = conversation_find(actor=request.actor, query=query)
        context |= {"found": found, "is_cut": len(found) == MOST_FOUND}
    else:
        rows = Paginator(selectors.conversation_list_pinned(actor=request.actor), PAGE)
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
        if request.htmx:
            return render(request, "conversations/_convs.html", context)
    return render(request, "conversations/index.html", context)


@never_cache
@require_GET
@allowed("conversation.read")
def recent(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Return the side bar's list as it is now, and the title of the conversation that is open (``?open=``)."""
    pk = request.GET.get("open", "")
    context: dict[str, Any] = {}
    if pk.isascii() and pk.isdigit() and len(pk) < 19:
        context["open"] = selectors.conversation_list(actor=request.actor).filter(pk=int(pk)).first()
    if context.get("open") is not None:
        assistant_id = context["open"].assistant_id
        context["notices"] = budget_notices(actor=request.actor, assistant_id=assistant_id)
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


@require_POST
@allowed("conversation.write")
def draft(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Keep what is typed and not sent."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    drafts.draft_set(
        tenant=request.tenant,
        actor=request.actor,
        conversation=conversation,
        text=request.POST.get("text", ""),
    )
    return HttpResponse(status=204)


@never_cache
@require_GET
@allowed("conversation.read")
def queue(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Return the questions that wait, and turns that came after the one the page shows last (``?after=``)."""
    after = request.GET.get("after", "")
    known = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0
    return queue_fragment(request, pk, after=known)


@require_POST
@allowed("conversation.write")
def queue_remove(request: TenantRequest, tenant_slug: str, pk: int, queued_pk: int) -> HttpResponse:
    """Remove a queued question."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turns_queue.queued_remove(
        tenant=request.tenant, actor=request.actor, conversation=conversation, pk=queued_pk
    )
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return queue_fragment(request, pk)


@require_POST
@allowed("conversation.write")
def queue_ask(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Ask the oldest question that waits, now."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turns_queue.queued_ask(tenant=request.tenant, actor=request.actor, conversation=conversation)
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return queue_fragment(request, pk, after=conversation.head_id or 0)


@require_POST
@allowed("conversation.write")
def feedback(request: TenantRequest, tenant_slug: str, pk: int, turn_pk: int) -> HttpResponse:
    """Take what somebody thinks of an answer; an empty verdict takes it back. A verdict alone asks for a reason."""
    conversation = selectors.conversation_get(actor=request.actor, pk=pk)
    turn = selectors.turn_get(actor=request.actor, conversation=conversation, pk=turn_pk)
    who: Any = {"tenant": request.tenant, "actor": request.actor, "turn": turn}
    verdict, row = request.POST.get("verdict", ""), None
    if verdict:
        row = feedback_services.feedback_give(
            **who,
            verdict=verdict,
            reason=request.POST.get("reason", ""),
            comment=request.POST.get("comment", ""),
        )
    else:
        feedback_services.feedback_withdraw(**who)
    if not request.htmx:
        return redirect("conversations:detail", tenant_slug, pk)
    return render(request, "conversations/_feedback.html", _feedback(conversation, turn, row, request))


def _feedback(conversation: Any, turn: Any, row: Feedback | None, request: TenantRequest) -> dict[str, Any]:
    asks = row is not None and "reason" not in request.POST
    return {
        "conversation": conversation,
        "turn": {"pk": turn.pk, "run_id": turn.run_id, "feedback": row},
        "reasons": REASONS[row.verdict].items() if row is not None and asks else None,
        "is_new": True,
    }


class RulesForm(forms.Form):
    """What a workspace says about its conversations."""

    keep_days = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_DAYS,
        label="Days to keep conversations after their last question",
        help_text="0 keeps them forever. Empty: the server default.",
        widget=forms.NumberInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )
    makes_titles = forms.BooleanField(
        required=False,
        label="A model names each conversation after its first answer",
        help_text="Uses the model that gave the answer, a few hundred tokens each; counted on the usage "
        "page.",
    )
    support_model = forms.CharField(
        required=False,
        max_length=120,
        label="Model that checks each answer against its sources",
        help_text="A second check after the answer, for example by openai/gpt-5-mini. It reads the answer "
        "and its passages and is counted on the usage page. Empty: words, names and numbers are compared "
        "without a model.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


@never_cache
@require_http_methods(["GET", "POST"])
@allowed("retention.manage")
def rules(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Show the rules of conversations; POST sets them."""
    now = rules_get(request.tenant)
    form = RulesForm(
        request.POST or None,
        initial={
            "keep_days": now.own_days,
            "makes_titles": now.makes_titles,
            "support_model": now.support_model,
        },
    )
    if request.method == "POST" and form.is_valid():
        try:
            rules_set(
                tenant=request.tenant,
                actor=request.actor,
                days=form.cleaned_data["keep_days"],
                makes_titles=form.cleaned_data["makes_titles"],
                support_model=form.cleaned_data["support_model"].strip(),
            )
        except Invalid as error:
            add_refusal(form, error)
        else:
            messages.success(request, "Rules saved.")
            return redirect("conversations:settings-rules", tenant_slug)
    context = {"section": "conversations", "form": form, "rules": now, "default": settings.CONVERSATION_DAYS}
    waiting = RetentionRule.objects.filter(
        tenant=request.tenant, kind="conversations", starts_at__gt=timezone.now()
    )
    context["starts_at"] = waiting.values_list("starts_at", flat=True).first()
    return render(request, "settings/conversations.html", context, status=422 if form.errors else 200)
