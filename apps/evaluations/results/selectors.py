"""Reads of evaluations; each starts from what the actor may see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from django.db.models import Avg, Count, Q, QuerySet, Sum
from django.utils.translation import gettext as _

from apps.conversations.models import AssistantVersion
from apps.datasets.models import RowContent
from apps.evaluations.models import (
    TRIAL_ENDED,
    Arm,
    Baseline,
    Experiment,
    ExperimentState,
    FailureTag,
    KeptScores,
    Rubric,
    RubricVersion,
    Score,
    ScoreAuthor,
    Trial,
    TrialState,
)
from apps.evaluations.results.labels import money_told, time_told
from apps.evaluations.results.series import ArmScores, Series, unpack
from apps.evaluations.results.withheld import trials_readable
from apps.evaluations.scorers.attack import Attacks
from apps.evaluations.scorers.base import Label
from apps.evaluations.scorers.retrieval import LABELLED, label_coverage
from basics.errors import Missing
from basics.texts import number_told
from batches.selectors import BatchRound, round_open
from tenancy.actors import Actor

_MOST_TAGS = 200


def experiment_list(*, actor: Actor) -> QuerySet[Experiment]:
    """Return experiments, newest first, each with ``trial_total``, ``ended_total`` and ``failed_total``."""
    actor.require("evaluation.read")
    rows = Experiment.objects.visible_to(actor).select_related("dataset", "version")
    return cast(
        "QuerySet[Experiment]",
        rows.annotate(
            trial_total=Count("trials"),
            ended_total=Count("trials", filter=Q(trials__state__in=TRIAL_ENDED)),
            failed_total=Count("trials", filter=Q(trials__state=TrialState.FAILED)),
        ).order_by("-pk"),
    )


def experiment_get(*, actor: Actor, pk: int) -> Experiment:
    """Return one experiment with its counts. Raises Missing."""
    found = experiment_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("experiment")
    return found


def experiment_batch(*, actor: Actor, experiment: Experiment) -> BatchRound | None:
    """Return what of an experiment is with a provider's batch API, None while nothing is."""
    if not experiment.is_batched:
        return None
    return round_open(actor=actor, owner=experiment.topic)


def state_told(experiment: Experiment) -> tuple[str, str]:
    """Return an experiment's state in words, and how it went: ``running``, ``paused``, ``stopped``, or of a completed one ``ok``, ``some`` failed, ``all`` failed.

    Args:
        experiment: with its counts, as ``experiment_list`` returns it.
    """
    counts: Any = experiment
    text, failed, total = experiment.get_state_display(), counts.failed_total, counts.trial_total
    if experiment.state != ExperimentState.COMPLETED:
        return text, experiment.state
    if not failed:
        return text, "ok"
    told = _("%(state)s, %(failed)s of %(all)s failed") % {
        "state": text,
        "failed": number_told(failed),
        "all": number_told(total),
    }
    return told, "all" if failed == total else "some"


def arm_list(*, actor: Actor) -> QuerySet[Arm]:
    """Return the arms of every experiment, newest experiment first."""
    actor.require("evaluation.read")
    rows: QuerySet[Arm] = Arm.objects.visible_to(actor)
    return rows.select_related("experiment__dataset", "experiment__version").order_by(
        "-experiment_id", "position"
    )


def arm_get(*, actor: Actor, pk: int) -> Arm:
    """Return one arm with its experiment. Raises Missing."""
    found = arm_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("arm")
    return found


def trial_list(*, actor: Actor, experiment: Experiment) -> QuerySet[Trial]:
    """Return an experiment's trials in the order of rows, arms and repeats, with their scores."""
    actor.require("evaluation.read")
    rows: QuerySet[Trial] = Trial.objects.visible_to(actor).filter(experiment=experiment)
    return (
        trials_readable(rows, actor)
        .select_related("arm", "content")
        .prefetch_related("scores")
        .order_by("position", "arm__position", "repeat")
    )


def trial_get(*, actor: Actor, pk: int) -> Trial:
    """Return one trial with its arm and experiment. Raises Missing."""
    actor.require("evaluation.read")
    rows = trials_readable(Trial.objects.visible_to(actor), actor)
    found: Trial | None = rows.select_related("arm__experiment").filter(pk=pk).first()
    if found is None:
        raise Missing("answer")
    return found


def failure_tag_list(*, actor: Actor) -> list[tuple[str, int]]:
    """Return the names that people gave to failing answers, each with the number of these, the most used first."""
    actor.require("evaluation.read")
    rows = FailureTag.objects.visible_to(actor).values_list("name")
    return list(rows.annotate(n=Count("pk")).order_by("-n", "name")[:_MOST_TAGS])


def rubric_list(*, actor: Actor) -> QuerySet[Rubric]:
    """Return the workspace's rubrics with their versions."""
    actor.require("evaluation.read")
    rows: QuerySet[Rubric] = Rubric.objects.visible_to(actor)
    return rows.prefetch_related("versions").order_by("name")


