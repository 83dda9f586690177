"""What people grade by where a judge counts claims: a rubric for each of these judges, whose levels are its shares in words. Pure.

A judge of claims gives a share from 0 to 1. People do not count; they choose one of five levels, each a quarter further. So both
are on one scale, and how far they agree is measured as with any rubric.
"""

from __future__ import annotations

from collections.abc import Mapping

from apps.datasets.records.rubric import Criterion, Rubric

_PREFIX = "claims."
"""No rubric of a workspace can begin so: the names that people give become slugs, which have no dot."""


def _rubric(kind: str, question: str, none: str, few: str, half: str, most: str, every: str) -> Rubric:
    criterion = Criterion(kind, question, (none, few, half, most, every))
    return Rubric(f"{_PREFIX}{kind}", 1, (criterion,))


CLAIMS: Mapping[str, Rubric] = {
    "faithfulness": _rubric(
        "faithfulness",
        "How much of what the answer states do the passages support?",
        "No statement is supported.",
        "About a quarter of the statements.",
        "About half of the statements.",
        "About three quarters of the statements.",
        "Every statement is supported.",
    ),
    "answer_relevancy": _rubric(
        "answer_relevancy",
        "How much of what the answer states serves the question?",
        "No statement serves it.",
        "About a quarter of the statements.",
        "About half of the statements.",
        "About three quarters of the statements.",
        "Every statement serves it.",
    ),
    "context_recall": _rubric(
        "context_recall",
        "How much of what the reference answer states do the passages hold?",
        "They hold nothing of it.",
        "About a quarter of it.",
        "About half of it.",
        "About three quarters of it.",
        "They hold all of it.",
    ),
    "context_precision": _rubric(
        "context_precision",
        "Do the useful passages stand before the useless ones?",
        "No passage is useful.",
        "The useful ones come late, behind many useless ones.",
        "Useful and useless ones are mixed.",
        "The useful ones come first, but for one.",
        "Every useful one stands before every useless one.",
    ),
    "noise_robustness": _rubric(
        "noise_robustness",
        "How free is the answer of wrong statements that it took from the passages?",
        "Every statement is a wrong one from a passage.",
        "About three quarters of the statements are.",
        "About half of the statements are.",
        "About a quarter of the statements is.",
        "No wrong statement was taken from a passage.",
    ),
}
"""Kind of judge -> its rubric, the first version; its only criterion is named as the score."""

_WITHOUT_PASSAGES = "answer_relevancy"


def kind_of(slug: str) -> str | None:
    """Return the judge of claims whose rubric has this slug; None for any other rubric."""
    kind = slug.removeprefix(_PREFIX)
    return kind if slug.startswith(_PREFIX) and kind in CLAIMS else None


def needs_passages(slug: str) -> bool:
    """Return whether nobody can grade by this rubric without the passages that were found."""
    return (kind_of(slug) or _WITHOUT_PASSAGES) != _WITHOUT_PASSAGES
