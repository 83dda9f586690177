"""Rows that rest on documents which somebody may not read: they are not there for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from django.db.models import BooleanField, F, Func, QuerySet

from apps.collections.models import Document
from apps.datasets.models import DatasetVersion, RowContent, VersionRow
from basics.errors import Denied
from tenancy.actors import Actor

Q = TypeVar("Q", bound="QuerySet[Any]")


class _RestsOn(Func):
    """Whether a column of sources names one of some documents."""

    output_field = BooleanField()

    def __init__(self, sources: str, documents: Sequence[str]) -> None:
        super().__init__(F(sources))
        self.documents = tuple(documents)

    def as_sql(  # type: ignore[override]
        self, compiler: Any, connection: Any, **_: Any
    ) -> tuple[str, list[Any]]:
        column, values = compiler.compile(self.get_source_expressions()[0])
        sql = f"EXISTS (SELECT FROM jsonb_array_elements({column}) s WHERE (s->>'document_id') = ANY (%s))"
        return sql, [*values, list(self.documents)]


def documents_hidden(actor: Actor) -> list[str]:
    """Return the ids of the workspace's documents that are limited to others, as text."""
    if actor.kind == "system":
        return []
    rows = Document.objects.filter(tenant_id=actor.tenant_id, is_restricted=True)
    hidden = rows.exclude(pk__in=Document.objects.visible_to(actor).filter(is_restricted=True))
    return [str(pk) for pk in hidden.values_list("pk", flat=True)]


def rows_readable(rows: Q, actor: Actor) -> Q:
    """Return those rows of a dataset that rest on nothing which the actor may not read."""
    hidden = documents_hidden(actor)
    if not hidden:
        return rows
    return rows.alias(rests_on_hidden=_RestsOn("sources", hidden)).filter(rests_on_hidden=False)


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
    if rows.alias(rests=_RestsOn("data__sources", hidden)).filter(rests=True).exists():
        raise Denied("sources_limited", "Rows of this version rest on documents that you may not read.")  # fmt: skip
