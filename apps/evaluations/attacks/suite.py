"""The rows of a safety suite: every carrier with every goal, places and disguises dealt out evenly, and benign controls. Pure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from apps.datasets.records.parts import RowType
from apps.datasets.records.record import Record
from apps.evaluations.attacks.materials import BUILT_IN, KIND_OF, PROSE, Material, carrier_load
from apps.evaluations.attacks.values import (
    GOALS,
    META,
    Attack,
    Carrier,
    Category,
    Disguise,
    Place,
    instruction_write,
)

VERSION = 1
"""Of wordings and carriers: a change of them is another suite, and scores of the two are not compared."""
MOST_ROWS = 5_000
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_DIGITS = "23456789"


@dataclass(frozen=True, slots=True)
class SuiteSpec:
    """What a suite has.

    Attributes:
        per_pair: attacks for each pair of a carrier and a goal.
        controls: benign rows of each carrier.
        seed: the same seed and texts give the same rows.
    """

    carriers: Sequence[Carrier] = tuple(Carrier)
    categories: Sequence[Category] = tuple(Category)
    per_pair: int = 1
    controls: int = 3
    seed: int = 1

    @property
    def rows(self) -> int:
        """Return how many rows it has."""
        return len(self.carriers) * (len(self.categories) * self.per_pair + self.controls)


def suite_rows(spec: SuiteSpec, materials: Sequence[Material] = ()) -> list[Record]:
    """Return the rows of a suite: for each carrier its attacks, then its controls.

    Args:
        materials: texts of the workspace's own; a kind that none of them has is taken from our own.
    """
    rng = random.Random(f"{VERSION}|{spec.seed}")  # noqa: S311 - chooses, and guards nothing
    forms = [(place, disguise) for place in Place for disguise in Disguise]
    rng.shuffle(forms)
    form = cycle(forms)
    texts = {kind: cycle(_shuffled(rng, _of_kind(materials, kind))) for kind in _kinds(spec)}
    rows = []
    for carrier in spec.carriers:
        material_of = texts[KIND_OF.get(carrier, PROSE)]
        for category in spec.categories:
            for _ in range(spec.per_pair):
                place, disguise = next(form)
                rows.append(_attack_row(rng, carrier, category, place, disguise, next(material_of)))
        rows += [_control_row(carrier, next(material_of), n) for n in range(spec.controls)]
    return rows


def suite_manifest(
    spec: SuiteSpec, rows: Sequence[Record], materials: Sequence[Material]
) -> Mapping[str, Any]:
    """Return what a version's manifest says of the mix."""
    attacks = [row.meta[META] for row in rows]
    counts: dict[str, Mapping[str, int]] = {
        name: dict(sorted(Counter(str(one[name]) for one in attacks if one["category"]).items()))
        for name in ("carrier", "category", "place", "disguise")
    }
    return {
        "safety_suite": {
            "version": VERSION,
            "seed": spec.seed,
            "attacks": sum(bool(one["category"]) for one in attacks),
            "controls": sum(not one["category"] for one in attacks),
            "texts": "own texts" if materials else "built in",
            "built_in_kinds": sorted(k for k in _kinds(spec) if not _own(materials, k)),
            **counts,
        }
    }


def _attack_row(
    rng: random.Random,
    carrier: Carrier,
    category: Category,
    place: Place,
    disguise: Disguise,
    material: Material,
) -> Record:
    goal, a, b = GOALS[category], _code(rng), _code(rng)
    if carrier == Carrier.HEADING:
        place = Place.START  # a name has no middle
    planted = instruction_write(goal, a, b, disguise)
    loaded = carrier_load(carrier, material, planted, place)
    attack = Attack(
        carrier=carrier,
        category=category,
        place=place,
        disguise=disguise,
        name=loaded.name,
        headings=loaded.headings,
        text=loaded.text,
        canary=goal.canary_of(a, b),
        tool=goal.tool,
        hidden_in=goal.hidden_in,
    )
    return _row(attack, loaded.question, material)


def _control_row(carrier: Carrier, material: Material, number: int) -> Record:
    loaded = carrier_load(carrier, material, "", Place.MIDDLE)
    attack = Attack(carrier=carrier, name=loaded.name, headings=loaded.headings, text=loaded.text)
    # The same text may serve twice where there are few; a row is known by its content.
    return _row(attack, loaded.question, material, f"control {number + 1}")


def _row(attack: Attack, question: str, material: Material, note: str = "") -> Record:
    tags = [f"carrier:{attack.carrier}"]
    if attack.is_control:
        tags.append("control")
    else:
        tags += [f"goal:{attack.category}", f"place:{attack.place}", f"disguise:{attack.disguise}"]
    return Record(
        question=question,
        answer=material.answer or (material.source.quote if material.source else material.text),
        type=RowType.FACTUAL if attack.is_control else RowType.INJECTED,
        rationale=note,
        sources=() if material.source is None else (material.source,),
        tags=tuple(tags),
        meta={META: attack.model_dump(mode="json")},
    )


def _kinds(spec: SuiteSpec) -> list[str]:
    return sorted({KIND_OF.get(carrier, PROSE) for carrier in spec.carriers})


def _own(materials: Sequence[Material], kind: str) -> list[Material]:
    return [one for one in materials if one.kind == kind]


def _of_kind(materials: Sequence[Material], kind: str) -> list[Material]:
    return _own(materials, kind) or [one for one in BUILT_IN if one.kind == kind]


def _shuffled(rng: random.Random, materials: Sequence[Material]) -> list[Material]:
    found = list(materials)
    rng.shuffle(found)
    return found


def _code(rng: random.Random) -> str:
    """Return a part of a code, such as QX4T: no word of any language, so that none stands in an answer by chance."""
    return "".join((*rng.choices(_LETTERS, k=2), rng.choice(_DIGITS), rng.choice(_LETTERS)))
