"""Reads of batches: what is out for an owner, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from batches.models import OPEN, Batch, BatchLine, BatchState, LineState
from tenancy.actors import Actor

FIRST_LOOK_S, PATIENCE = 30.0, 4
"""A batch is asked about again after half a minute, later after a quarter of its age."""


@dataclass(frozen=True, slots=True)
class BatchRound:
    """The round that an owner waits for.

    Attributes:
        number: 1 for the first; a call that goes on after tools were called belongs to the next.
        total, done: calls, and those of them whose answers are back as far as the provider tells; ``sending`` have not
            been handed over yet.
        sent_at: when the first of them was handed over; ``due_at``, when the provider gives up at the latest. None
            while none was.
        is_stopping: the provider was told to stop.
    """

    number: int
    total: int
    done: int
    sending: int
    sent_at: datetime | None
    due_at: datetime | None
    is_stopping: bool


def round_open(*, actor: Actor, owner: str) -> BatchRound | None:
    """Return what an owner waits for, None when nothing of it is with a provider."""
    rows = Batch.objects.visible_to(actor).filter(owner=owner, state__in=OPEN)
    found = list(rows.values_list("round", "state", "total", "done", "sent_at", "hours", "cancelled_at"))
    if not found:
        return None
    sent = [(at, at + timedelta(hours=hours)) for _, _, _, _, at, hours, _ in found if at]
    return BatchRound(
        number=max(row[0] for row in found),
        total=sum(row[2] for row in found),
        done=sum(row[3] for row in found),
        sending=sum(row[2] for row in found if row[1] == BatchState.SENDING),
        sent_at=min((at for at, _ in sent), default=None),
        due_at=max((due for _, due in sent), default=None),
        is_stopping=any(row[6] for row in found),
    )


def batches_open(tenant_id: int, owner: str) -> list[Batch]:
    """Return the batches of an owner that have not ended, the oldest first."""
    rows = Batch.objects.filter(tenant_id=tenant_id, owner=owner, state__in=OPEN)
    return list(rows.order_by("pk"))


def models_wanted(tenant_id: int, owner: str) -> list[str]:
    """Return the models that lines of an owner are wanted from."""
    rows = BatchLine.objects.filter(tenant_id=tenant_id, owner=owner, state=LineState.WANTED)
    return list(rows.order_by("model").values_list("model", flat=True).distinct())


def keys_waiting(tenant_id: int, owner: str) -> list[str]:
    """Return the keys of an owner's calls that have neither an answer nor been given up."""
    waiting = (LineState.WANTED, LineState.SENT)
    rows = BatchLine.objects.filter(tenant_id=tenant_id, owner=owner, state__in=waiting)
    return list(rows.values_list("key", flat=True))


def round_next(tenant_id: int, owner: str) -> int:
    """Return the number of an owner's next round."""
    last = Batch.objects.filter(tenant_id=tenant_id, owner=owner).aggregate(n=Max("round"))["n"]
    return (last or 0) + 1


def look_again_s(tenant_id: int, owner: str) -> float:
    """Return after how many seconds to ask about an owner's batches again: rarer the longer they are out."""
    rows = Batch.objects.filter(tenant_id=tenant_id, owner=owner, state__in=OPEN)
    newest = rows.aggregate(at=Max("created_at"))["at"]
    age = 0.0 if newest is None else (timezone.now() - newest).total_seconds()
    return min(settings.BATCH_LOOK_S, max(FIRST_LOOK_S, age / PATIENCE))
