"""Rubrics: what a judge grades an answer by, level by level, and what it must give back. Pure.

A judge gives whole levels from 1 to 5, each with its anchor in words; people see 0 to 1. One rubric serves generation
and evaluations. A change of any word is another version: scores of different versions are not comparable.
"""

from __future__ import annotations

from dataclasses import dataclass

LEVELS = 5


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that is graded.

    Attributes:
        name: of the score.
        question: what the judge asks itself.
        anchors: what levels 1 to 5 mean, in order.
        weight: its share in the overall score, 0 or more.
        minimum: level below which an answer fails whatever its overall score, None for no such level.
    """

    name: str
    question: str
    anchors: tuple[str, str, str, str, str]
    weight: float = 1.0
    minimum: int | None = None


@dataclass(frozen=True, slots=True)
class Rubric:
    """Criteria under a name and version."""

    slug: str
    version: int
    criteria: tuple[Criterion, ...]

    @property
    def author(self) -> str:
        """Return how scores name it, for example ``six@1``."""
        return f"{self.slug}@{self.version}"


SIX = Rubric(
    "six",
    1,
    (
        Criterion(
            "completeness",
            "Does the answer cover everything that the question asks for?",
            (
                "Leaves out what was asked.",
                "Covers a small part.",
                "Covers about half, or misses a main point.",
                "Misses only a detail.",
                "Covers every part of the question.",
            ),
        ),
        Criterion(
            "accuracy",
            "Do the sources and the reference support what the answer says?",
            (
                "Contradicts them in its main point.",
                "Has a serious error.",
                "Mostly right, with an error that matters.",
                "Right but for a small slip.",
                "Every statement is supported.",
            ),
            weight=2.0,
            minimum=3,
        ),
        Criterion(
            "relevance",
            "Does the answer keep to the question?",
            (
                "Answers something else.",
                "Mostly beside the question.",
                "About half of it is beside the question.",
                "A sentence or two are beside the question.",
                "All of it serves the question.",
            ),
        ),
        Criterion(
            "clarity",
            "Would its reader understand the answer at first reading?",
            (
                "Cannot be understood.",
                "Hard to follow.",
                "Understandable with effort.",
                "Clear, with a clumsy passage.",
                "Clear and well ordered.",
            ),
        ),
        Criterion(
            "specificity",
            "Does the answer name the codes, numbers, conditions and places that matter?",
            (
                "Only generalities.",
                "Hardly anything concrete.",
                "Some of what matters is concrete.",
                "Nearly all of what matters is concrete.",
                "Names exactly what matters.",
            ),
        ),
        Criterion(
            "reasoning",
            "Does the answer show how the conclusion follows from the sources?",
            (
                "The conclusion does not follow.",
                "Leaps that carry the conclusion.",
                "One gap in the argument.",
                "Sound, with a step left to the reader.",
                "Every step follows from what is shown.",
            ),
        ),
    ),
)


def value_of(level: float) -> float:
    """Return a level from 1 to 5 as 0 to 1."""
    return (level - 1) / (LEVELS - 1)


def level_of(value: float) -> float:
    """Return 0 to 1 as a level from 1 to 5, between levels too."""
    return 1 + value * (LEVELS - 1)
