"""Writes of annotation: queues, who grades what next, and grades. A grade is a score and never changes; a later one counts."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone

from apps.datasets.models import DatasetVersion
from apps.datasets.records.rubric import LEVELS, value_of
from apps.evaluations.annotation.selectors import traffic
from apps.evaluations.experiments.services import ArmSpec, experiment_create
from apps.evaluations.judges.claim_rubrics import kind_of
from apps.evaluations.judges.disputes import disputes
from apps.evaluations.judges.scoring import LEXICAL, rubric_value
from apps.evaluations.models import (
    AnnotationItem,
    AnnotationQueue,
    Assignment,
    AssignmentState,
    Experiment,
    RubricVersion,
    Score,
    ScoreAuthor,
    Trial,
    TrialState,
)
from apps.evaluations.results.withheld import trials_readable
from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from basics.texts import number_told
from tenancy.actors import Actor
from tenancy.models import Membership, Tenant
from tenancy.services import audit_record
from toolloop.storable import text_storable

MAX_ITEMS, MAX_REVIEWS, MAX_NOTE = 2_000, 9, 2_000
HELD = datetime.timedelta(hours=1)
"""For so long an answer that somebody has opened waits for them; then others may grade it."""


def queue_create(
    *,
    tenant: Tenant,
    actor: Actor,
    name: str,
    rubric_version: RubricVersion,
    experiment: Experiment | None = None,
    version: DatasetVersion | None = None,
    reviews: int = 2,
    most: int = 100,
    disputed_first: bool = False,
    assignees: Sequence[int] = (),
    instructions: str = "",
    judge: str = LEXICAL,
) -> AnnotationQueue:
    """Create a queue of answers to grade.

    Args:
        experiment: its answers are graded (first repeats).
        version: or the answers that stand in these rows; an experiment that reads them is started, so that a judge
            grades the same answers.
        reviews: people per answer.
        most: answers; they are drawn at random, so that the agreement found holds for all.
        disputed_first: take those first about which judges disagree most, weighted by how often people ask about the same
            documents; the agreement is then that of hard cases.
        assignees: ids of the members who grade; () for all who may.
        judge: of a dataset version's answers: a model, or ``lexical``.

    Raises:
        Invalid: what is wrong, with its field. Missing: something it names is not there for the actor.
    """
    actor.require("evaluation.write")
    name = " ".join(name.split())
    _require(bool(name) and len(name) <= 120, "name", _("Give the queue a name of at most 120 characters."))
    _require(
        1 <= reviews <= MAX_REVIEWS,
        "reviews",
        _("Have 1 to %(max_reviews)s people grade each answer.") % {"max_reviews": MAX_REVIEWS},
    )
    _require(
        1 <= most <= MAX_ITEMS,
        "most",
        _("Queue 1 to %(max_items)s answers.") % {"max_items": number_told(MAX_ITEMS)},
    )
    _require(
        (experiment is None) != (version is None),
        "experiment",
        _("Choose an experiment or a dataset version."),
    )
    if not RubricVersion.objects.visible_to(actor).filter(pk=rubric_version.pk).exists():
        raise Missing("rubric")
    people = _assignees(tenant, assignees, reviews)
    with transaction.atomic():
        if version is not None:
            experiment = _read_rows(tenant, actor, name, version, rubric_version, judge)
        if experiment is None or not Experiment.objects.visible_to(actor).filter(pk=experiment.pk).exists():
            raise Missing("experiment")
        trials = _drawn(actor, experiment, most, disputed_first=disputed_first)
        _require(bool(trials), "experiment", _("This experiment has no answers yet. Wait until it has some."))
        queue: AnnotationQueue = AnnotationQueue.objects.create(
            tenant=tenant,
            name=name,
            experiment=experiment,
            rubric_version=rubric_version,
            reviews=reviews,
            assignees=people,
            instructions=text_storable(instructions.strip())[:MAX_NOTE],
            created_by_id=actor.user_id,
        )
        AnnotationItem.objects.bulk_create(
            AnnotationItem(tenant=tenant, queue=queue, trial_id=trial, position=place)
            for place, trial in enumerate(trials)
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="annotation_queue.create",
            object=queue,
            data={"experiment": experiment.pk, "items": len(trials), "reviews": reviews},
        )
    return queue


def queue_close(*, tenant: Tenant, actor: Actor, queue: AnnotationQueue) -> AnnotationQueue:
    """Take no further grades; those given stay. Raises Conflict when it is closed."""
    return _closed(tenant, actor, queue, is_closed=True)


def queue_reopen(*, tenant: Tenant, actor: Actor, queue: AnnotationQueue) -> AnnotationQueue:
    """Take grades again. Raises Conflict when it is open."""
    return _closed(tenant, actor, queue, is_closed=False)


def assignment_take(*, tenant: Tenant, actor: Actor, queue: AnnotationQueue) -> Assignment | None:
    """Return what the actor grades next: what they have open, else the first answer that still needs a grade.

    Of an answer that others have open as many grades are reckoned with, for an hour. Answers whose right levels are known
    are given to everybody.

    Returns:
        None when nothing is left for this person.

    Raises:
        Conflict: ``queue_closed``. Denied: the queue is for others.
    """
    with transaction.atomic():
        row, user = _entered(actor, queue)
        mine = Assignment.objects.filter(item__queue=row, user_id=user)
        opened = trials_readable(mine.filter(state=AssignmentState.OPEN), actor, at="item__trial__")
        known: Assignment | None = opened.order_by("pk").first()
        if known is not None:
            return known
        counted = Q(assignments__state=AssignmentState.DONE) | Q(
            assignments__state=AssignmentState.OPEN, assignments__created_at__gt=timezone.now() - HELD
        )
        items = AnnotationItem.objects.filter(queue=row, trial__state=TrialState.DONE)
        open_items = items.exclude(pk__in=mine.values("item")).annotate(
            taken=Count("assignments", filter=counted)
        )
        item = (
            trials_readable(open_items, actor, at="trial__")
            .filter(Q(taken__lt=row.reviews) | ~Q(gold={}))
            .exclude(trial__answer="")
            .order_by("position")
            .first()
        )
        if item is None:
            return None
        taken: Assignment = Assignment.objects.create(tenant=tenant, item=item, user_id=user)
        return taken


def assignment_grade(
    *, tenant: Tenant, actor: Actor, assignment: Assignment, levels: Mapping[str, int], note: str = ""
) -> Assignment:
    """Give a level, 1 to 5, for every criterion of the queue's rubric.

    Raises:
        Invalid: ``grade_invalid``, a level is missing or none. Conflict: it is graded already, or the queue is closed.
    """
    with transaction.atomic():
        row, user = _open(actor, assignment)
        queue = row.item.queue
        version = RubricVersion.objects.select_related("rubric").get(pk=queue.rubric_version_id)
        rubric = rubric_value(version)
        names = [criterion.name for criterion in rubric.criteria]
        wrong = {
            name: [_("Choose a level from 1 to %(levels)s.") % {"levels": LEVELS}]
            for name in names
            if not _is_level(levels.get(name))
        }
        wrong |= {
            name: [_("The rubric doesn't have this criterion.")] for name in levels if name not in names
        }
        if wrong:
            told = ", ".join(sorted(wrong))
            raise Invalid(
                "grade_invalid",
                _("Grade every criterion from 1 to %(levels)s. Check: %(told)s.")
                % {"levels": LEVELS, "told": told},
                data={"fields": wrong},
            )
        row.state, row.finished_at = AssignmentState.DONE, timezone.now()
        row.note = text_storable(note.strip())[:MAX_NOTE]
        row.save(update_fields=["state", "finished_at", "note"])
        author = _author(row.item.trial_id, user)
        Score.objects.bulk_create(
            Score(
                tenant=tenant,
                trial_id=row.item.trial_id,
                name=name,
                value=value_of(levels[name]),
                level=levels[name],
                reason=row.note,
                author_kind=ScoreAuthor.PERSON,
                author=author,
                user_id=user,
                rubric_version=version,
                assignment=row,
            )
            for name in names
        )
        audit_record(tenant=tenant, actor=actor, action="annotation.grade", object=row)
    return row


def assignment_skip(*, tenant: Tenant, actor: Actor, assignment: Assignment, note: str = "") -> Assignment:
    """Leave an answer to others. Raises Conflict when it is decided about already."""
    with transaction.atomic():
        row = _open(actor, assignment)[0]
        row.state, row.finished_at = AssignmentState.SKIPPED, timezone.now()
        row.note = text_storable(note.strip())[:MAX_NOTE]
        row.save(update_fields=["state", "finished_at", "note"])
        audit_record(tenant=tenant, actor=actor, action="annotation.skip", object=row)
    return row


def assignment_undo(*, tenant: Tenant, actor: Actor, queue: AnnotationQueue) -> Assignment:
    """Open what the actor graded or skipped last; its grades stay in the history and count no more.

    Raises:
        Conflict: ``nothing_to_undo``, or the queue is closed.
    """
    with transaction.atomic():
        row, user = _entered(actor, queue)
        mine = Assignment.objects.filter(item__queue=row, user_id=user)
        last: Assignment | None = (
            mine.exclude(state=AssignmentState.OPEN).order_by("-finished_at", "-pk").first()
        )
        if last is None:
            raise Conflict("nothing_to_undo", _("You haven't graded anything here yet."))
        mine.filter(state=AssignmentState.OPEN).delete()
        last.state, last.finished_at, last.created_at = AssignmentState.OPEN, None, timezone.now()
        last.save(update_fields=["state", "finished_at", "created_at"])
        audit_record(tenant=tenant, actor=actor, action="annotation.undo", object=last)
    return last


def gold_set(*, tenant: Tenant, actor: Actor, assignment: Assignment) -> AnnotationItem:
    """Make one's own grades of an answer the right ones: the answer is given to all, to check who grades.

    Raises:
        Missing: not the actor's own. Conflict: ``not_graded``.
    """
    actor.require("evaluation.write")
    with transaction.atomic():
        row: Assignment | None = (
            Assignment.objects.visible_to(actor)
            .select_related("item")
            .filter(pk=assignment.pk, user_id=actor.user_id or 0)
            .first()
        )
        if row is None:
            raise Missing("assignment")
        if row.state != AssignmentState.DONE:
            raise Conflict("not_graded", _("Grade the answer first."))
        given = Score.objects.filter(assignment=row).order_by("pk").values_list("name", "level")
        item: AnnotationItem = row.item
        item.gold = {name: int(level) for name, level in given if level is not None}
        item.save(update_fields=["gold"])
        audit_record(tenant=tenant, actor=actor, action="annotation.gold", object=item)
    return item


def _read_rows(
    tenant: Tenant, actor: Actor, name: str, version: DatasetVersion, rubric: RubricVersion, judge: str
) -> Experiment:
    slug = rubric.rubric.slug
    kind = kind_of(slug)
    options: dict[str, Any] = {"number": rubric.number, "models": [judge]}
    if kind is None:
        options["rubric"] = slug
    return experiment_create(
        tenant=tenant,
        actor=actor,
        name=f"{name}: existing answers"[:120],
        version=version,
        arms=[ArmSpec({"kind": "reference"})],
        scorers=[{"kind": kind or "rubric", "options": options}],
    )


def _drawn(actor: Actor, experiment: Experiment, most: int, *, disputed_first: bool) -> list[int]:
    """Return the trials of a queue in their order; answers still to come are among them."""
    trials = Trial.objects.filter(experiment=experiment, repeat=0).exclude(
        state__in=(TrialState.FAILED, TrialState.STOPPED)
    )
    found = list(trials.order_by("pk").values_list("pk", flat=True))
    random.Random(experiment.pk).shuffle(found)  # noqa: S311 - fair, no secret
    if disputed_first:
        gaps = disputes(actor=actor, experiment=experiment)
        asked = traffic(actor=actor, trials=gaps)
        found.sort(key=lambda pk: -gaps.get(pk, 0.0) * (1 + asked.get(pk, 0)))
    return found[:most]


def _assignees(tenant: Tenant, assignees: Sequence[int], reviews: int) -> list[int]:
    people = sorted(set(assignees))
    known = Membership.objects.filter(tenant=tenant, user_id__in=people).count()
    if known != len(people):
        raise Missing("member")
    _require(
        not people or len(people) >= reviews,
        "assignees",
        _("%(reviews)s grades per answer need %(reviews)s people. Choose more people or fewer grades.")
        % {"reviews": reviews},
    )
    return people


def _entered(actor: Actor, queue: AnnotationQueue) -> tuple[AnnotationQueue, int]:
    """Return the queue with its lock, and who enters it."""
    actor.require("evaluation.write")
    row: AnnotationQueue | None = (
        AnnotationQueue.objects.visible_to(actor).select_for_update(of=("self",)).filter(pk=queue.pk).first()
    )
    if row is None:
        raise Missing("queue")
    if row.closed_at is not None:
        raise Conflict("queue_closed", _("This queue is closed. Reopen it to continue."))
    if actor.user_id is None or (row.assignees and actor.user_id not in row.assignees):
        raise Conflict("queue_not_yours", _("You aren't a grader in this queue. Ask its creator to add you."))
    return row, actor.user_id


def _open(actor: Actor, assignment: Assignment) -> tuple[Assignment, int]:
    actor.require("evaluation.write")
    rows = Assignment.objects.visible_to(actor).select_related("item__queue")
    row: Assignment | None = rows.filter(pk=assignment.pk, user_id=actor.user_id or 0).first()
    if row is None:
        raise Missing("assignment")
    user = _entered(actor, row.item.queue)[1]
    row.refresh_from_db(fields=["state"])
    if row.state != AssignmentState.OPEN:
        raise Conflict(
            "already_graded",
            _("You have already graded or skipped this answer. Undo that to grade it again."),
        )
    return row, user


def _closed(tenant: Tenant, actor: Actor, queue: AnnotationQueue, *, is_closed: bool) -> AnnotationQueue:
    actor.require("evaluation.write")
    with transaction.atomic():
        rows = AnnotationQueue.objects.visible_to(actor).select_for_update(of=("self",))
        row: AnnotationQueue | None = rows.filter(pk=queue.pk).first()
        if row is None:
            raise Missing("queue")
        if (row.closed_at is not None) == is_closed:
            told = _("This queue is already closed.") if is_closed else _("This queue is already open.")
            raise Conflict("queue_state", told)
        row.closed_at = timezone.now() if is_closed else None
        row.save(update_fields=["closed_at"])
        done = "annotation_queue.close" if is_closed else "annotation_queue.reopen"
        audit_record(tenant=tenant, actor=actor, action=done, object=row)
    return row


def _author(trial: int, user: int) -> str:
    """Return the author of a person's grades; from the second time on with its number, for scores never change."""
    given = Score.objects.filter(trial_id=trial, author_kind=ScoreAuthor.PERSON, user_id=user)
    times = given.values("author").distinct().count()
    return f"person:{user}" if not times else f"person:{user}#{times + 1}"


def _is_level(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LEVELS


def _require(holds: bool, field: str, message: str) -> None:
    if not holds:
        raise Invalid("queue_invalid", message, data={"fields": {field: [message]}})
