"""Why rows fail: the failing rows of an arm by their tags, and in groups that are alike by their words.

No model is asked: the platform's own embedder stands for the meaning of question and reason.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apps.collections.embedding import default_setting, embedder_of_setting
from apps.datasets.record import Record, from_values
from apps.evaluations.comparison import PASS, overall_series
from apps.evaluations.models import Arm, Score, ScoreAuthor, Trial
from apps.evaluations.selectors import arm_scores
from basics.errors import Missing
from tenancy.actors import Actor
from tenancy.models import Tenant

MOST_FAILING = 200
"""Rows that are looked at, the worst first."""
_ALIKE = 0.5
"""Cosine of two vectors from which their rows belong together."""
_LEAST_GROUP = 2
_TERMS = 4
_MOST_TEXT = 600
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class FailingRow:
    """A row that fails.

    Attributes:
        value: its overall score, 0 to 1.
        reason: what the lowest of its scores says, or why there is no answer; "" where nothing does.
        tags: of the row, with its type and difficulty.
    """

    row: int
    question: str
    reason: str
    value: float
    tags: Sequence[str]
    content: int


@dataclass(frozen=True, slots=True)
class TagFailures:
    """A tag among the failing rows.

    Attributes:
        failing, rows: how many rows with it fail, of how many.
        lift: its rate of failure divided by that of all rows.
    """

    tag: str
    failing: int
    rows: int
    lift: float

    @property
    def rate(self) -> float:
        """Return the share of its rows that fail."""
        return self.failing / self.rows


@dataclass(frozen=True, slots=True)
class Group:
    """Failing rows that are alike, the most typical first; ``terms`` are words that they have and others have not."""

    number: int
    terms: Sequence[str]
    rows: Sequence[FailingRow]


@dataclass(frozen=True, slots=True)
class Failures:
    """The failures of an arm.

    Attributes:
        scored, failing: rows with a score, and those of them below ``PASS``.
        tags: those that fail most often before what all rows do, first.
        groups: the largest first.
        alone: rows that are like no other.
        left_out: failing rows beyond ``MOST_FAILING``, in no group.
    """

    scored: int
    failing: int
    tags: Sequence[TagFailures]
    groups: Sequence[Group]
    alone: Sequence[FailingRow]
    left_out: int

    def chosen(self, *, tag: str = "", group: int | None = None) -> list[FailingRow]:
        """Return the failing rows with a tag or of a group, all without either. Raises Missing for an unknown group."""
        rows = [row for one in self.groups for row in one.rows] + list(self.alone)
        if group is not None:
            found = next((one for one in self.groups if one.number == group), None)
            if found is None:
                raise Missing("group")
            rows = list(found.rows)
        return [row for row in rows if not tag or tag in row.tags]


def arm_failures(*, tenant: Tenant, actor: Actor, arm: Arm) -> Failures:
    """Return an arm's failing rows by tag and in groups.

    Raises:
        EmbeddingError: the embedder cannot be used now.
    """
    scores = overall_series(arm_scores(actor=actor, arm=arm))
    trials = Trial.objects.visible_to(actor).filter(arm=arm, repeat=0)
    contents = dict(trials.order_by("pk").values_list("row_ref", "content_id"))
    value_of = dict(zip(scores.rows.tolist(), scores.values.tolist(), strict=True))
    tags_of = {
        row: _tags(type_, difficulty, tags)
        for row, type_, difficulty, tags in trials.values_list(
            "row_ref", "content__data__type", "content__data__difficulty", "content__data__tags"
        )
    }
    worst = sorted((value, row) for row, value in value_of.items() if value < PASS)
    chosen = [row for _, row in worst[:MOST_FAILING]]
    reasons = _reasons(actor, arm, chosen)
    questions = dict(trials.filter(row_ref__in=chosen).values_list("row_ref", "content__data__question"))  # fmt: skip
    rows = [
        FailingRow(row, questions.get(row) or "", reasons.get(row, ""), value_of[row], tags_of.get(row, ()), contents[row])
        for row in chosen
    ]  # fmt: skip
    groups, alone = _grouped(tenant, rows)
    failing = {row for _, row in worst}
    return Failures(
        scored=len(value_of),
        failing=len(worst),
        tags=_by_tag({row: tags_of.get(row, ()) for row in value_of}, failing),
        groups=groups,
        alone=alone,
        left_out=len(worst) - len(chosen),
    )


def records_of(*, actor: Actor, arm: Arm, rows: Sequence[FailingRow]) -> list[Record]:
    """Return the content of rows, in their order, as they were asked."""
    trials = Trial.objects.visible_to(actor).filter(arm=arm, repeat=0)
    data = dict(
        trials.filter(row_ref__in=[row.row for row in rows]).values_list("row_ref", "content__data")
    )
    return [from_values(data[row.row]) for row in rows]


def groups_of(vectors: NDArray[np.float32], *, alike: float = _ALIKE) -> list[list[int]]:
    """Return groups of rows: again and again the row with most neighbours among those left, with these neighbours.

    Args:
        vectors: of length 1, one a row.
        alike: least cosine of neighbours.

    Returns:
        Places of the rows, the most typical of each group first, the largest group first; every row once.
    """
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, 1.0)
    near = similar >= alike
    left = np.ones(len(vectors), dtype=bool)
    found = []
    while left.any():
        # Neighbours weighted by how near they are: of rows with as many, the middle one.
        weights = (similar * (near & left)).sum(axis=1) * left
        middle = int(weights.argmax())
        members = np.flatnonzero(near[middle] & left)
        order = np.argsort(-similar[middle, members], kind="stable")
        found.append([int(members[n]) for n in order])
        left[members] = False
    return sorted(found, key=lambda one: (-len(one), one[0]))


def _grouped(tenant: Tenant, rows: Sequence[FailingRow]) -> tuple[list[Group], list[FailingRow]]:
    if not rows:
        return [], []
    texts = [f"{row.question}\n{row.reason}"[:_MOST_TEXT] for row in rows]
    vectors = embedder_of_setting(default_setting(), tenant=tenant).embed_documents(texts)
    found = [[rows[at] for at in places] for places in groups_of(vectors)]
    words = {row.row: set(_WORD.findall(text.lower())) for row, text in zip(rows, texts, strict=True)}  # fmt: skip
    everywhere = Counter(word for own in words.values() for word in own)
    groups = [one for one in found if len(one) >= _LEAST_GROUP]
    return (
        [Group(n, _terms(one, words, everywhere), one) for n, one in enumerate(groups, 1)],
        [one[0] for one in found if len(one) < _LEAST_GROUP],
    )


def _terms(
    rows: Sequence[FailingRow], words: Mapping[int, set[str]], everywhere: Mapping[str, int]
) -> list[str]:
    """Return the words that tell a group: frequent in it, rare elsewhere (tf-idf over rows)."""
    count = Counter(word for row in rows for word in words[row.row])
    weights = {w: n * math.log((1 + len(words)) / everywhere[w]) for w, n in count.items() if n > 1}
    return sorted(weights, key=lambda word: (-weights[word], word))[:_TERMS]


def _by_tag(tags_of: Mapping[int, Sequence[str]], failing: set[int]) -> list[TagFailures]:
    rows = Counter(tag for tags in tags_of.values() for tag in tags)
    fails = Counter(tag for row in failing for tag in tags_of[row])
    share = len(failing) / len(tags_of) if tags_of else 0.0
    found = [
        TagFailures(tag, fails[tag], rows[tag], fails[tag] / rows[tag] / share) for tag in fails
    ]
    return sorted(found, key=lambda one: (-one.lift, -one.failing, one.tag))


def _tags(type_: str | None, difficulty: str | None, tags: Sequence[str] | None) -> list[str]:
    return list(dict.fromkeys(tag for tag in (type_, difficulty, *(tags or ())) if tag))


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
