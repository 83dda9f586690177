"""Erase a conversation; and take an erased document out of answers, citations, titles and shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.collections.collection.erasing_documents import documents_erased, documents_report
from apps.collections.models import Document
from apps.conversations.models import (
    Attachment,
    Citation,
    Conversation,
    ConversationShare,
    Feedback,
    Message,
    Picture,
    QueuedQuestion,
    Turn,
)
from apps.conversations.transcript.locks import title_of
from apps.conversations.turns.conversations import RUN_KIND, conversation_remove
from basics.errors import Missing
from basics.texts import gettext_noop
from erasure.kinds import ContentKind, Erased
from erasure.models import Erasure
from erasure.reports import KEPT, REMOVED, REPLACED, Report
from runs.erasing import runs_reading
from runs.models import PendingDecision, Run, RunEvent, RunStep, ToolCall
from runs.withheld import HIDDEN, Withheld
from tenancy.actors import system_actor
from tenancy.models import TenantModel

_FORK_WHY = gettext_noop(
    "branched off into conversations of their own, which keep the turns they show; erase them as well"
)
_ASKED_WHY = gettext_noop(
    "people's own words, which may mention the document; erase the conversation they are in"
)


def conversations_made_erase(erased: Erased) -> Callable[[Report], None]:
    """Return what takes an erased document out of conversations."""
    found = runs_reading(erased)
    tenant = erased.tenant

    def remove(report: Report) -> None:
        turns = Turn.objects.filter(tenant=tenant, run_id__in=found).prefetch_related("messages", "citations")
        touched: dict[int, Withheld] = {}
        changed = asked = 0
        for turn in turns.order_by("pk"):
            held = touched[turn.conversation_id] = found[turn.run_id]
            asked += 1
            numbers = {c.number for c in turn.citations.all() if c.chunk_ref in held.chunks}
            for message in turn.messages.all():
                if message.author == Message.Author.ASSISTANT:
                    changed += _message_erase(message, held, numbers)
        report.add("conversations.Message", REPLACED, changed)
        report.add("questions of these conversations", KEPT, asked, _ASKED_WHY)
        cited = Citation.objects.filter(tenant=tenant, document_id__in=erased.documents)
        gone = {"document_name": HIDDEN, "collection_name": "", "quote": "", "header": "", "page": None}
        report.add("conversations.Citation", REPLACED, cited.exclude(document_name=HIDDEN).update(**gone))
        shares = ConversationShare.objects.filter(tenant=tenant, conversation_id__in=touched)
        report.add("conversations.ConversationShare", REMOVED, shares.delete()[0])
        report.add("titles of conversations", REPLACED, _titles(tenant.pk, touched))
        files = Attachment.objects.filter(tenant=tenant, document_id__in=erased.documents)
        files = files.exclude(conversation_id__in=erased.conversations)
        report.add("conversations.Attachment", REMOVED, files.delete()[0])

    return remove


def _message_erase(message: Message, held: Withheld, numbers: set[int]) -> bool:
    text, data = held.text(message.text, numbers), held.value(message.data)
    problem = held.text(message.problem)
    if (text, data, problem) == (message.text, message.data, message.problem):
        return False
    message.text, message.data, message.problem = text, data, problem
    message.unsupported, message.compared = [], ""
    message.save(update_fields=["text", "data", "problem", "unsupported", "compared"])
    return True


def _titles(tenant_id: int, touched: dict[int, Withheld]) -> int:
    """Give conversations whose title tells of it the first words of their question; returns how many."""
    changed = 0
    for row in Conversation.objects.select_for_update().filter(tenant_id=tenant_id, pk__in=touched):
        if touched[row.pk].text(row.title) == row.title:
            continue
        asked = Message.objects.filter(
            tenant_id=tenant_id, turn__conversation=row, author=Message.Author.USER
        )
        row.title = title_of(asked.order_by("turn__index").values_list("text", flat=True).first() or "")
        row.save(update_fields=["title"])
        changed += 1
    return changed


def conversation_erased(row: TenantModel) -> Erased:
    """Return what goes with a conversation: its runs, and files that were attached nowhere else."""
    tenant, pk = row.tenant, row.pk
    attached = Attachment.objects.filter(tenant=tenant)
    files = attached.filter(conversation_id=pk)
    elsewhere = attached.exclude(conversation_id=pk).filter(document_id__isnull=False)
    documents = Document.objects.filter(
        tenant=tenant, collection__owner__isnull=False, pk__in=files.values("document_id")
    ).exclude(pk__in=elsewhere.values("document_id"))
    found = documents_erased(tenant, documents)
    turns = Turn.objects.filter(tenant=tenant, conversation_id=pk)
    begun = Run.objects.filter(tenant=tenant, kind=RUN_KIND, request__conversation=pk)
    shown = Turn.objects.filter(tenant=tenant).exclude(conversation_id=pk)
    runs = {*turns.values_list("run_id", flat=True), *begun.values_list("pk", flat=True)}
    runs -= set(shown.filter(run_id__in=runs).values_list("run_id", flat=True))
    events: dict[str, frozenset[int]] = {
        **found.events,
        Conversation._meta.label_lower: frozenset({pk}),
        Run._meta.label_lower: frozenset(runs),
    }
    models: tuple[tuple[type[TenantModel], dict[str, Any]], ...] = (
        (ConversationShare, {"conversation_id": pk}),
        (Attachment, {"conversation_id": pk}),
        (Feedback, {"turn__conversation_id": pk}),
        (PendingDecision, {"run_id__in": runs}),
    )
    for model, mine in models:
        pks = model._base_manager.filter(tenant=tenant, **mine).values_list("pk", flat=True)
        events[model._meta.label_lower] = frozenset(pks)
    return Erased(
        tenant=tenant,
        documents=found.documents,
        passages=found.passages,
        names=found.names,
        conversations=frozenset({pk}),
        runs=frozenset(runs),
        events=events,
        naming=found.naming,
    )


def conversation_erase(row: TenantModel, erased: Erased, report: Report) -> None:
    """Delete a conversation with its runs and files, and report what went; in a transaction.

    Raises:
        Missing: it was deleted meanwhile.
    """
    tenant = row.tenant
    locked = Conversation.objects.select_for_update().filter(tenant=tenant, pk=row.pk).first()
    if locked is None:
        raise Missing("conversation")
    turns = {"tenant": tenant, "turn__conversation_id": row.pk}
    mine = {"tenant": tenant, "conversation_id": row.pk}
    of_runs = {"tenant": tenant, "run_id__in": erased.runs}
    told: tuple[tuple[type[TenantModel], dict[str, Any]], ...] = (
        (Message, turns),
        (Citation, turns),
        (Feedback, turns),
        (Turn, mine),
        (Attachment, mine),
        (ConversationShare, mine),
        (QueuedQuestion, mine),
        (Picture, of_runs),
        (RunEvent, of_runs),
        (RunStep, of_runs),
        (ToolCall, of_runs),
        (PendingDecision, of_runs),
        (Run, {"tenant": tenant, "pk__in": erased.runs}),
        (Conversation, {"tenant": tenant, "pk": row.pk}),
    )
    for model, which in told:
        report.add(model._meta.label, REMOVED, model._base_manager.filter(**which).count())
    forks = Conversation.objects.filter(tenant=tenant, forked_from_id=row.pk).count()
    report.add("conversations that were branched off", KEPT, forks, _FORK_WHY)
    documents_report(tenant, erased, report)
    # What is written about the deletion of its files shall not name them again.
    name = f"{Erasure.Kind.CONVERSATION.value}-{row.pk}"
    Document.objects.filter(tenant=tenant, pk__in=erased.documents).update(name=name, title="")
    conversation_remove(tenant, system_actor(tenant.pk), locked)


CONVERSATIONS = ContentKind(
    kind=Erasure.Kind.CONVERSATION,
    model=Conversation,
    action="conversation.write",
    rows=lambda row: [row],
    erased=conversation_erased,
    remove=conversation_erase,
)
