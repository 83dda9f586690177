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
from apps.conversations.services.attachments import attachment_add, attachment_remove, attachment_retry
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
    conversation_remove,
    conversation_rename,
    scope_set,
    tools_off_set,
)
from apps.conversations.services.drafts import conversation_seen, draft_set
from apps.conversations.services.examples import EXAMPLES, example_install, example_read
from apps.conversations.services.exports import Export, conversation_export
from apps.conversations.services.feedback import feedback_give, feedback_withdraw
from apps.conversations.services.lost_titles import LOST_JOB, titles_later, titles_withhold
from apps.conversations.services.queue import JOB_KIND as QUEUE_JOB
from apps.conversations.services.queue import (
    question_queue,
    queued_ask,
    queued_edit,
    queued_next,
    queued_remove,
)
from apps.conversations.services.shares import share_create, share_open, share_revoke
from apps.conversations.services.support import JOB_KIND as SUPPORT_JOB
from apps.conversations.services.support import support_check
from apps.conversations.services.titles import JOB_KIND as TITLE_JOB
from apps.conversations.services.titles import title_make
from apps.conversations.services.turns import (
    JOB_KIND,
    call_decide,
    conversation_ask,
    conversation_begin,
    turn_retry,
    turn_stop,
    turn_submit,
)

__all__ = [
    "EXAMPLES",
    "JOB_KIND",
    "LOST_JOB",
    "MAX_TEXT",
    "QUEUE_JOB",
    "RUN_KIND",
    "SUPPORT_JOB",
    "TITLE_JOB",
    "Export",
    "advisory_lock",
    "assistant_archive",
    "assistant_create",
    "assistant_rename",
    "assistant_restore",
    "attachment_add",
    "attachment_remove",
    "attachment_retry",
    "call_decide",
    "conversation_ask",
    "conversation_begin",
    "conversation_create",
    "conversation_delete",
    "conversation_export",
    "conversation_fork",
    "conversation_remove",
    "conversation_rename",
    "conversation_seen",
    "draft_set",
    "example_install",
    "example_read",
    "feedback_give",
    "feedback_withdraw",
    "question_queue",
    "queued_ask",
    "queued_edit",
    "queued_next",
    "queued_remove",
    "scope_set",
    "share_create",
    "share_open",
    "share_revoke",
    "support_check",
    "title_make",
    "titles_later",
    "titles_withhold",
    "tools_off_set",
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
