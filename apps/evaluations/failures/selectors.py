"""Why rows fail: the failing rows of an arm by their tags, and in groups that are alike by their words.

No model is asked: the platform's own embedder stands for the meaning of question and reason. The groups are found by a job
(``grouping``) and kept; here they are read.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from apps.collections.index.embedding import default_setting
from apps.datasets.records.record import Record, from_values
from apps.evaluations.compare.comparison import PASS, overall_series
from apps.evaluations.models import Arm, FailureGroups, FailureTag, Score, ScoreAuthor, Trial, TrialState
from apps.evaluations.results.selectors import arm_scores
from apps.evaluations.results.withheld import rows_hidden
from basics.errors import Missing
from jobs.models import ACTIVE
from tenancy.actors import Actor

PAGE_ROWS = 200
"""Failing rows of a page, the worst first; groups are made within one."""
_LEAST_GROUP = 2
_TERMS = 4
_MOST_TEXT = 600
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class FailingRow:
    """A row that fails.

    Attributes:
        trial: id of its first answer.
        value: its overall score, 0 to 1; 0 without an answer.
        reason: what the lowest of its scores says, or why there is no answer; "" where nothing does.
        tags: of the row, with its type and difficulty.
        own_tags: those that people gave its answers.
    """

    row: int
    trial: int
    question: str
    reason: str
    value: float
    tags: Sequence[str]
    own_tags: Sequence[str]

    @property
    def text(self) -> str:
        """Return what stands for its meaning."""
        return f"{self.question}\n{self.reason}"[:_MOST_TEXT]


@dataclass(frozen=True, slots=True)
class TagFailures:
    """A tag among the failing rows.

    Attributes:
        failing, rows: how many rows with it fail, of how many.
        lift: its rate of failure divided by that of all rows; None of a tag that only people gave, and only to rows that fail.
    """

    tag: str
    failing: int
    rows: int
    lift: float | None

    @property
    def is_own(self) -> bool:
        """Tell whether people gave it, and no row came with it."""
        return self.lift is None


@dataclass(frozen=True, slots=True)
class Group:
    """Failing rows that are alike, the most typical first; ``terms`` are words that they have and others have not."""

    number: int
    terms: Sequence[str]
    rows: Sequence[FailingRow]


GroupsState = Literal["none", "working", "failed", "ready"]


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of an arm.

    Attributes:
        scored: rows with a score, or without an answer. failing: those of them below ``PASS``.
        unanswered: failing rows that have no answer and no score.
        tags: people's first, then those that fail most often before what all rows do.
        rows: those of the page, the worst first, of all ``listed`` ones: the failing rows, or those with the tag.
        page, pages: from 1.
        state: of the groups: whether they were looked for in these rows. problem: why that failed.
        groups: the largest first; none until they are ``ready``.
        alone: rows that are like no other; none until then.
    """

    scored: int
    failing: int
    unanswered: int
    tags: Sequence[TagFailures]
    rows: Sequence[FailingRow]
    listed: int
    page: int
    pages: int
    state: GroupsState = "none"
    problem: str = ""
    groups: Sequence[Group] = ()
    alone: Sequence[FailingRow] = ()


