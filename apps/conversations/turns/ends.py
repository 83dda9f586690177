"""What decides whether a question can be asked in a conversation, by one statement on the way to the first text."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.db import connection

from apps.conversations.models import Conversation


@dataclass(frozen=True, slots=True)
class TurnEnds:
    """What decides whether a question can be asked, and how.

    Attributes:
        known: id of the turn that it is already.
        active: id of the turn whose answer is under way.
        newest: index of the newest turn.
        is_undecided: the last turn is one of two answers of which none is kept yet.
        is_queue: questions wait already.
        has_files: something was attached to the conversation.
        turn, run, job, message, audit: ids for what a new question adds.
    """

    known: int | None
    active: int | None
    newest: int | None
    is_undecided: bool
    is_queue: bool
    has_files: bool
    turn: int
    run: int
    job: int
    message: int
    audit: int


_ENDS = """
SELECT max(id) FILTER (WHERE client_id = %(client)s::uuid), max(id) FILTER (WHERE is_active), max(index),
    coalesce(bool_or(id = %(head)s AND side IS NOT NULL AND is_kept IS NULL), false),
    EXISTS (SELECT FROM conversations_queuedquestion
        WHERE tenant_id = %(tenant)s AND conversation_id = %(conversation)s),
    EXISTS (SELECT FROM conversations_attachment
        WHERE tenant_id = %(tenant)s AND conversation_id = %(conversation)s),
    nextval('conversations_turn_id_seq'), nextval('runs_run_id_seq'), nextval('jobs_job_id_seq'),
    nextval('conversations_message_id_seq'), nextval('tenancy_auditevent_id_seq')
FROM conversations_turn WHERE tenant_id = %(tenant)s AND conversation_id = %(conversation)s
"""


def turn_ends(conversation: Conversation, client_id: uuid.UUID) -> TurnEnds:
    """Return them for a conversation whose lock is held, by one statement on the way to the first text."""
    values: dict[str, int | str | None] = {
        "tenant": conversation.tenant_id,
        "conversation": conversation.pk,
        "client": str(client_id),
        "head": conversation.head_id,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ENDS, values)
        return TurnEnds(*cursor.fetchone())
