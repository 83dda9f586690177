"""What conditions of ``retention.Use`` are made of."""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField, Func, QuerySet
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast


def numbers_listed(rows: QuerySet[Any, Any], column: str, name: str) -> QuerySet[Any, Any]:
    """Return the numbers that a JSON column of some rows lists under a name, as a query.

    It asks nothing of the row outside, so Postgres reads it once for all documents and not once for each.

    Args:
        rows: the value under the name is a list in all of them.
    """
    listed = Func(KeyTransform(name, column), function="jsonb_array_elements_text")
    found: QuerySet[Any, Any] = rows.order_by().annotate(listed=Cast(listed, BigIntegerField()))
    return found.values("listed")
