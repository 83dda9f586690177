"""Reads of the documents that rows quote, with their licences."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from apps.datasets.models import (
    Dataset,
)
from apps.datasets.rows.withheld import documents_hidden
from tenancy.actors import Actor


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A document that rows of a dataset quote, under which licences ("" is unknown), and how many rows do."""

    document: str
    licenses: list[str]
    rows: int


# Row-level security holds for it; the tenant stands in it all the same.
_SOURCES = """
SELECT s.document, array_agg(DISTINCT coalesce(s.license, '')), count(DISTINCT r.id)
FROM datasets_datasetrow r, jsonb_to_recordset(r.sources) AS s (document text, license text, document_id text)
WHERE r.tenant_id = %s AND r.dataset_id = %s AND s.document > %s
  AND NOT coalesce(s.document_id = ANY(%s), false)
GROUP BY s.document ORDER BY s.document LIMIT %s
"""


def source_list(*, actor: Actor, dataset: Dataset, after: str = "", most: int = 50) -> list[SourceLine]:
    """Return the documents that a dataset's rows quote with their licences, by name, those after a name."""
    actor.require("dataset.read")
    with connection.cursor() as cursor:
        cursor.execute(_SOURCES, [actor.tenant_id, dataset.pk, after, documents_hidden(actor), most])
        return [SourceLine(*line) for line in cursor.fetchall()]
