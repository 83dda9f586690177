"""Reads of annotation: queues with their progress, who graded how much and how well, and one answer to grade, blind."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from apps.conversations.models import Citation
from apps.datasets.records.record import Record, from_values
from apps.datasets.records.rubric import Criterion
from apps.evaluations.judges.claim_rubrics import needs_passages
from apps.evaluations.judges.scoring import rubric_value
from apps.evaluations.models import (
    AnnotationItem,
    AnnotationQueue,
    Assignment,
    AssignmentState,
    RubricVersion,
    Score,
    Trial,
    TrialState,
)
from apps.evaluations.results.outcomes import outcome_of
from apps.evaluations.results.withheld import trials_readable
from apps.evaluations.scorers.base import ScoredPassage
from apps.evaluations.scorers.claims import MOST_PASSAGES
from apps.evaluations.scorers.turns import EarlierMessage, said_before
from basics.errors import Missing
from tenancy.actors import Actor
from tenancy.models import Membership

LIVE = datetime.timedelta(days=90)
"""Live answers that tell what people ask about now."""


def queue_list(*, actor: Actor) -> QuerySet[AnnotationQueue]:
    """Return queues, newest first, each with ``item_total`` and ``grade_total``."""
    actor.require("evaluation.read")
    rows = AnnotationQueue.objects.visible_to(actor)
    rows = rows.select_related("rubric_version__rubric", "experiment")
    done = Q(items__assignments__state=AssignmentState.DONE)
    return cast(
        "QuerySet[AnnotationQueue]",
        rows.annotate(
            item_total=Count("items", distinct=True),
            grade_total=Count("items__assignments", filter=done, distinct=True),
        ).order_by("-pk"),
    )


def queue_get(*, actor: Actor, pk: int) -> AnnotationQueue:
    """Return one queue with its totals. Raises Missing."""
    found = queue_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("queue")
    return found


@dataclass(frozen=True, slots=True)
class Grader:
    """One person's work in a queue.

    Attributes:
        seconds: median time from opening an answer to its grade.
        gold_right, gold_total: levels equal to those known to be right.
    """

    name: str
    done: int
    skipped: int
    seconds: float | None
    gold_right: int = 0
    gold_total: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a queue is.

    Attributes:
        complete: answers with all the grades they need.
        waiting: answers that are not there yet.
        wanted: grades in all.
        graders: by grades given, the most first; who was asked and has given none is among them.
    """

    items: int
    complete: int
    waiting: int
    grades: int
    wanted: int
    graders: Sequence[Grader]


def queue_progress(*, actor: Actor, queue: AnnotationQueue) -> Progress:
    """Return a queue's progress, in four queries."""
    actor.require("evaluation.read")
    items = AnnotationItem.objects.visible_to(actor).filter(queue=queue)
    totals = items.annotate(
        grades=Count("assignments", filter=Q(assignments__state=AssignmentState.DONE))
    ).aggregate(
        items=Count("pk"),
        complete=Count("pk", filter=Q(grades__gte=queue.reviews)),
        waiting=Count("pk", filter=~Q(trial__state__in=(TrialState.DONE, TrialState.FAILED))),
    )
    given = Assignment.objects.visible_to(actor).filter(item__queue=queue)
    given = given.exclude(state=AssignmentState.OPEN)
    times: dict[int, list[float]] = {}
    done: dict[int, int] = {}
    skipped: dict[int, int] = {}
    asked = Membership.objects.visible_to(actor).filter(user_id__in=queue.assignees)
    names: dict[int, str] = dict(asked.values_list("user_id", "user__email"))
    for user, name, state, began, ended in given.values_list(
        "user_id", "user__email", "state", "created_at", "finished_at"
    ):
        names[user] = name
        if state == AssignmentState.DONE:
            done[user] = done.get(user, 0) + 1
            if ended is not None:
                times.setdefault(user, []).append((ended - began).total_seconds())
        else:
            skipped[user] = skipped.get(user, 0) + 1
    right, total = _gold(actor, queue)
    graders = [
        Grader(
            name,
            done.get(user, 0),
            skipped.get(user, 0),
            statistics.median(times[user]) if user in times else None,
            right.get(user, 0),
            total.get(user, 0),
        )
        for user, name in names.items()
    ]
    graders.sort(key=lambda one: (-one.done, one.name))
    return Progress(
        totals["items"],
        totals["complete"],
        totals["waiting"],
        sum(done.values()),
        totals["items"] * queue.reviews,
        graders,
    )


@dataclass(frozen=True, slots=True)
class Sheet:
    """One answer to grade. It names neither model nor arm nor judge, and no grade of others.

    Attributes:
        said: what user and assistant said before the question.
        passages: those that were found, best first, where one must read them to grade; a judge has read the same ones.
        criteria: each with the level that this person gave before undoing it, None for none.
        left: answers that this person may still grade, this one among them.
        can_undo: this person has decided about one already.
    """

    assignment: Assignment
    record: Record
    said: Sequence[EarlierMessage]
    answer: str
    passages: Sequence[ScoredPassage]
    criteria: Sequence[tuple[Criterion, int | None]]
    left: int
    done: int
    can_undo: bool


