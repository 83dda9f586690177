"""The steps from an empty workspace to an answer with its source, for who has not gone them yet."""

from __future__ import annotations

from dataclasses import dataclass

from apps.collections.models import Document, DocumentStatus
from apps.conversations.models import Conversation
from tenancy.actors import Actor

_READING = (DocumentStatus.QUEUED, DocumentStatus.PROCESSING)
_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """How far somebody is.

    Attributes:
        has_documents: there is something to ask.
        reading: number of documents that are being read, at most 1,000.
    """

    has_documents: bool
    reading: int


def first_steps(*, actor: Actor, has_documents: bool) -> FirstSteps | None:
    """Return how far a person is; None for who has asked something where there is something to ask."""
    if has_documents and Conversation.objects.visible_to(actor).exists():
        return None
    reading = Document.objects.visible_to(actor).current().filter(status__in=_READING)
    return FirstSteps(has_documents, reading[:_COUNTED].count())
