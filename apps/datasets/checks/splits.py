"""Divide rows into splits so that no document stands in two of them. Pure.

Rows that share a document, even by way of a third row, stay together; such groups are dealt out from the largest to the
smallest, each to the split that lacks most of what the group holds (iterative stratification, Sechidis et al. 2011, on
groups). The same seed gives the same splits whatever the order of the rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from apps.datasets.records.parts import RecordSource, Split
from apps.datasets.records.record import Record
from basics.errors import Invalid
from basics.texts import gettext as _

SHARES = {Split.TRAIN.value: 0.8, Split.VALIDATION.value: 0.1, Split.TEST.value: 0.1}


@dataclass(frozen=True, slots=True)
class SplitItem:
    """What dividing needs to know of a row.

    Attributes:
        documents: what the row rests on; none: it is a group of its own.
        stratum: what every split should have its share of, for example type and difficulty.
    """

    id: str
    documents: tuple[str, ...]
    stratum: str


def split_item(row: Record) -> SplitItem:
    """Return what dividing needs to know of a record."""
    documents = sorted({document_key(source) for source in row.sources})
    return SplitItem(row.id, tuple(documents), f"{row.type}/{row.difficulty}")


def document_key(source: RecordSource) -> str:
    """Return what tells a source's document from others."""
    return f"{source.collection}/{source.document_id or ''}/{source.document}"


def divide(
    items: Iterable[SplitItem], shares: Mapping[str, float] | None = None, seed: int = 0
) -> dict[str, str]:
    """Return the split of each row.

    Args:
        shares: split to its share of the rows; they sum to 1.

    Raises:
        Invalid: a share is negative, or they do not sum to 1.
    """
    wanted = dict(SHARES if shares is None else shares)
    if not wanted or min(wanted.values()) < 0 or abs(sum(wanted.values()) - 1) > 1e-6:
        raise Invalid("shares_wrong", _("The shares of the splits must be 0 or more and sum to 100 %."))
    groups = _groups(list(items))
    lacking = {
        name: Counter({stratum: count * share for stratum, count in _strata(groups).items()})
        for name, share in wanted.items()
        if share
    }
    found: dict[str, str] = {}
    for group in sorted(groups, key=lambda g: (-len(g), _order(seed, g))):
        holds = Counter(item.stratum for item in group)
        target = max(
            lacking,
            key=lambda name: (
                sum(min(count, lacking[name][stratum]) for stratum, count in holds.items()),
                sum(lacking[name].values()),
                name,
            ),
        )
        lacking[target].subtract(holds)
        found.update((item.id, target) for item in group)
    return found


def gathered(items: Iterable[SplitItem], chosen: Set[str]) -> list[SplitItem]:
    """Return the rows that belong into one split with chosen ones, these among them: all that share a document with them."""
    groups = _groups(list(items))
    return [item for group in groups if any(i.id in chosen for i in group) for item in group]


def leaks(rows: Iterable[tuple[str, Sequence[str]]]) -> dict[str, set[str]]:
    """Return the documents that stand in more than one split, with these splits; rows are (split, documents)."""
    seen: dict[str, set[str]] = {}
    for split, documents in rows:
        for document in documents if split else ():
            seen.setdefault(document, set()).add(split)
    return {document: splits for document, splits in seen.items() if len(splits) > 1}


def _strata(groups: list[list[SplitItem]]) -> Counter[str]:
    return Counter(item.stratum for group in groups for item in group)


def _order(seed: int, group: list[SplitItem]) -> str:
    name = min(item.documents[0] if item.documents else item.id for item in group)
    return hashlib.sha256(f"{seed}\0{name}".encode()).hexdigest()


def _groups(items: list[SplitItem]) -> list[list[SplitItem]]:
    """Return rows that share documents together (union-find)."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for item in items:
        names = item.documents or (f"row {item.id}",)
        for name in names:
            parent.setdefault(name, name)
        for name in names[1:]:
            one, other = sorted((root(names[0]), root(name)))
            parent[other] = one
    groups: dict[str, list[SplitItem]] = {}
    for item in sorted(items, key=lambda item: (len(item.id), item.id)):
        groups.setdefault(root(item.documents[0] if item.documents else f"row {item.id}"), []).append(item)
    return list(groups.values())
