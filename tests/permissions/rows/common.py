"""What the rows of every room are made of: the row, what it sends, and states that several rooms need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from apps.conversations.models import Message
from jobs.models import Job
from tenancy.scope import platform_scope
from tests.permissions.world import Side

Data = Callable[[Side, str], Mapping[str, Any]]
COLLECTION = {"pk": "collections.Collection"}
TALK = ("conversation.read", "collection.read", "search.run")


@dataclass(frozen=True)
class Row:
    """One method of one URL.

    Attributes:
        action: the right it needs; "" = any member.
        ids: URL argument -> model label; the row of that model in the side that is asked for.
        fixed: URL arguments that are no ids.
        data: what to send, from the side and the caller's role; may name ids of that side too.
        ok: the status when allowed.
        json: send as JSON.
        before: changes the row first, so that the call can succeed.
        body_ids: the ids are in the data: the status for those of another tenant.
        also: scopes that a key needs besides (who writes must read).
        is_stream: answers with server-sent events; these rows are driven by test_streams.py.
    """

    url: str
    method: str = "GET"
    action: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    data: Data | None = None
    ok: int = 200
    before: Callable[[Side, str], None] | None = None
    body_ids: int = 0
    also: tuple[str, ...] = ()
    is_stream: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.url}"


def send(**values: Any) -> Data:
    return lambda side, role: {k: v(side, role) if callable(v) else v for k, v in values.items()}


def pk_of(label: str) -> Callable[[Side, str], int]:
    return lambda side, role: side.row(label, role).pk


def uploaded_file(side: Side, role: str) -> SimpleUploadedFile:
    return SimpleUploadedFile("notes.txt", f"Notes of {side.tenant.slug}.".encode(), "text/plain")


def turn_is(is_active: bool, status: str) -> Callable[[Side, str], None]:
    """The conversation's one turn is under way, or has ended."""

    def change(side: Side, role: str) -> None:
        turn, run = side.row("conversations.Turn", role), side.row("runs.Run", role)
        turn.is_active, run.status = is_active, status
        with platform_scope():
            turn.save()
            run.save()
            Message.objects.get_or_create(
                tenant=side.tenant, turn=turn, author="user", defaults={"text": "Why?"}
            )

    return change


def turn_answered(side: Side, role: str) -> None:
    """The conversation's one turn is answered, and it is what the conversation shows."""
    turn_is(False, "completed")(side, role)
    turn, run = side.row("conversations.Turn", role), side.row("runs.Run", role)
    run.answer = "Because."
    with platform_scope():
        run.save()
        turn.conversation.head = turn
        turn.conversation.save()


def run_parked(side: Side, role: str) -> None:
    """The run waits for a decision; its job, which it goes on with, is one of this kind."""
    turn_is(True, "parked")(side, role)
    waiting, run = side.row("runs.PendingDecision", role), side.row("runs.Run", role)
    with platform_scope():
        run.job = Job.objects.create(
            tenant=side.tenant, kind="conversations.turn_run", lane="loop", status="succeeded"
        )
        run.save()
        waiting.expires_at = timezone.now() + timedelta(hours=1)
        waiting.save()
