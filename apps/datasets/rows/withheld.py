"""Rows that rest on documents which somebody may not read: they are not there for them, nor is what was made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet

from apps.collections.models import Chunk, Document
from apps.datasets.models import (
    DatasetCheck,
    DatasetExport,
    DatasetRow,
    DatasetVersion,
    GenerationItem,
    RowContent,
    VersionRow,
)
from basics.errors import Denied
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.shown_rows import ShownRows

R = TypeVar("R", bound="QuerySet[Any]")
# How findings of a check name rows: by their numbers, those of other datasets as "row 5 of Duties".
_ROW = re.compile(r"(?:row )?(\d{1,18})(?: of .*)?", re.DOTALL)
_ROW_NAMES = ("dropped", "kept", "evaluated", "seen", "row")
_PASSAGE = re.compile(r"\bc(\d{1,18})\b")


class RestsOn(Func):
    """Whether a column of sources names one of some documents."""

    output_field = BooleanField()
    test = "EXISTS (SELECT FROM jsonb_array_elements({column}) s WHERE (s->>'document_id') = ANY (%s))"

    def __init__(self, column: str, documents: Sequence[str]) -> None:
        super().__init__(F(column))
        self.documents = tuple(documents)

    def as_sql(  # type: ignore[override]
        self, compiler: Any, connection: Any, **_: Any
    ) -> tuple[str, list[Any]]:
        column, values = compiler.compile(self.get_source_expressions()[0])
        return self.test.format(column=column), [*values, list(self.documents)]


class _MadeOf(RestsOn):
    """Whether a column of passages names one of some documents."""

    test = "EXISTS (SELECT FROM collections_chunk c WHERE c.tenant_id = own_tenant() AND c.id = ANY ({column}) AND c.document_id::text = ANY (%s))"


def documents_hidden(actor: Actor) -> list[str]:
    """Return the ids of the workspace's documents that are limited to others, as text."""
    if actor.kind == "system":
        return []
    rows = Document.objects.filter(tenant_id=actor.tenant_id, is_restricted=True)
    hidden = rows.exclude(pk__in=Document.objects.visible_to(actor).filter(is_restricted=True))
    return [str(pk) for pk in hidden.values_list("pk", flat=True)]


def rows_readable(rows: R, actor: Actor) -> R:
    """Return those rows of a dataset that rest on nothing which the actor may not read."""
    hidden = documents_hidden(actor)
    if not hidden:
        return rows
    return rows.alias(rests_on_hidden=RestsOn("sources", hidden)).filter(rests_on_hidden=False)


def version_require(*, actor: Actor, version: DatasetVersion) -> None:
    """Let only those have a whole version, or a file of it, who may read what all of its rows rest on.

    Raises:
        Denied: ``sources_limited``.
    """
    hidden = documents_hidden(actor)
    if not hidden:
        return
    members = VersionRow.objects.filter(tenant_id=actor.tenant_id, version=version)
    rows = RowContent.objects.filter(pk__in=members.values("content_id"))
    if rows.alias(rests=RestsOn("data__sources", hidden)).filter(rests=True).exists():
        raise Denied(
            "sources_limited",
            _("Some rows in this version use documents you can't read. Ask an admin for access."),
        )


def exports_readable(rows: QuerySet[DatasetExport], actor: Actor) -> QuerySet[DatasetExport]:
    """Return those exports that write a version which the actor may have whole."""
    hidden = documents_hidden(actor)
    if not hidden:
        return rows
    members = VersionRow.objects.filter(tenant_id=actor.tenant_id, version=OuterRef("version_id"))
    return rows.exclude(Exists(members.filter(Q(RestsOn("content__data__sources", hidden)))))


def items_readable(rows: QuerySet[GenerationItem], actor: Actor) -> QuerySet[GenerationItem]:
    """Return those candidates of which nothing was made of passages that the actor may not read."""
    hidden = documents_hidden(actor)
    if not hidden:
        return rows
    of_row = DatasetRow.objects.filter(tenant_id=actor.tenant_id, pk=OuterRef("row_id"))
    rests = Q(Exists(of_row.filter(Q(RestsOn("sources", hidden)))))
    return rows.exclude(rests | Q(_MadeOf("chunks", hidden)))


def tells_hidden(actor: Actor, texts: Iterable[str]) -> bool:
    """Tell whether results of tools, which name passages as ``c12``, hold one that the actor may not read."""
    hidden = documents_hidden(actor)
    named = {int(pk) for text in texts for pk in _PASSAGE.findall(text)} if hidden else set()
    rows = Chunk.objects.filter(tenant_id=actor.tenant_id, pk__in=named, document_id__in=hidden)
    return bool(named) and rows.exists()


class ShownChecks(ShownRows[DatasetCheck]):
    """Checks without findings about rows and documents that their reader may not read; counts stay."""

    def withhold(self, reader: Actor, rows: list[Any]) -> None:
        """Take the findings out of fetched checks."""
        hidden = documents_hidden(reader)
        for row in rows if hidden else ():
            row.result = _result_shown(reader, row.result, hidden)


def _result_shown(actor: Actor, kept: Mapping[str, Any], hidden: Sequence[str]) -> dict[str, Any]:
    result = dict(kept)
    lists = {name: found for name, found in result.items() if isinstance(found, list)}
    named = {pk for found in lists.values() for one in found for pk in _rows_named(one)}
    rows = DatasetRow.objects.filter(tenant_id=actor.tenant_id, pk__in=named)
    lost = set(rows.filter(Q(RestsOn("sources", hidden))).values_list("pk", flat=True))
    names = set(Document.objects.filter(pk__in=hidden).values_list("name", flat=True))
    for name, found in lists.items():
        result[name] = [
            one
            for one in found
            if not _rows_named(one) & lost and not (isinstance(one, Mapping) and one.get("document") in names)
        ]
    return result


def _rows_named(found: object) -> set[int]:
    if not isinstance(found, Mapping):
        return set()
    said = (_ROW.fullmatch(str(found.get(name, ""))) for name in _ROW_NAMES)
    return {int(match[1]) for match in said if match}
