"""The message box: what it shows, and how what it sends is read."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from apps.conversations.attachments.selectors import attachments_unsent
from apps.conversations.chat.suggestions import Suggestion, prompt_suggestion
from apps.conversations.display.attached_files import attachment_view
from apps.conversations.models import Assistant, Attachment, Conversation, Project
from apps.conversations.prompts.selectors import prompt_get
from apps.conversations.transcript import selectors
from apps.conversations.turns.conversations import project_scope
from apps.conversations.turns.narrowing import Narrowing
from basics.errors import Invalid, Missing
from basics.texts import gettext as _
from budgets.selectors import budget_notices
from runs.providers import EXTRACTIVE
from toolloop.providers.registry import ModelInfo
from web.requests import TenantRequest


def composer_context(
    request: TenantRequest,
    conversation: Conversation | None,
    assistant: Assistant | None = None,
    project: Project | None = None,
) -> dict[str, Any]:
    """Return what the message box needs; ``assistant`` and ``project`` were chosen for a new conversation."""
    pinned = None
    if conversation is not None:
        assistant, pinned = conversation.assistant, conversation.pinned_version
    models = selectors.model_list(request.tenant)
    ids = [model.id for model in models]
    kept = conversation.model if conversation is not None else ""
    answering = kept
    if assistant is not None and assistant.published is not None:
        answering = (pinned or assistant.published).model or selectors.model_default(models)
    # “Ask this collection” leads here.
    asked = request.GET.get("collection", "")
    chosen = [int(asked)] if asked.isascii() and asked.isdigit() and len(asked) < 19 else []
    if project is not None:
        chosen = [row.pk for row in project_scope(request.actor, project)]
    if conversation is not None:
        chosen = [] if conversation.searches_all else selectors.scope_pks(conversation)
    there = selectors.scope_names(actor=request.actor, conversation=None)
    collections = [{"pk": pk, "name": there[pk]} for pk in there if pk in chosen]
    files: list[Attachment] = []
    if conversation is None:
        url = reverse("conversations:create", args=[request.tenant.slug])
        attach_url = reverse("conversations:attachment-begin", args=[request.tenant.slug])
    else:
        where = [request.tenant.slug, conversation.pk]
        url = reverse("conversations:turn-create", args=where)
        attach_url = reverse("conversations:attachment-add", args=where)
        files = attachments_unsent(actor=request.actor, conversation=conversation)
    return {
        "conversation": conversation,
        "assistant": assistant,
        "project": project if conversation is None else conversation.project,
        "pinned": pinned,
        "models": [
            {"id": m.id, "label": m.label, "is_extractive": m.provider == EXTRACTIVE, "sees": _sees(m)}
            for m in models
        ],
        "sees": " ".join(_sees(m) for m in models if m.id == answering),
        "files": [attachment_view(row) for row in files],
        "attach_url": attach_url,
        "model": kept if kept in ids else selectors.model_default(models, request.actor),
        "has_collections": bool(there),
        "chosen": collections,
        "named": _named(conversation or project, collections),
        "prompt": _prompt(request),
        "tools_off": conversation.tools_off if conversation is not None else [],
        "draft_key": f"{request.tenant.slug}.{conversation.pk if conversation else 'new'}",
        "client_id": uuid.uuid4(),
        "post_url": url,
        "can_write": request.actor.can("conversation.write"),
        "notices": budget_notices(
            actor=request.actor, assistant_id=None if assistant is None else assistant.pk
        ),
    }


def _named(searching: Conversation | Project | None, chosen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the label of the scope names; empty for all.

    Args:
        searching: the conversation, or the project of a new one; None for a new one in none.
    """
    if searching is not None and not searching.searches_all and not chosen:
        return [{"name": _("No collection (the chosen ones were deleted)")}]
    return chosen


def _prompt(request: TenantRequest) -> Suggestion | None:
    """Return the prompt that “Use” of the library has brought here; None for none, or one that is gone."""
    asked = request.GET.get("prompt", "")
    if not (asked.isascii() and asked.isdigit() and len(asked) < 19):
        return None
    try:
        return prompt_suggestion(prompt_get(actor=request.actor, pk=int(asked)))
    except Missing:
        return None


def client_id_read(request: HttpRequest) -> uuid.UUID:
    """Return the id that the browser has given a question. Raises Invalid."""
    try:
        return uuid.UUID(request.POST.get("client_id", ""))
    except ValueError:
        raise Invalid(
            "client_id_invalid", _("The message came without its id. Reload the page and send it again.")
        ) from None


def tools_off_read(request: HttpRequest) -> list[str]:
    """Return the names of the tools that are switched off."""
    return sorted({*request.POST.getlist("off")})


def narrowing_read(request: HttpRequest) -> Narrowing:
    """Return what a message is limited to: the chips in the message box. Raises Invalid."""
    return Narrowing(
        tuple(ids_read(request, "only_collections")),
        tuple(ids_read(request, "only_documents")),
        tuple(request.POST.getlist("only_tools")),
    )


def collections_read(request: HttpRequest) -> list[int]:
    """Return the ids of the chosen collections. Raises Invalid."""
    return ids_read(request, "collections", _("One of the chosen collections does not exist."))


def project_read(request: HttpRequest) -> int | None:
    """Return the id of the project that a form names, None for none. Raises Invalid."""
    found = ids_read(request, "project")
    return found[0] if found else None


def ids_read(request: HttpRequest, name: str, problem: str = "") -> list[int]:
    """Return the ids in a form's field. Raises Invalid, with ``problem`` or else that they no longer exist."""
    values = [value for value in request.POST.getlist(name) if value]
    if any(not v.isascii() or not v.isdigit() or len(v) > 18 for v in values):
        raise Invalid(
            f"unknown_{name.removesuffix('s')}", problem or _("This no longer exists. Reload the page.")
        )
    return [int(v) for v in values]


def _sees(model: ModelInfo) -> str:
    """Return what a model can be shown, in words for the page's script."""
    profile = model.profile
    facts = {"image": profile.image_input, "audio": profile.audio_input, "scan": profile.pdf_input}
    return " ".join(kind for kind, is_taken in facts.items() if is_taken)