def rubric_get(*, actor: Actor, pk: int) -> Rubric:
    """Return one rubric with its versions. Raises Missing."""
    found = rubric_list(actor=actor).filter(pk=pk).first()
    if found is None:
        raise Missing("rubric")
    return found


def rubric_versions(*, actor: Actor) -> QuerySet[RubricVersion]:
    """Return the versions of every rubric, the newest of each first."""
    actor.require("evaluation.read")
    rows: QuerySet[RubricVersion] = RubricVersion.objects.visible_to(actor)
    return rows.select_related("rubric").order_by("rubric__name", "rubric_id", "-number")


def rubric_version_graded(*, actor: Actor) -> int | None:
    """Return the id of the rubric's version that people have graded by last; None while nobody has."""
    actor.require("evaluation.read")
    given = Score.objects.visible_to(actor).filter(author_kind=ScoreAuthor.PERSON)
    found: int | None = given.order_by("-pk").values_list("rubric_version_id", flat=True).first()
    return found


def baseline_get(*, actor: Actor, dataset_id: int, name: str = "main") -> Baseline | None:
    """Return what a dataset's gate compares with now; None while nothing was set."""
    actor.require("evaluation.read")
    rows = Baseline.objects.visible_to(actor).filter(dataset_id=dataset_id, name=name)
    found: Baseline | None = rows.select_related("arm__experiment").order_by("-pk").first()
    return found


def baseline_list(*, actor: Actor, dataset_id: int, most: int = 20) -> list[Baseline]:
    """Return a dataset's baselines, newest first; of each name the first is the one that counts."""
    actor.require("evaluation.read")
    rows = Baseline.objects.visible_to(actor).filter(dataset_id=dataset_id)
    return list(rows.select_related("arm__experiment", "created_by").order_by("-pk")[:most])


def arm_scores(*, actor: Actor, arm: Arm) -> ArmScores:
    """Return an arm's scores by rules and judges: as they were kept when its experiment completed, else counted now."""
    actor.require("evaluation.read")
    if arm.experiment.state == ExperimentState.COMPLETED:
        kept = KeptScores.objects.visible_to(actor).filter(arm=arm).values_list("data", flat=True)
        data = kept.first()
        found = None if data is None else unpack(bytes(data))
        if found is not None:
            return found
    return arm_scores_counted(arm)


def arm_scores_counted(arm: Arm) -> ArmScores:
    """Return an arm's scores, counted by the database, in five queries whatever its size."""
    given = Score.objects.filter(tenant_id=arm.tenant_id, trial__arm=arm)
    given = given.exclude(author_kind=ScoreAuthor.PERSON)
    found = ArmScores()
    scored = given.filter(value__isnull=False)
    values: dict[str, dict[int, float]] = {}
    for name, row, value in scored.values_list("name", "trial__row_ref").annotate(v=Avg("value")):
        values.setdefault(name, {})[row] = value
    found.values = {name: Series.of(by_row) for name, by_row in values.items()}
    per_repeat = scored.values_list("name", "trial__repeat").annotate(v=Avg("value"))
    for name, _repeat, value in per_repeat.order_by("name", "trial__repeat"):
        found.repeats.setdefault(name, []).append(value)
    kinds = given.values_list("name", "author", "author_kind", "rubric_version_id")
    missed = Count("pk", filter=Q(value__isnull=True))
    for name, author, kind, version, missing in kinds.annotate(n=missed):
        found.authors.setdefault(name, set()).add(author)
        found.unscored[name] = found.unscored.get(name, 0) + missing
        if kind == ScoreAuthor.JUDGE:
            found.judges.add((name, author, version))
    trials = Trial.objects.filter(tenant_id=arm.tenant_id, arm=arm, state__in=TRIAL_ENDED)
    figures = list(trials.values_list("row_ref").annotate(latency=Avg("latency_ms"), cost=Avg("cost_usd")))
    found.latency_ms = Series.of((row, ms) for row, ms, _ in figures if ms is not None)
    found.cost_usd = Series.of((row, float(usd)) for row, _, usd in figures if usd is not None)
    found.coverage = _label_coverage(arm)
    return found


def arm_questions(*, actor: Actor, arm: Arm, rows: Sequence[int]) -> dict[int, str]:
    """Return the questions of some rows (by ``row_ref``) that an arm was asked."""
    actor.require("evaluation.read")
    trials = Trial.objects.visible_to(actor).filter(arm=arm, row_ref__in=rows, repeat=0)
    trials = trials_readable(trials, actor)
    contents = dict(trials.values_list("row_ref", "content_id"))
    texts = dict(
        RowContent.objects.filter(tenant_id=arm.tenant_id, pk__in=contents.values()).values_list(
            "pk", "data__question"
        )
    )
    return {row: texts.get(content, "") for row, content in contents.items()}


