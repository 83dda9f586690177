"""Write rows of several tables by one statement: each statement costs more on its way than rows cost to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import NoneType
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.expressions import DatabaseDefault

from tenancy.database.columns import converted
from tenancy.models import TenantModel

_Shape = tuple[type[models.Model], tuple[str, ...]]
"""A model, and the columns that a new row of it leaves to the database."""


def related_known(row: models.Model, **relations: Sequence[models.Model]) -> None:
    """Take rows that refer to a row as read, as a prefetch does, so that nobody reads back what was just stored.

    Args:
        relations: the rows by the name of the relation, such as ``messages``.
    """
    cache: dict[str, Any] = row.__dict__.setdefault("_prefetched_objects_cache", {})
    for name, rows in relations.items():
        relation: Any = row._meta.get_field(name)
        cache.pop(relation.cache_name, None)
        # The relation's own: filtered or deleted later, it must still mean the rows of this row alone.
        known: Any = getattr(row, relation.get_accessor_name()).all()
        known._result_cache, known._prefetch_done = list(rows), True
        cache[relation.cache_name] = known


def rows_insert(
    rows: Sequence[models.Model],
    *,
    changed: TenantModel | None = None,
    fields: Sequence[str] = (),
    beside: Sequence[tuple[str, Sequence[Any]]] = (),
) -> None:
    """Store new rows in one statement; those that know their ids may be referred to by others of them.

    They are as ``save(force_insert=True)`` leaves them, but no signal is sent. Values are values: no expressions but what the
    database has as a default.

    Args:
        changed: a row that is stored already and that this transaction holds a lock of, as it is to be; it may refer to the
            new ones.
        fields: names of what has changed in it.
        beside: other statements to be sent with it, each with its values; all see the tables as they were before.

    Raises:
        IntegrityError: what they refer to isn't there; nothing was stored.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if settings.CITUS:  # a router takes no statement that inserts into several tables
        for row in rows:
            row.save(force_insert=True)
        if changed is not None:
            changed.save(update_fields=fields)
        for told, given in beside:
            with connection.cursor() as cursor:
                cursor.execute(told, given)
        return
    shapes, values = list[_Shape](), list[Any]()
    for row in rows:
        shape, given = _taken(row, connection)
        shapes.append(shape)
        values += given
    if changed is not None:
        for name in fields:
            field: Any = changed._meta.get_field(name)
            values.append(field.get_db_prep_save(field.pre_save(changed, add=False), connection))
        values += (changed.tenant_id, changed.pk)
    for _, given in beside:
        values += given
    changing = None if changed is None else type(changed)
    told = _statement(tuple(shapes), changing, tuple(fields), tuple(told for told, _ in beside))
    with connection.cursor() as cursor:
        cursor.execute(told, values)
        found = iter(cursor.fetchone())
    for row in rows:
        for field in _returned(type(row)):
            setattr(row, field.attname, converted(field, next(found)))
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


_PLAIN: Mapping[type, type] = {
    models.CharField: str,
    models.TextField: str,
    models.BooleanField: bool,
    models.FloatField: float,
    **dict.fromkeys(
        (
            models.BigAutoField,
            models.BigIntegerField,
            models.IntegerField,
            models.PositiveIntegerField,
            models.PositiveSmallIntegerField,
        ),
        int,
    ),
    **dict.fromkeys((models.DateTimeField, models.JSONField), NoneType),
}
"""Fields that store such a value, and none, as it is: the ORM asks each of them four times."""


@lru_cache(maxsize=64)
def _written(model: type[models.Model]) -> tuple[tuple[Any, str, type | None], ...]:
    """Return the fields that an INSERT names, their attributes, and the type of values that are stored as they are."""
    fields: Any = model._meta.local_concrete_fields
    return tuple((one, one.attname, _plain(one)) for one in fields if not one.generated)


def _plain(field: Any) -> type | None:
    stored = field.target_field if isinstance(field, models.ForeignKey) else field
    is_clock = getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    return None if is_clock else _PLAIN.get(type(stored))


def _taken(row: models.Model, connection: Any) -> tuple[_Shape, list[Any]]:
    """Return a new row's shape and values."""
    left, values = list[str](), list[Any]()
    held = row.__dict__
    for field, name, plain in _written(type(row)):
        if plain is not None and name in held:
            kind = type(held[name])
            if kind is plain or (kind is NoneType and not field.primary_key):
                values.append(held[name])
                continue
        value = field.pre_save(row, add=True)
        if isinstance(value, DatabaseDefault) or (value is None and field.primary_key):
            left.append(field.column)
        else:
            values.append(field.get_db_prep_save(value, connection))
    return (type(row), tuple(left)), values


# The ORM makes it again for each question, which takes it as long as all the rest of storing one.
@lru_cache(maxsize=64)
def _statement(
    shapes: tuple[_Shape, ...],
    changed: type[TenantModel] | None,
    fields: tuple[str, ...],
    beside: tuple[str, ...],
) -> str:
    """Return the statement that stores rows of these shapes, and a changed one, and does what is beside them."""
    if len(shapes) == 1 and changed is None and not beside:
        return _insert(*shapes[0])
    parts = [f"r{at} AS ({_insert(*shape)})" for at, shape in enumerate(shapes)]
    if changed is not None:
        parts.append(f"changed AS ({_update(changed, fields)})")
    parts += [f"b{at} AS ({one})" for at, one in enumerate(beside)]
    # Each by itself: the planner would look at every order in which the rows could be joined.
    told = [
        f"(SELECT {_quoted(field.column)} FROM r{at})"  # noqa: S608
        for at, (model, _) in enumerate(shapes)
        for field in _returned(model)
    ]
    return f"WITH {', '.join(parts)} SELECT {', '.join(told)}"


def _returned(model: type[models.Model]) -> Sequence[Any]:
    """Return the fields that the database fills in."""
    meta: Any = model._meta
    return meta.db_returning_fields  # type: ignore[no-any-return]


def _insert(model: type[models.Model], left: tuple[str, ...]) -> str:
    meta: Any = model._meta
    columns = [field.column for field, _, _ in _written(model)]
    told = ", ".join(_quoted(field.column) for field in _returned(model))
    into = f'"{meta.db_table}" ({", ".join(map(_quoted, columns))})'
    values = ", ".join("DEFAULT" if column in left else "%s" for column in columns)
    return f"INSERT INTO {into} VALUES ({values}) RETURNING {told}"  # noqa: S608


def _update(model: type[TenantModel], fields: tuple[str, ...]) -> str:
    meta: Any = model._meta
    new = ", ".join(f"{_quoted(meta.get_field(name).column)} = %s" for name in fields)
    return f'UPDATE "{meta.db_table}" SET {new} WHERE "tenant_id" = %s AND "id" = %s'  # noqa: S608


def _quoted(column: str) -> str:
    return f'"{column}"'
