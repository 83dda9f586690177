"""Answers that rest on documents which somebody may not read: they are not there for them, nor is what judges said of them."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.datasets.rows.withheld import RestsOn, documents_hidden
from apps.evaluations.models import Arm, Trial
from runs.models import ChunkRead
from tenancy.actors import Actor

R = TypeVar("R", bound="QuerySet[Any]")
_SOURCES = ("content__data__sources", "outcome__retrieved", "outcome__citations")


def trials_readable(rows: R, actor: Actor, at: str = "") -> R:
    """Return those answers of which nothing rests on what the actor may not read: row, passages, and all that their run read.

    Args:
        at: the path to the answer, such as ``trial__``, where the rows are of something that is about one.
    """
    hidden = documents_hidden(actor)
    if not hidden:
        return rows
    read = ChunkRead.objects.filter(
        tenant_id=actor.tenant_id, run_id=OuterRef(f"{at}run_id"), document_id__in=[int(pk) for pk in hidden]
    )
    rests = Q(Exists(read))
    for column in _SOURCES:
        rests |= Q(RestsOn(f"{at}{column}", hidden))
    return rows.exclude(rests)


def rows_hidden(*, actor: Actor, arm: Arm) -> set[int]:
    """Return which rows of an arm are not there for the actor: an answer to them rests on what they may not read."""
    if not documents_hidden(actor):
        return set()
    trials = Trial.objects.visible_to(actor).filter(arm=arm)
    shown = trials_readable(trials, actor).values("pk")
    return set(trials.exclude(pk__in=shown).values_list("row_ref", flat=True))
