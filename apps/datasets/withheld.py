"""Rows that rest on documents which somebody may not read: they are not there for them."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from apps.collections.models import Document
from apps.datasets.models import DatasetVersion, RowContent, VersionRow
from basics.errors import Denied
from tenancy.actors import Actor

Q = TypeVar("Q", bound="QuerySet[Any]")
_RESTS_ON = (
    "EXISTS (SELECT FROM jsonb_array_elements({column}) s WHERE (s->>'document_id') = ANY (%s))"
)


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
    rests = RawSQL(_RESTS_ON.format(column='"datasets_datasetrow"."sources"'), [hidden])  # noqa: S611 - a constant
    return rows.alias(rests_on_hidden=rests).filter(rests_on_hidden=False)


def version_require(*, actor: Actor, version: DatasetVersion) -> None:
    """Let only those have a whole version, or a file of it, who may read what all of its rows rest on.

    Raises:
        Denied: ``sources_limited``.
    """
    hidden = documents_hidden(actor)
    if not hidden:
        return
    rests = RawSQL(_RESTS_ON.format(column='"datasets_rowcontent"."data"->\'sources\''), [hidden])  # noqa: S611 - a constant
    members = VersionRow.objects.filter(tenant_id=actor.tenant_id, version=version)
    rows = RowContent.objects.filter(pk__in=members.values("content_id"))
    if rows.alias(rests=rests).filter(rests=True).exists():
        raise Denied("sources_limited", "Rows of this version rest on documents that you may not read.")  # fmt: skip
