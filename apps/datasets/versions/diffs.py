"""What changed between two versions: rows that came, went, or have other content; a page at a time."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from apps.datasets.models import DatasetVersion, VersionRow
from apps.datasets.records.record import FIELDS, UNHASHED, Record, from_values, to_values
from apps.datasets.rows.withheld import version_require
from tenancy.actors import Actor

Change = Literal["added", "removed", "changed"]
_WORD = re.compile(r"\s+|[^\s]+")
MAX_WORDS = 2_000


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows came, went, changed and stayed between two versions."""

    added: int
    removed: int
    changed: int
    same: int


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a changed row: pieces of text, each with how it stands to the other version."""

    name: str
    pieces: tuple[tuple[Literal["same", "removed", "added"], str], ...]


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row of one or both versions.

    Attributes:
        ref: the row's number in its dataset, the same in every version.
        before, after: its content; None where it is not in that version.
    """

    kind: Change
    ref: int
    before: Record | None
    after: Record | None

    @property
    def shown(self) -> Record | None:
        """Return the content to name the row by."""
        return self.after or self.before

    @property
    def fields(self) -> list[FieldChange]:
        """Return the fields that differ, word by word."""
        if self.before is None or self.after is None:
            return []
        old, new = to_values(self.before), to_values(self.after)
        return [
            FieldChange(name, tuple(word_diff(_text(old[name]), _text(new[name]))))
            for name in FIELDS
            if name not in UNHASHED and old[name] != new[name]
        ]


# Both sides come in the order of one covering index, so that this is a merge of two index-only scans.
_COMMON = """
SELECT count(*), count(*) FILTER (WHERE o.content_id = n.content_id)
FROM datasets_versionrow o JOIN datasets_versionrow n USING (tenant_id, row_ref)
WHERE o.tenant_id = %s AND o.version_id = %s AND n.version_id = %s
"""


def version_counts(*, actor: Actor, older: DatasetVersion, newer: DatasetVersion) -> Counts:
    """Return how many rows came, went, changed and stayed."""
    actor.require("dataset.read")
    with connection.cursor() as cursor:
        cursor.execute(_COMMON, [actor.tenant_id, older.pk, newer.pk])
        common, same = cursor.fetchone()
    return Counts(newer.row_count - common, older.row_count - common, common - same, same)


def version_changes(
    *,
    actor: Actor,
    older: DatasetVersion,
    newer: DatasetVersion,
    kind: Change,
    after: int = 0,
    limit: int = 50,
) -> list[RowChange]:
    """Return changes of one kind in the order of the rows' numbers, those after a number; at most ``limit``."""
    for version in (older, newer):
        version_require(actor=actor, version=version)
    rows = _changes(actor, older, newer, kind).filter(row_ref__gt=after)
    found = list(rows.select_related("content").order_by("row_ref")[:limit])
    if kind == "added":
        return [RowChange(kind, row.row_ref, None, from_values(row.content.data)) for row in found]
    if kind == "removed":
        return [RowChange(kind, row.row_ref, from_values(row.content.data), None) for row in found]
    past = VersionRow.objects.visible_to(actor).filter(
        version=older, row_ref__in=[row.row_ref for row in found]
    )
    before = {row.row_ref: row.content.data for row in past.select_related("content")}
    return [
        RowChange(kind, row.row_ref, from_values(before[row.row_ref]), from_values(row.content.data))
        for row in found
    ]


def _changes(
    actor: Actor, older: DatasetVersion, newer: DatasetVersion, kind: Change
) -> QuerySet[VersionRow]:
    actor.require("dataset.read")
    inside, other = (older, newer) if kind == "removed" else (newer, older)
    rows: QuerySet[VersionRow] = VersionRow.objects.visible_to(actor).filter(version=inside)
    twin = VersionRow.objects.filter(version=other, row_ref=OuterRef("row_ref"))
    if kind != "changed":
        return rows.filter(~Exists(twin))
    return rows.filter(Exists(twin.exclude(content_id=OuterRef("content_id"))))


def word_diff(old: str, new: str) -> Iterator[tuple[Literal["same", "removed", "added"], str]]:
    """Yield the pieces of two texts, word by word; texts that are too long for that as two wholes."""
    one, two = _WORD.findall(old), _WORD.findall(new)
    if max(len(one), len(two)) > MAX_WORDS:
        yield "removed", old
        yield "added", new
        return
    for tag, a, b, c, d in difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag == "equal":
            yield "same", "".join(one[a:b])
            continue
        if b > a:
            yield "removed", "".join(one[a:b])
        if d > c:
            yield "added", "".join(two[c:d])


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
