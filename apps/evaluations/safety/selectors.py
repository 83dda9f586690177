"""What a safety suite has shown: how often attacks succeeded, by what carried them and by the tools that were there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from apps.evaluations.attacks.values import (
    CARRIER_LABELS,
    CATEGORY_LABELS,
    DISGUISE_LABELS,
    GENERATED,
    META,
    PLACE_LABELS,
)
from apps.evaluations.compare.comparison import PASS
from apps.evaluations.models import Arm, Experiment, Score, ScoreAuthor, Trial
from apps.evaluations.results.selectors import has_suite
from apps.evaluations.results.withheld import trials_readable
from apps.evaluations.scorers.attack import CONTROL, RESISTED
from apps.evaluations.statistics.proportions import wilson
from apps.evaluations.statistics.values import Estimate
from basics.errors import Missing
from runs.providers import is_extractive
from tenancy.actors import Actor

MOST_SHOWN = 100
# Marked here and in ``attacks.values``, translated where a report is made.
_GROUPS: Sequence[tuple[str, str, Mapping[str, str]]] = (
    ("carrier", gettext_noop("What carries the attack"), CARRIER_LABELS),
    ("category", gettext_noop("What the attacker wants"), CATEGORY_LABELS),
    ("disguise", gettext_noop("How it is disguised"), DISGUISE_LABELS),
    ("place", gettext_noop("Where it is"), PLACE_LABELS),
)
_PATH = f"trial__content__data__meta__{META}__"


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of some answers did what they should not.

    Attributes:
        share: with Wilson's 95 % interval; None without answers.
    """

    hits: int
    count: int

    @property
    def share(self) -> Estimate | None:
        """Return the share of hits."""
        return wilson(self.hits, self.count) if self.count else None


@dataclass(frozen=True, slots=True)
class AttackRates:
    """Attack success of one kind of attack, for each arm in their order."""

    key: str
    label: str
    rates: Sequence[Rate]


@dataclass(frozen=True, slots=True)
class Group:
    """A table: ``key`` is the fact of an attack that it goes by."""

    key: str
    title: str
    lines: Sequence[AttackRates]


@dataclass(frozen=True, slots=True)
class ArmSafety:
    """One arm over the whole suite.

    Attributes:
        tools: its tool set, "" for the assistant's own or none at all.
        success: attacks that succeeded. refusals: benign questions that it did not answer.
        refused_calls: attacks whose tool it asked for, and the call was refused: resisted by the policy alone.
        unscored: answers that could not be decided; they count nowhere.
        is_extractive: no language model answered; it quotes, and cannot follow an instruction.
    """

    arm: Arm
    tools: str
    success: Rate
    refusals: Rate
    refused_calls: int
    unscored: int
    is_extractive: bool


@dataclass(frozen=True, slots=True)
class Success:
    """An attack that succeeded, with where to look."""

    trial: int
    run: int | None
    row: int
    arm: Arm
    carrier: str
    category: str
    question: str
    reason: str
    evidence: str


@dataclass(frozen=True, slots=True)
class SafetyReport:
    """The safety of an experiment's arms.

    Attributes:
        succeeded: of all arms, in the order of the rows, at most ``MOST_SHOWN`` of ``succeeded_count``.
    """

    arms: Sequence[ArmSafety]
    groups: Sequence[Group]
    succeeded: Sequence[Success]
    succeeded_count: int


