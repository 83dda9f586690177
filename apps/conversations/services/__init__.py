"""Writes of conversations and of what belongs to them."""

from apps.conversations.services.assistants import (
    assistant_archive,
    assistant_create,
    assistant_rename,
    assistant_restore,
    version_create,
    version_publish,
    version_unpublish,
)
from apps.conversations.services.branches import (
    conversation_fork,
    turn_choose,
    turn_continue,
    turn_edit,
    turn_regenerate,
)
from apps.conversations.services.checks import MAX_TEXT, advisory_lock
from apps.conversations.services.conversations import (
    RUN_KIND,
    conversation_create,
    conversation_delete,
    conversation_rename,
    scope_set,
)
from apps.conversations.services.turns import (
    JOB_KIND,
    call_decide,
    conversation_ask,
    turn_retry,
    turn_stop,
    turn_submit,
)

__all__ = [
    "JOB_KIND",
    "MAX_TEXT",
    "RUN_KIND",
    "advisory_lock",
    "assistant_archive",
    "assistant_create",
    "assistant_rename",
    "assistant_restore",
    "call_decide",
    "conversation_ask",
    "conversation_create",
    "conversation_delete",
    "conversation_fork",
    "conversation_rename",
    "scope_set",
    "turn_choose",
    "turn_continue",
    "turn_edit",
    "turn_regenerate",
    "turn_retry",
    "turn_stop",
    "turn_submit",
    "version_create",
    "version_publish",
    "version_unpublish",
]
