"""Write rows of several tables by one statement: each statement costs more on its way than rows cost to be written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.sql import InsertQuery, UpdateQuery


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
    rows: Sequence[models.Model], *, changed: models.Model | None = None, fields: Collection[str] = ()
) -> None:
    """Store new rows that know their ids, in one statement; they may refer to each other.

    They are as ``save(force_insert=True)`` leaves them, but no signal is sent.

    Args:
        changed: a row that is stored already and that this transaction holds a lock of, as it is to be; it may refer to the
            new ones.
        fields: names of what has changed in it.

    Raises:
        ValueError: a row has no id.
        IntegrityError: what they refer to isn't there; nothing was stored.
    """
    if any(row.pk is None for row in rows):
        raise ValueError("rows that are stored together refer to each other by ids: give each its own first")
    if settings.CITUS:  # a router takes no statement that inserts into several tables
        for row in rows:
            row.save(force_insert=True)
        if changed is not None:
            changed.save(update_fields=fields)
        return
    connection = connections[DEFAULT_DB_ALIAS]
    statements, values = [], []
    for row in rows:
        meta = row._meta
        query = InsertQuery(type(row))
        query.insert_values([field for field in meta.local_concrete_fields if not field.generated], [row])
        compiler: Any = query.get_compiler(connection=connection)
        compiler.returning_fields = meta.db_returning_fields
        ((statement, given),) = compiler.as_sql()
        statements.append(statement)
        values += given
    parts = ", ".join(f"r{at} AS ({statement})" for at, statement in enumerate(statements))
    if changed is not None:
        update, given = _update(changed, fields, connection)
        parts += f", changed AS ({update})"
        values += given
    names = range(len(rows))
    told = f"WITH {parts} SELECT {', '.join(f'r{at}.*' for at in names)} FROM {', '.join(f'r{at}' for at in names)}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(told, values)
        found = iter(cursor.fetchone())
    for row in rows:
        for field in row._meta.db_returning_fields:
            setattr(row, field.attname, next(found))
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def _update(row: models.Model, fields: Collection[str], connection: Any) -> tuple[str, Sequence[Any]]:
    """Return what ``save(update_fields=fields)`` sends, with its values."""
    meta = row._meta
    query: Any = type(row)._base_manager.filter(pk=row.pk).query.chain(UpdateQuery)
    new = [field for field in meta.local_concrete_fields if field.name in fields]
    query.add_update_fields([(field, None, field.pre_save(row, add=False)) for field in new])
    statement, given = query.get_compiler(connection=connection).as_sql()
    return statement, given
