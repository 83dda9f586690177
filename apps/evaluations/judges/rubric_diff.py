"""What has changed from one version of a rubric to the next, criterion by criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _

from apps.evaluations.results.word_diff import Piece, word_diff
from basics.texts import number_told


@dataclass(frozen=True, slots=True)
class CriterionText:
    """One text of a criterion in both versions, word by word."""

    label: str
    before: Sequence[Piece]
    after: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class CriterionChange:
    """One criterion that is new, gone, or says something else."""

    name: str
    kind: Literal["added", "removed", "changed"]
    lines: Sequence[CriterionText] = ()


def rubric_diff(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[CriterionChange]:
    """Return the changes in the order of the newer version, what is gone last.

    Args:
        before, after: criteria as ``RubricVersion`` keeps them.
    """
    old = {one["name"]: one for one in before}
    new = {one["name"]: one for one in after}
    found: list[CriterionChange] = []
    for name, one in new.items():
        if name not in old:
            found.append(CriterionChange(name, "added"))
            continue
        lines = [
            CriterionText(label, *word_diff(was, now))
            for label, was, now in zip(_labels(), _texts(old[name]), _texts(one), strict=True)
            if was != now
        ]
        if lines:
            found.append(CriterionChange(name, "changed", lines))
    return found + [CriterionChange(name, "removed") for name in old if name not in new]


def _labels() -> list[str]:
    levels = [_("Level %(level)s") % {"level": level} for level in range(1, 6)]
    return [_("Question"), *levels, _("Weight"), _("Minimum")]


def _texts(one: Mapping[str, Any]) -> list[str]:
    least = one.get("minimum")
    return [
        one["question"],
        *one["anchors"],
        number_told(one.get("weight", 1.0), None),
        _("none") if least is None else str(least),
    ]
