"""Writes over several conversations at once: move, put away, delete, and take the deletion back.

A conversation that was deleted here is nobody's at once, and gone for good after ``UNDO_S``: a job waits for that.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.conversations.models import Conversation, QueuedQuestion
from apps.conversations.transcript.locks import project_held
from apps.conversations.turns.conversations import conversation_remove
from apps.conversations.turns.queue import JOB_KIND as QUEUE_JOB
from basics.errors import Invalid
from basics.texts import gettext as _
from jobs.services import job_enqueue
from runs.models import Run
from runs.services import runs_stop
from tenancy.actors import Actor, system_actor
from tenancy.models import Tenant
from tenancy.services import audit_record

JOB_KIND = "conversations.removed_purge"
MOST = 200
"""Conversations that one call takes."""
UNDO_S = 3600
"""Seconds in which a deletion can be taken back."""


def conversations_move(
    *, tenant: Tenant, actor: Actor, conversations: Sequence[int], project: int | None
) -> dict[int, int | None]:
    """Put conversations into a project, or with None into none; what they search stays as it is.

    Returns:
        Those that were somewhere else, with the id of the project they were in.

    Raises:
        Denied: without the right ``conversation.write``.
        Invalid: a conversation isn't the actor's, or the project can't be seen; nothing is moved.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        folder = project_held(actor, project)
        rows = [row for row in _locked(actor, conversations) if row.project_id != project]
        before = {row.pk: row.project_id for row in rows}
        _write(tenant, rows, project=folder)
        for row in rows:
            _record(tenant, actor, "conversation.move", row, {"project": project})
    return before


def conversations_archive(
    *, tenant: Tenant, actor: Actor, conversations: Sequence[int], is_archived: bool
) -> list[int]:
    """Put conversations away, out of every list but that of archived ones, or bring them back.

    Returns:
        The ids of those that were changed.

    Raises:
        Denied, Invalid: as ``conversations_move``.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        rows = [row for row in _locked(actor, conversations) if bool(row.archived_at) != is_archived]
        _write(tenant, rows, archived_at=timezone.now() if is_archived else None)
        for row in rows:
            _record(tenant, actor, "conversation.archive", row, {"is_archived": is_archived})
    return [row.pk for row in rows]


def conversations_delete(*, tenant: Tenant, actor: Actor, conversations: Sequence[int]) -> list[int]:
    """Delete conversations so that it can be undone for ``UNDO_S``; answers under way are stopped.

    Until then they are in no list, answer to no address, and their links don't open.

    Returns:
        Their ids.

    Raises:
        Denied, Invalid: as ``conversations_move``.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        rows = _locked(actor, conversations)
        _write(tenant, rows, removed_at=timezone.now())
        for row in rows:
            _record(tenant, actor, "conversation.delete", row, {})
        runs_stop(tenant=tenant, actor=actor, runs=Run.objects.filter(turns__conversation__in=rows))
        if rows:
            job_enqueue(tenant=tenant, actor=actor, kind=JOB_KIND, payload={})
    return [row.pk for row in rows]


def conversations_undelete(*, tenant: Tenant, actor: Actor, conversations: Sequence[int]) -> list[int]:
    """Bring back conversations that were deleted less than ``UNDO_S`` ago; questions that wait in them are asked.

    Returns:
        Their ids; those that weren't deleted are left out.

    Raises:
        Denied: without the right ``conversation.write``.
        Invalid: ``unknown_conversation``, one is gone for good, or was never the actor's.
    """
    actor.require("conversation.write")
    with transaction.atomic():
        rows = [row for row in _locked(actor, conversations, removed=True) if row.removed_at is not None]
        _write(tenant, rows, removed_at=None)
        for row in rows:
            _record(tenant, actor, "conversation.undelete", row, {})
        # What followed the answer that the deletion stopped found no conversation to ask the next question in.
        waiting = QueuedQuestion.objects.filter(tenant=tenant, conversation__in=rows)
        for pk in waiting.order_by().values_list("conversation_id", flat=True).distinct():
            job_enqueue(tenant=tenant, actor=actor, kind=QUEUE_JOB, payload={"conversation_id": pk})
    return [row.pk for row in rows]


def removed_purge(*, tenant: Tenant, now: datetime.datetime | None = None) -> float:
    """Delete for good what can't be brought back any more; safe in several processes at once.

    Args:
        now: the moment it is.

    Returns:
        Seconds until the next one is due; 0 if none waits.
    """
    now = now or timezone.now()
    over = now - datetime.timedelta(seconds=UNDO_S)
    removed = Conversation.objects.filter(tenant=tenant, removed_at__isnull=False)
    for pk in list(removed.filter(removed_at__lte=over).values_list("pk", flat=True)):
        with transaction.atomic():
            row = removed.select_for_update(skip_locked=True).filter(pk=pk, removed_at__lte=over).first()
            if row is not None:
                conversation_remove(tenant, system_actor(tenant.pk), row)
    first = removed.order_by("removed_at").values_list("removed_at", flat=True).first()
    return 0.0 if first is None else max(1.0, (first - over).total_seconds())


def _locked(actor: Actor, pks: Sequence[int], *, removed: bool = False) -> list[Conversation]:
    wanted = set(pks)
    if len(wanted) > MOST:
        raise Invalid(
            "too_many_conversations",
            _("Choose at most %(most)s conversations at once.") % {"most": MOST},
            data={"fields": {"conversations": [_("Too many.")]}},
        )
    manager = Conversation.objects
    rows = manager.kept_for(actor) if removed else manager.visible_to(actor)
    # In the order of their ids, so that two calls never wait for each other.
    found = list(rows.select_for_update(of=("self",)).filter(pk__in=wanted).order_by("pk"))
    if len(found) != len(wanted):
        raise Invalid(
            "unknown_conversation",
            _("One of the chosen conversations no longer exists. Reload the page and choose again."),
            data={"fields": {"conversations": [_("Unknown conversation.")]}},
        )
    return found


def _write(tenant: Tenant, rows: Sequence[Conversation], **values: Any) -> None:
    """Change locked rows by one statement."""
    Conversation.objects.filter(tenant=tenant, pk__in=[row.pk for row in rows]).update(**values)


def _record(tenant: Tenant, actor: Actor, action: str, row: Conversation, data: dict[str, Any]) -> None:
    audit_record(tenant=tenant, actor=actor, action=action, object=row, data=data)
