"""What a deletion clears: references with ``db_on_delete=SET NULL`` to the rows that go, in the deletion's transaction.

A sharded Postgres takes no ``ON DELETE SET NULL`` between tenants' tables, so the database only refuses to lose a row that
is still referred to (NO ACTION), and each DELETE that a queryset sends is preceded by one UPDATE for each kind of
reference: to its own rows, and to those that the database deletes with them. Statements written by hand that
delete rows with such references have to clear them by themselves; the database refuses them otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import psycopg
from django.apps import apps
from django.db import IntegrityError, models, transaction

from tenancy.database.cursors import scope_wanted
from tenancy.fields import CASCADE, SET_NULL, TenantForeignKey

TRIES = 5
"""How often a deletion is tried whose rows got a reference after they were cleared."""

R = TypeVar("R")
Path = tuple[tuple[TenantForeignKey, ...], TenantForeignKey]
"""References by which rows go with those that are deleted, outermost first; and one that is cleared."""


@cache
def paths_from(model: type[models.Model]) -> tuple[Path, ...]:
    """Return the references that a deletion of this model's rows has to clear."""
    return tuple(_walk(model, ()))


def _walk(model: type[models.Model], chain: tuple[TenantForeignKey, ...]) -> Iterator[Path]:
    for field in _references(model):
        if field.db_on_delete == SET_NULL:
            yield chain, field
        elif field.db_on_delete == CASCADE and field.model not in {model, *(c.model for c in chain)}:
            yield from _walk(field.model, (*chain, field))


def _references(model: type[models.Model]) -> list[TenantForeignKey]:
    return [
        field
        for other in apps.get_models(include_auto_created=True)
        for field in other._meta.local_fields
        if isinstance(field, TenantForeignKey) and field.related_model is model
    ]


def deleted_cleanly(
    using: str, model: type[models.Model], ids: Callable[[], models.sql.Query], delete: Callable[[], R]
) -> R:
    """Clear what refers to rows, and delete them, in one transaction.

    Args:
        using: the connection's alias.
        model: whose rows.
        ids: makes a query of the ids of the rows that go.
        delete: deletes them.

    Returns:
        what ``delete`` returns.

    Raises:
        IntegrityError: something else refers to them, or new references came between each time.
    """
    paths = paths_from(model)
    if not paths:
        return delete()
    for number in range(1, TRIES + 1):
        try:
            with transaction.atomic(using=using):
                for path in paths:
                    _clear(using, path, ids())
                return delete()
        except IntegrityError as error:
            if number == TRIES or not isinstance(error.__cause__, psycopg.errors.ForeignKeyViolation):
                raise
    raise AssertionError("unreachable: the last try returns or raises")


def _clear(using: str, path: Path, ids: Any) -> None:
    chain, cleared = path
    for field in chain:
        ids = _rows(using, field, ids).values("pk")
    _rows(using, cleared, ids).update(**{cleared.name: None})


def _rows(using: str, field: TenantForeignKey, ids: Any) -> models.QuerySet[Any]:
    """Return the rows that refer to these; with the tenant where it is known, so that one shard is asked."""
    rows = field.model._base_manager.using(using).filter(**{f"{field.name}__in": ids})
    scope = scope_wanted()
    return rows.filter(tenant_id=int(scope)) if scope.isdecimal() else rows
