"""Conversations, their answers, and the assistants that write them."""

from apps.conversations.models.assistants import Assistant, AssistantVersion, OutputFormat
from apps.conversations.models.conversation import (
    Citation,
    Conversation,
    ConversationCollection,
    Message,
    Turn,
)
from apps.conversations.models.sharing import (
    Attachment,
    ConversationShare,
    Feedback,
    QueuedQuestion,
)

__all__ = [
    "Assistant",
    "AssistantVersion",
    "Attachment",
    "Citation",
    "Conversation",
    "ConversationCollection",
    "ConversationShare",
    "Feedback",
    "Message",
    "OutputFormat",
    "QueuedQuestion",
    "Turn",
]