def safety_report(*, actor: Actor, experiment: Experiment) -> SafetyReport:
    """Return what an experiment's scores of attacks say, as far as it is, in five queries.

    Raises:
        Missing: it scores no attacks.
    """
    actor.require("evaluation.read")
    if not has_suite(experiment):
        raise Missing("safety suite")
    arms = list(experiment.arms.order_by("position"))
    given = Score.objects.visible_to(actor).filter(trial__experiment=experiment, name__in=(RESISTED, CONTROL))
    given = given.exclude(author_kind=ScoreAuthor.PERSON)
    facts = [f"{_PATH}{key}" for key, *_texts in _GROUPS]
    counted: dict[tuple[int, str, str, str], list[int]] = {}
    totals: dict[tuple[int, str], list[int]] = {}
    unscored: Counter[int] = Counter()
    kinds = given.values_list("trial__arm_id", "name", *facts)
    kinds = kinds.annotate(
        n=Count("value"), bad=Count("pk", filter=Q(value__lt=PASS)), out=Count("pk", filter=Q(value=None))
    )
    for arm, name, *rest in kinds.order_by():
        *values, n, bad, out = rest
        unscored[arm] += out
        _add(totals, (arm, name), bad, n)
        for (key, *_texts), value in zip(_GROUPS, values, strict=True):
            _add(counted, (arm, name, key, str(value or GENERATED[key])), bad, n)
    refused = Counter(
        given.filter(name=RESISTED, value__gte=PASS)
        .exclude(details__refused=[])
        .values_list("trial__arm_id", flat=True)
    )
    models = _models(actor, experiment)
    successes = given.filter(name=RESISTED, value__lt=PASS)
    successes = trials_readable(successes, actor, at="trial__")
    return SafetyReport(
        arms=[
            ArmSafety(
                arm,
                str(arm.target.get("tools") or ""),
                Rate(*totals.get((arm.pk, RESISTED), (0, 0))),
                Rate(*totals.get((arm.pk, CONTROL), (0, 0))),
                refused[arm.pk],
                unscored[arm.pk],
                is_extractive(models.get(arm.pk) or str(arm.target.get("model") or "")),
            )
            for arm in arms
        ],
        groups=[Group(key, _(title), _lines(counted, arms, key, labels)) for key, title, labels in _GROUPS],
        succeeded=_successes(successes, {arm.pk: arm for arm in arms}),
        succeeded_count=sum(hits for (_arm, name), (hits, _count) in totals.items() if name == RESISTED),
    )


def _add(counts: dict[Any, list[int]], key: Any, hits: int, count: int) -> None:
    kept = counts.setdefault(key, [0, 0])
    kept[0] += hits
    kept[1] += count


def _lines(
    counted: Mapping[tuple[int, str, str, str], Sequence[int]],
    arms: Sequence[Arm],
    group: str,
    labels: Mapping[str, str],
) -> list[AttackRates]:
    found = {value for _arm, name, key, value in counted if name == RESISTED and key == group}
    order = [*labels, *sorted(found - set(labels))]
    lines = [
        AttackRates(
            value,
            _(labels[value]) if value in labels else value.replace("_", " ").capitalize(),
            [Rate(*counted.get((arm.pk, RESISTED, group, value), (0, 0))) for arm in arms],
        )
        for value in order
        if value in found
    ]
    return [line for line in lines if any(rate.count for rate in line.rates)]


def _models(actor: Actor, experiment: Experiment) -> dict[int, str]:
    """Return which model answered for each arm, where a run tells it."""
    trials = Trial.objects.visible_to(actor).filter(experiment=experiment, run__isnull=False)
    return dict(trials.order_by("arm_id", "pk").distinct("arm_id").values_list("arm_id", "run__model"))


def _told(labels: Mapping[str, str], value: str) -> str:
    return _(labels[value]) if value in labels else str(value)


def _successes(rows: Any, arms: Mapping[int, Arm]) -> list[Success]:
    values = rows.order_by("trial__position", "trial__arm__position", "trial__repeat").values_list(
        "trial_id",
        "trial__run_id",
        "trial__row_ref",
        "trial__arm_id",
        f"{_PATH}carrier",
        f"{_PATH}category",
        "trial__content__data__question",
        "reason",
        "evidence",
    )
    return [
        Success(
            trial,
            run,
            row,
            arms[arm],
            _told(CARRIER_LABELS, carrier or GENERATED["carrier"]),
            _told(CATEGORY_LABELS, category or GENERATED["category"]),
            str(question),
            reason,
            evidence,
        )
        for trial, run, row, arm, carrier, category, question, reason, evidence in values[:MOST_SHOWN]
    ]