def arm_failures(*, actor: Actor, arm: Arm, page: int = 1, tag: str = "") -> Failures:
    """Return a page of an arm's failing rows, and in groups where a job has found them.

    Args:
        page: from 1; the last one where there are fewer.
        tag: only rows with it, their own or people's; those are in no groups.
    """
    values, unanswered = _values(actor, arm)
    trials = Trial.objects.visible_to(actor).filter(arm=arm, repeat=0)
    given = {
        row: _tags(type_, difficulty, tags)
        for row, type_, difficulty, tags in trials.values_list(
            "row_ref", "content__data__type", "content__data__difficulty", "content__data__tags"
        )
    }
    own = _own_tags(actor, arm)
    worst = [row for _, row in sorted((v, row) for row, v in values.items() if v < PASS)]
    listed = [row for row in worst if not tag or tag in given[row] or tag in own.get(row, ())]
    pages = max(1, math.ceil(len(listed) / PAGE_ROWS))
    page = min(max(page, 1), pages)
    chosen = listed[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    reasons = _reasons(actor, arm, chosen)
    asked = {
        row: (pk, question or "")
        for row, pk, question in trials.filter(row_ref__in=chosen).values_list(
            "row_ref", "pk", "content__data__question"
        )
    }
    rows = [
        FailingRow(row, *asked[row], reasons.get(row, ""), values[row], given[row], own.get(row, ()))
        for row in chosen
    ]
    state, problem, kept = ("none", "", []) if tag else _kept(actor, arm, page, rows)
    groups = [one for one in kept if len(one) >= _LEAST_GROUP]
    words = {row.row: set(_WORD.findall(row.text.lower())) for row in rows}
    everywhere = Counter(word for each in words.values() for word in each)
    return Failures(
        scored=len(values),
        failing=len(worst),
        unanswered=unanswered,
        tags=_by_tag({row: given.get(row, ()) for row in values}, own, set(worst)),
        rows=rows,
        listed=len(listed),
        page=page,
        pages=pages,
        state=state,
        problem=problem,
        groups=[Group(n, _terms(one, words, everywhere), one) for n, one in enumerate(groups, 1)],
        alone=[one[0] for one in kept if len(one) < _LEAST_GROUP],
    )


def failing_rows(
    *, actor: Actor, arm: Arm, tag: str = "", group: int | None = None, page: int = 1
) -> list[int]:
    """Return which rows fail, the worst first: those with a tag, those of a group of a page, or all.

    Raises:
        Missing: there is none, or no such group.
    """
    if group is not None:
        groups = arm_failures(actor=actor, arm=arm, page=page).groups
        found = [row.row for one in groups if one.number == group for row in one.rows]
    else:
        values, _ = _values(actor, arm)
        found = [row for _, row in sorted((v, row) for row, v in values.items() if v < PASS)]
    if tag:
        trials = Trial.objects.visible_to(actor).filter(arm=arm, repeat=0, row_ref__in=found)
        tagged = {
            row
            for row, type_, difficulty, tags in trials.values_list(
                "row_ref", "content__data__type", "content__data__difficulty", "content__data__tags"
            )
            if tag in _tags(type_, difficulty, tags)
        }
        tagged |= {row for row, names in _own_tags(actor, arm).items() if tag in names}
        found = [row for row in found if row in tagged]
    if not found:
        raise Missing("failing row")
    return found


def row_fails(*, actor: Actor, trial: Trial) -> bool:
    """Return whether the row of an answer fails in its arm."""
    values, _ = _values(actor, trial.arm)
    return values.get(trial.row_ref, PASS) < PASS


def records_of(*, actor: Actor, arm: Arm, rows: Sequence[int]) -> list[Record]:
    """Return the content of rows, in their order, as they were asked."""
    trials = Trial.objects.visible_to(actor).filter(arm=arm, repeat=0)
    data = dict(trials.filter(row_ref__in=rows).values_list("row_ref", "content__data"))
    return [from_values(data[row]) for row in rows]


def groups_key(rows: Sequence[FailingRow]) -> str:
    """Return what groups of these rows depend on, as one hash."""
    parts = [default_setting(), *([row.row, row.text] for row in rows)]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def _values(actor: Actor, arm: Arm) -> tuple[dict[int, float], int]:
    """Return each row's overall score, 0 for one that has no answer to score, and how many these are."""
    scores = overall_series(arm_scores(actor=actor, arm=arm))
    hidden = rows_hidden(actor=actor, arm=arm)
    scored = zip(scores.rows.tolist(), scores.values.tolist(), strict=True)
    found = {row: value for row, value in scored if row not in hidden}
    failed = Trial.objects.visible_to(actor).filter(arm=arm, repeat=0, state=TrialState.FAILED)
    left = set(failed.values_list("row_ref", flat=True)) - hidden
    unanswered = sorted(left - set(found))
    return {**found, **dict.fromkeys(unanswered, 0.0)}, len(unanswered)


def _kept(
    actor: Actor, arm: Arm, page: int, rows: Sequence[FailingRow]
) -> tuple[GroupsState, str, list[list[FailingRow]]]:
    """Return what is kept of groups of exactly these rows."""
    found = FailureGroups.objects.visible_to(actor).filter(arm=arm, page=page)
    kept = found.select_related("job").first()
    if kept is None:
        return "none", "", []
    if kept.job is not None and kept.job.status in ACTIVE:
        return "working", "", []
    if kept.problem:
        return "failed", kept.problem, []
    if kept.key != groups_key(rows):
        return "none", "", []
    by_row = {row.row: row for row in rows}
    return "ready", "", [[by_row[row] for row in one] for one in kept.groups]


def _terms(
    rows: Sequence[FailingRow], words: Mapping[int, set[str]], everywhere: Mapping[str, int]
) -> list[str]:
    """Return the words that tell a group: frequent in it, rare elsewhere (tf-idf over rows)."""
    count = Counter(word for row in rows for word in words[row.row])
    weights = {w: n * math.log((1 + len(words)) / everywhere[w]) for w, n in count.items() if n > 1}
    return sorted(weights, key=lambda word: (-weights[word], word))[:_TERMS]


def _by_tag(
    given: Mapping[int, Sequence[str]], own: Mapping[int, Sequence[str]], failing: set[int]
) -> list[TagFailures]:
    share = len(failing) / len(given) if given else 0.0
    by_rule = {tag for tags in given.values() for tag in tags}
    tags_of = {row: {*tags, *own.get(row, ())} for row, tags in given.items()}
    rows = Counter(tag for tags in tags_of.values() for tag in tags)
    fails = Counter(tag for row in failing for tag in tags_of[row])
    found = [
        TagFailures(tag, fails[tag], rows[tag], fails[tag] / rows[tag] / share if tag in by_rule else None)
        for tag in fails
    ]
    return sorted(found, key=lambda one: (-(one.lift or math.inf), -one.failing, one.tag))


def _tags(type_: str | None, difficulty: str | None, tags: Sequence[str] | None) -> list[str]:
    return list(dict.fromkeys(tag for tag in (type_, difficulty, *(tags or ())) if tag))


def _own_tags(actor: Actor, arm: Arm) -> dict[int, list[str]]:
    """Return per row the tags that people gave its answers, in order and each once."""
    rows = FailureTag.objects.visible_to(actor).filter(trial__arm=arm).order_by("name")
    found: dict[int, list[str]] = {}
    for row, name in rows.values_list("trial__row_ref", "name").distinct():
        found.setdefault(row, []).append(name)
    return found


def _reasons(actor: Actor, arm: Arm, rows: Sequence[int]) -> dict[int, str]:
    """Return per row the words of its lowest score that says any, or the error in place of an answer."""
    of_arm = {"trial__arm": arm, "trial__repeat": 0, "trial__row_ref__in": rows}
    told = Score.objects.visible_to(actor).filter(**of_arm, value__isnull=False)
    told = told.exclude(author_kind=ScoreAuthor.PERSON).exclude(reason="")
    found: dict[int, str] = {}
    for row, reason in told.order_by("value", "name").values_list("trial__row_ref", "reason"):
        found.setdefault(row, reason)
    errors = Trial.objects.visible_to(actor).filter(arm=arm, repeat=0, row_ref__in=rows)
    for row, error in errors.exclude(error="").values_list("row_ref", "error"):
        found.setdefault(row, error)
    return found
