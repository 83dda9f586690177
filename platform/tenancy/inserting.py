"""Insert rows of several tables by one statement: each statement costs more on its way than rows cost to be written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models.sql import InsertQuery


def rows_insert(rows: Sequence[models.Model]) -> None:
    """Store new rows that know their ids, in one statement; they may refer to each other.

    They are as ``save(force_insert=True)`` leaves them, but no signal is sent.

    Raises:
        ValueError: a row has no id.
        IntegrityError: what they refer to isn't there; nothing was stored.
    """
    if any(row.pk is None for row in rows):
        raise ValueError("rows that are stored together refer to each other by ids: give each its own first")
    if settings.CITUS:  # a router takes no statement that inserts into several tables
        for row in rows:
            row.save(force_insert=True)
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
    names = range(len(rows))
    told = f"WITH {parts} SELECT {', '.join(f'r{at}.*' for at in names)} FROM {', '.join(f'r{at}' for at in names)}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(told, values)
        found = iter(cursor.fetchone())
    for row in rows:
        for field in row._meta.db_returning_fields:
            setattr(row, field.attname, next(found))
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
