"""Who answers in a conversation: the model alone, or an assistant in its published version."""

from __future__ import annotations

from apps.conversations.assistants.selectors import assistant_named
from apps.conversations.models import Assistant, AssistantVersion, Conversation
from apps.conversations.transcript import selectors
from apps.conversations.transcript.locks import model_checked
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import Tenant

CHOICE = ("assistant", "pinned_version", "model")
"""The fields of a conversation that ``answerer_choose`` may change."""


def answerer_choose(
    tenant: Tenant,
    actor: Actor,
    conversation: Conversation,
    *,
    assistant: str | None = None,
    number: int | None = None,
    model: str = "",
) -> AssistantVersion | None:
    """Decide who answers the next question, and note it on the conversation; the caller saves its ``CHOICE`` fields.

    Args:
        conversation: locked, or not stored yet.
        assistant: slug of the assistant to ask from now on, "" for the model alone; None changes nothing.
        number: with ``assistant``, a version to try in place of the published one; needs ``assistant.write``.
        model: routing name; "" takes the conversation's. An assistant brings its own.

    Returns:
        The version that answers; None for the model alone.

    Raises:
        Denied: a version is to be tried without the right to edit assistants.
        Invalid: the model is unknown here, or an assistant answers and has its own.
        Missing: no such assistant to choose, or no such version.
        Conflict: the assistant was archived or is published no more, or its model is not available any more.
    """
    if assistant is not None:
        _assistant_set(actor, conversation, assistant, number)
    if conversation.assistant_id is None:
        if (model and model != conversation.model) or not conversation.model:
            conversation.model = model_checked(tenant, model, actor)
        return None
    version = _version(actor, conversation.assistant, conversation.pinned_version)
    answering = version.model or selectors.model_default(selectors.model_list(tenant))
    if model not in ("", answering):
        raise Invalid(
            "assistant_has_model",
            _("“%(name)s” answers with its own model. Leave the model out, or use general chat.")
            % {"name": conversation.assistant.name},
            data={"fields": {"model": [_("The assistant brings its own.")]}},
        )
    if version.model and version.model != conversation.model:
        _model_there(tenant, conversation.assistant, version.model)
    conversation.model = answering
    return version


def assistant_answering(tenant: Tenant, actor: Actor, name: str) -> tuple[AssistantVersion, str]:
    """Return the published version of an assistant, by its slug, and the model it answers with.

    Raises:
        Missing: ``assistant_not_found``, there is none to choose.
        Conflict: ``assistant_model_gone``.
    """
    assistant = assistant_named(actor=actor, name=name)
    version = _version(actor, assistant, None)
    if version.model:
        _model_there(tenant, assistant, version.model)
    return version, version.model or selectors.model_default(selectors.model_list(tenant))


def _model_there(tenant: Tenant, assistant: Assistant, model: str) -> None:
    if model not in {info.id for info in selectors.model_list(tenant)}:
        raise Conflict(
            "assistant_model_gone",
            _(
                "“%(name)s” answers with %(model)s, which is no longer available here. Ask someone who "
                "can edit it to choose another model."
            )
            % {"name": assistant.name, "model": model},
        )


def _assistant_set(actor: Actor, conversation: Conversation, name: str, number: int | None) -> None:
    if not name:
        conversation.assistant = conversation.pinned_version = None
        return
    if number is None:
        conversation.assistant = assistant_named(actor=actor, name=name)
        conversation.pinned_version = None
        return
    actor.require("assistant.write")
    found = Assistant.objects.visible_to(actor).filter(slug=name).first()
    if found is None:
        raise Missing("assistant", "assistant_not_found")
    version = found.versions.filter(number=number).first()
    if version is None:
        raise Missing("version")
    conversation.assistant, conversation.pinned_version = found, version


def _version(actor: Actor, assistant: Assistant, pinned: AssistantVersion | None) -> AssistantVersion:
    """Return the version that answers now. Raises Denied, Conflict."""
    if pinned is not None:
        actor.require("assistant.write")
    if assistant.archived_at is not None:
        raise Conflict(
            "assistant_archived",
            _("“%(name)s” is archived. Start a conversation with another assistant.")
            % {"name": assistant.name},
        )
    version = pinned or assistant.published
    if version is None:
        raise Conflict(
            "assistant_unpublished",
            _("“%(name)s” is not published at the moment. Start a conversation with another assistant.")
            % {"name": assistant.name},
        )
    return version
