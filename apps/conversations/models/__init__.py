"""Rows of assistants and conversations."""

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
from apps.conversations.models.feedback import Feedback
from apps.conversations.models.memory import MemoryEntry, MemorySetting
from apps.conversations.models.picture import Picture
from apps.conversations.models.project import Project, ProjectCollection, ProjectMember, Sharing
from apps.conversations.models.prompt import Prompt
from apps.conversations.models.queued import QueuedQuestion
from apps.conversations.models.rules import ConversationRules
from apps.conversations.models.sharing import ConversationShare, ShareReader

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
    "MemoryEntry",
    "MemorySetting",
    "Message",
    "Mode",
    "Output",
    "Picture",
    "Project",
    "ProjectCollection",
    "ProjectMember",
    "Prompt",
    "QueuedQuestion",
    "ShareReader",
    "Sharing",
    "Turn",
]
