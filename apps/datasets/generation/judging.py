"""From six levels to one verdict: 1 to 5 inside, 0 to 1 shown, weights, minima, keep, repair or drop. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from apps.datasets.generation.settings import SCORES, Settings
from apps.datasets.records.parts import Score
from basics.texts import gettext as _
from basics.texts import number_told

ANCHORS: Mapping[str, tuple[str, str, str]] = {
    "completeness": (
        "leaves out most of what was asked",
        "answers the main point, leaves out a part",
        "answers every part of the question",
    ),
    "accuracy": (
        "contradicts the sources or is not in them",
        "mostly supported, one statement is not",
        "every statement is supported by the sources",
    ),
    "relevance": (
        "answers another question",
        "answers it among much else",
        "answers the question and nothing else",
    ),
    "clarity": (
        "cannot be understood without the sources",
        "understandable with effort",
        "plain, ordered and well formed",
    ),
    "specificity": (
        "generalities only",
        "some names or figures, others left vague",
        "exact names, figures and conditions",
    ),
    "reasoning": (
        "the answer does not follow from the steps",
        "it follows, a step is missing or idle",
        "each step is needed and leads to the answer",
    ),
}
"""What level 1, 3 and 5 of each score means; 2 and 4 lie between."""

Verdict = Literal["keep", "repair", "drop"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Scores with their verdict.

    Attributes:
        quality: weighted mean of the values, 0 to 1; None when a score is missing: unscored is not 0.
        reason: why it is not kept, "" when it is.
    """

    scores: tuple[Score, ...]
    quality: float | None
    verdict: Verdict
    reason: str


def value_of(level: int) -> float:
    """Return a level of 1 to 5 as 0 to 1."""
    return (level - 1) / 4


def judged(
    levels: Mapping[str, tuple[int, str]], settings: Settings, *, author: str, repairs: int
) -> Judgement:
    """Weigh the levels of a judge.

    Args:
        levels: score -> (level 1 to 5, evidence).
        author: who judged, as ``Score.author`` has it.
        repairs: how often the answer was repaired already.
    """
    scores = tuple(
        Score(name, value_of(levels[name][0]), levels[name][0], levels[name][1][:1000], author)
        for name in SCORES
        if name in levels
    )
    missing = [name for name in SCORES if name not in levels]
    if missing:
        return Judgement(
            scores, None, "drop", _("The judge gave no grade for %(score)s.") % {"score": missing[0]}
        )
    values = {score.name: value_of(levels[score.name][0]) for score in scores}
    weights = {name: settings.weights.get(name, 0.0) for name in SCORES}
    quality = round(sum(values[n] * w for n, w in weights.items()) / sum(weights.values()), 4)
    low = [n for n, least in settings.minima.items() if values[n] < least]
    if quality >= settings.keep_at and not low:
        return Judgement(scores, quality, "keep", "")
    if low:
        reason = _("The grade for %(score)s is too low.") % {"score": low[0]}
    else:
        reason = _("Quality %(quality)s is too low.") % {"quality": number_told(quality, 2)}
    may_repair = quality >= settings.repair_at and repairs < settings.max_repairs
    return Judgement(scores, quality, "repair" if may_repair else "drop", reason)
