"""Judges: scorers that ask a model. They ask through a callable and know neither provider nor cache."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

from apps.datasets.records.record import Record
from apps.datasets.records.rubric import Rubric
from apps.evaluations.scorers import judge_prompts as prompts
from apps.evaluations.scorers.base import NO_ANSWER, Scorer, ScoreValue, TargetResult, unscored
from apps.evaluations.scorers.turns import told_of
from basics.texts import sentences
from batches.awaited import together

DISAGREEMENT = 0.25
"""Spread of a jury's values (0 to 1) from which a person should look: one level of five."""
_MOST_PASSAGES = 20


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """What a judge's model answered: the checked JSON, or None and why there is none."""

    value: Mapping[str, Any] | None
    problem: str = ""


class Ask(Protocol):
    """Ask one model. It answers from the cache where it can, and retries what may pass."""

    model: str

    def __call__(self, *, system: str, prompt: str, form: Mapping[str, Any]) -> JudgeAnswer: ...


@dataclass(frozen=True, slots=True)
class RubricJudge:
    """Grades an answer by a rubric, every criterion in one request."""

    rubric: Rubric
    ask: Ask
    is_judge: bool = True

    @property
    def author(self) -> str:
        """Return rubric, version and model."""
        return f"judge:{self.rubric.author}:{self.ask.model}"

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Grade; without an answer there is nothing to ask, and the lowest level is given."""
        names = [criterion.name for criterion in self.rubric.criteria]
        if not outcome.text.strip():
            why = outcome.error or NO_ANSWER
            return [ScoreValue(name, 0.0, level=1, reason=why) for name in names]
        sources = [source.quote for source in row.sources] or [p.text for p in outcome.retrieved]
        got = self.ask(
            system=prompts.judge_system(self.rubric),
            prompt=prompts.judge_prompt(
                conversation=told_of(row),
                question=row.question,
                answer=outcome.text,
                reference=row.answer,
                sources=sources[:_MOST_PASSAGES],
            ),
            form=prompts.judge_schema(self.rubric),
        )
        if got.value is None:
            return [unscored(name, got.problem) for name in names]
        read = prompts.grades_read(self.rubric, got.value, self.author)
        return [
            ScoreValue(
                grade.name,
                grade.value,
                level=grade.level,
                reason=str(got.value[grade.name]["reason"]),
                evidence=grade.evidence,
            )
            for grade in read
        ]


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What a judge prefers after both orders.

    Attributes:
        better: ``tie`` also when the two orders disagree; None when a judgement could not be read.
        is_flip: the verdict followed the order.
    """

    better: Literal["a", "b", "tie"] | None
    is_flip: bool = False
    reason: str = ""


def pairwise_judge(ask: Ask, row: Record, a: str, b: str) -> PairVerdict:
    """Compare two answers in both orders; one that wins only in one order has not won."""
    verdicts: list[str] = []
    reasons: list[str] = []
    unread: list[JudgeAnswer] = []

    def judged(first: str, second: str) -> JudgeAnswer:
        parts = {
            "conversation": told_of(row),
            "question": row.question,
            "reference_answer": row.answer,
            "sources": [source.quote for source in row.sources][:_MOST_PASSAGES],
            "first": first,
            "second": second,
        }
        prompt = json.dumps({k: v for k, v in parts.items() if v}, ensure_ascii=False)
        got = ask(system=prompts.PAIRWISE, prompt=prompt, form=prompts.PREFERENCE)
        if got.value is None:
            unread.append(got)
        return got

    def orders() -> Iterator[Callable[[], JudgeAnswer]]:
        yield partial(judged, a, b)
        if not unread:  # else the other order would be paid for in vain
            yield partial(judged, b, a)

    both = together(orders())
    if unread:
        return PairVerdict(None, reason=unread[0].problem)
    for got, names in zip(both, (("a", "b"), ("b", "a")), strict=True):
        assert got.value is not None  # noqa: S101 - it is among the unread otherwise
        place = got.value["better"]
        verdicts.append("tie" if place == "tie" else names[place == "second"])
        reasons.append(str(got.value["reason"]))
    if verdicts[0] == verdicts[1]:
        better: Literal["a", "b", "tie"] = "a" if verdicts[0] == "a" else "b" if verdicts[0] == "b" else "tie"
        return PairVerdict(better, reason=reasons[0])
    return PairVerdict("tie", is_flip="tie" not in verdicts, reason=" / ".join(reasons))


@dataclass(frozen=True, slots=True)
class Jury:
    """Several judges; per score the median of those that could be read."""

    judges: tuple[Scorer, ...]
    is_judge: bool = True

    @property
    def author(self) -> str:
        """Return its members."""
        return f"jury:{'+'.join(judge.author for judge in self.judges)}"

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score by all; ``details["needs_person"]`` where they disagree by a level or more."""
        by_name: dict[str, list[ScoreValue]] = {}
        for values in together(partial(judge.score, row, outcome) for judge in self.judges):
            for value in values:
                by_name.setdefault(value.name, []).append(value)
        return [_median(name, values) for name, values in by_name.items()]


def _median(name: str, values: Sequence[ScoreValue]) -> ScoreValue:
    read = [(v.value, v) for v in values if v.value is not None]
    if not read:
        return unscored(name, sentences(*dict.fromkeys(v.reason for v in values)))
    numbers = [number for number, _ in read]
    middle = statistics.median(numbers)
    nearest = min(read, key=lambda pair: abs(pair[0] - middle))[1]
    spread = max(numbers) - min(numbers)
    levels = [v.level for _, v in read if v.level is not None]
    return ScoreValue(
        name,
        middle,
        level=statistics.median(levels) if levels else None,
        reason=nearest.reason,
        evidence=nearest.evidence,
        details={
            **nearest.details,
            "votes": [v.value for v in values],
            "needs_person": spread >= DISAGREEMENT,
        },
    )


@dataclass(frozen=True, slots=True)
class Repeated:
    """One judge asked several times about the same answer: the mean counts, and each judgement is kept."""

    judges: tuple[Scorer, ...]
    is_judge: bool = True

    @property
    def author(self) -> str:
        """Return the judge, who is the same each time."""
        return self.judges[0].author

    def score(self, row: Record, outcome: TargetResult) -> list[ScoreValue]:
        """Score each time; what could not be read in one judgement is left out of the mean."""
        by_name: dict[str, list[ScoreValue]] = {}
        for values in together(partial(judge.score, row, outcome) for judge in self.judges):
            for value in values:
                by_name.setdefault(value.name, []).append(value)
        return [_mean(values) for values in by_name.values()]


def _mean(values: Sequence[ScoreValue]) -> ScoreValue:
    read = [value for value in values if value.value is not None]
    if not read:
        return values[0]
    numbers = [value.value for value in read if value.value is not None]
    levels = [value.level for value in read if value.level is not None]
    first = read[0]
    return replace(
        first,
        value=statistics.fmean(numbers),
        level=statistics.fmean(levels) if levels else None,
        details={**first.details, "replicates": numbers},
    )