def _label_coverage(arm: Arm) -> float | None:
    """Return the share of labelled passages that were still found when the arm ran; None where no scorer uses labels."""
    if not any(spec.get("kind") in LABELLED for spec in arm.experiment.scorers):
        return None
    outcomes = Trial.objects.filter(tenant_id=arm.tenant_id, arm=arm, repeat=0).exclude(outcome={})
    kept: Iterable[Sequence[dict[str, object]]] = outcomes.values_list("outcome__labels", flat=True)
    return label_coverage(
        [Label(None, 0, 0, "", {1: 1.0} if label["chunks"] else {}) for label in labels or ()]
        for labels in kept.iterator()  # type: ignore[attr-defined]
    )


def models_asked(*, actor: Actor, arms: Iterable[Arm]) -> set[str]:
    """Return the models that answer in some arms; of an assistant without a model of its own in the arm, its version's."""
    actor.require("evaluation.read")
    targets = [arm.target for arm in arms]
    own = {t["version"] for t in targets if t.get("version") is not None and not t.get("model")}
    versions = AssistantVersion.objects.visible_to(actor).filter(pk__in=own) if own else ()
    return {str(t.get("model") or "") for t in targets}.union(v.model for v in versions) - {""}


def experiment_coverage(*, actor: Actor, experiment: Experiment) -> float | None:
    """Return the least share of labelled passages that an arm of a completed experiment found; None without labels."""
    actor.require("evaluation.read")
    if experiment.state != ExperimentState.COMPLETED:
        return None
    arms = Arm.objects.visible_to(actor).filter(experiment=experiment).select_related("experiment")
    found = [arm_scores(actor=actor, arm=arm).coverage for arm in arms]
    return min((one for one in found if one is not None), default=None)


def judge_use(*, actor: Actor, experiment: Experiment) -> tuple[int, int]:
    """Return how many requests an experiment's judges got, and how many of them were answered from the cache."""
    actor.require("evaluation.read")
    trials = Trial.objects.visible_to(actor).filter(experiment=experiment)
    sums = trials.aggregate(asked=Sum("judge_asked"), cached=Sum("judge_cached"))
    return sums["asked"] or 0, sums["cached"] or 0


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """What the page of an experiment shows of an arm; means are None where there is nothing yet.

    Attributes:
        scores: every score of the experiment with this arm's mean.
        failed: answers without a score, of ``total``.
        unscored: how often a score could not be told.
        latency: mean, in milliseconds. cost: mean, in USD.
    """

    arm: Arm
    scores: Sequence[tuple[str, float | None]]
    unscored: int
    failed: int
    total: int
    latency: float | None
    cost: Decimal | None

    @property
    def time_told(self) -> str:
        """Return the mean time in words, "" where it is not known."""
        return "" if self.latency is None else time_told(self.latency)

    @property
    def cost_told(self) -> str:
        """Return the mean cost in words, "" where it is not known."""
        return "" if self.cost is None else money_told(float(self.cost))

    @property
    def has_failed(self) -> bool:
        """Tell whether none of its answers came."""
        return 0 < self.total == self.failed


def arms_summary(*, actor: Actor, experiment: Experiment) -> list[ArmSummary]:
    """Return an experiment's arms with their means, in three queries."""
    actor.require("evaluation.read")
    scores = Score.objects.visible_to(actor).filter(trial__experiment=experiment)
    scores = scores.exclude(author_kind=ScoreAuthor.PERSON)
    means: dict[int, dict[str, float | None]] = {}
    unscored: dict[int, int] = {}
    by_name = scores.values_list("trial__arm_id", "name")
    for arm, name, value, missing in by_name.annotate(
        v=Avg("value"), n=Count("pk", filter=Q(value__isnull=True))
    ):
        means.setdefault(arm, {})[name] = value
        unscored[arm] = unscored.get(arm, 0) + missing
    trials = Trial.objects.visible_to(actor).filter(experiment=experiment).values_list("arm_id")
    figures = {
        arm: (failed, total, latency, cost)
        for arm, failed, total, latency, cost in trials.annotate(
            failed=Count("pk", filter=Q(state=TrialState.FAILED)),
            total=Count("pk"),
            latency=Avg("latency_ms"),
            cost=Avg("cost_usd"),
        )
    }
    names = sorted({name for given in means.values() for name in given})
    return [
        ArmSummary(
            arm,
            [(name, means.get(arm.pk, {}).get(name)) for name in names],
            unscored.get(arm.pk, 0),
            *figures.get(arm.pk, (0, 0, None, None)),
        )
        for arm in experiment.arms.order_by("position")
    ]


def has_suite(experiment: Experiment) -> bool:
    """Tell whether an experiment scores attacks."""
    return any(spec.get("kind") == Attacks.kind for spec in experiment.scorers)