def sheet_get(*, actor: Actor, assignment: Assignment) -> Sheet:
    """Return what a person sees who grades. Raises Missing: it is another's."""
    rows = Assignment.objects.visible_to(actor).filter(user_id=_person(actor))
    row: Assignment | None = (
        rows.select_related("item__queue", "item__trial__content").filter(pk=assignment.pk).first()
    )
    if row is None or not trials_readable(Trial.objects.filter(pk=row.item.trial_id), actor):
        raise Missing("assignment")
    queue = row.item.queue
    trial: Trial = row.item.trial
    version = RubricVersion.objects.select_related("rubric").get(pk=queue.rubric_version_id)
    before = dict(Score.objects.filter(assignment=row).order_by("pk").values_list("name", "level"))
    mine = rows.filter(item__queue=queue).exclude(state=AssignmentState.OPEN)
    decided = mine.aggregate(n=Count("pk"), done=Count("pk", filter=Q(state=AssignmentState.DONE)))
    record = from_values(trial.content.data)
    return Sheet(
        row,
        record,
        said_before(record),
        trial.answer,
        _passages(version, record, trial),
        [(c, _whole(before.get(c.name))) for c in rubric_value(version).criteria],
        _left(actor, queue),
        decided["done"],
        bool(decided["n"]),
    )


def traffic(*, actor: Actor, trials: Collection[int]) -> dict[int, int]:
    """Return how many live answers of the last 90 days cite a document that a trial's row rests on; trials without any left out.

    It is how often what the row asks about is asked. A count over everybody's conversations tells of nobody's words.
    """
    actor.require("evaluation.read")
    rows = Trial.objects.visible_to(actor).filter(pk__in=trials)
    rests_on = {
        trial: {source["document_id"] for source in sources or () if source.get("document_id")}
        for trial, sources in rows.values_list("pk", "content__data__sources")
    }
    cited = Citation.objects.filter(
        tenant_id=actor.tenant_id,
        document__in={pk for documents in rests_on.values() for pk in documents},
        turn__run__created_at__gt=timezone.now() - LIVE,
    )
    answers: dict[int, set[int]] = {}
    for document, turn in cited.values_list("document_id", "turn_id").distinct():
        answers.setdefault(document, set()).add(turn)
    found = {
        trial: len({turn for pk in documents for turn in answers.get(pk, ())})
        for trial, documents in rests_on.items()
    }
    return {trial: count for trial, count in found.items() if count}


def assignment_get(*, actor: Actor, pk: int) -> Assignment:
    """Return one of the actor's own assignments. Raises Missing."""
    actor.require("evaluation.read")
    rows = Assignment.objects.visible_to(actor).select_related("item__queue")
    found: Assignment | None = rows.filter(pk=pk, user_id=_person(actor)).first()
    if found is None:
        raise Missing("assignment")
    return found


def grader_choices(*, actor: Actor) -> list[tuple[int, str]]:
    """Return the members who may grade: id and address."""
    actor.require("evaluation.read")
    rows = Membership.objects.visible_to(actor).exclude(role="viewer").select_related("user")
    return [(row.user_id, row.user.email) for row in rows.order_by("user__email")]


def _left(actor: Actor, queue: AnnotationQueue) -> int:
    mine = Assignment.objects.filter(item__queue=queue, user_id=_person(actor))
    items = AnnotationItem.objects.visible_to(actor).filter(queue=queue)
    items = trials_readable(items, actor, at="trial__")
    items = items.exclude(pk__in=mine.exclude(state=AssignmentState.OPEN).values("item"))
    counted = items.exclude(trial__state=TrialState.FAILED).annotate(
        grades=Count("assignments", filter=Q(assignments__state=AssignmentState.DONE))
    )
    return counted.filter(Q(grades__lt=queue.reviews) | ~Q(gold={})).count()


def _gold(actor: Actor, queue: AnnotationQueue) -> tuple[dict[int, int], dict[int, int]]:
    """Return per person how many levels of known answers are right, and how many they gave."""
    right: dict[int, int] = {}
    total: dict[int, int] = {}
    given = Score.objects.visible_to(actor).filter(
        assignment__item__queue=queue, assignment__state=AssignmentState.DONE
    )
    given = given.exclude(assignment__item__gold={}).order_by("pk")
    last = {
        (user, item, name): (level, gold)
        for user, item, name, level, gold in given.values_list(
            "user_id", "assignment__item_id", "name", "level", "assignment__item__gold"
        )
    }
    for (user, _, name), (level, gold) in last.items():
        if name in gold:
            total[user] = total.get(user, 0) + 1
            right[user] = right.get(user, 0) + (level == gold[name])
    return right, total


def _passages(version: RubricVersion, record: Record, trial: Trial) -> list[ScoredPassage]:
    if not needs_passages(version.rubric.slug) and record.sources:
        return []
    return list(outcome_of(trial).retrieved[:MOST_PASSAGES])


def _person(actor: Actor) -> int:
    """Return who acts; 0, which nobody is, for what is no person."""
    return actor.user_id or 0


def _whole(level: float | None) -> int | None:
    return None if level is None else int(level)
