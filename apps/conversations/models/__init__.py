"""Rows of assistants and conversations."""

from apps.conversations.models.around import (
    ConversationRules,
    ConversationShare,
    Feedback,
    QueuedQuestion,
    ShareReader,
)
from apps.conversations.models.assistant import (
    Assistant,
    AssistantCollection,
    AssistantHelper,
    AssistantVersion,
    Mode,
    Output,
)
from apps.conversations.models.conversation import (
    Attachment,
    Citation,
    Conversation,
    ConversationCollection,
    Message,
    Turn,
)

__all__ = [
    "Assistant",
    "AssistantCollection",
    "AssistantHelper",
    "AssistantVersion",
    "Attachment",
    "Citation",
    "Conversation",
    "ConversationCollection",
    "ConversationRules",
    "ConversationShare",
    "Feedback",
    "Message",
    "Mode",
    "Output",
    "QueuedQuestion",
    "ShareReader",
    "Turn",
]
