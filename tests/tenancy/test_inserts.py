"""The kept text of what stores a row is what Django writes each time."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.backends.postgresql.compiler import SQLInsertCompiler as Plain
from django.db.models.functions import Now
from django.db.models.sql import InsertQuery

from runs.models import Run
from tenancy.database.compiler import SQLInsertCompiler

pytestmark = pytest.mark.rules


def written(kind: type[Plain], row: Any, *, with_id: bool, returning: bool) -> list[tuple[str, str]]:
    fields = [
        f for f in row._meta.local_concrete_fields if not f.generated and (with_id or not f.primary_key)
    ]
    query = InsertQuery(type(row))
    query.insert_values(fields, [row])
    compiler: Any = kind(query, connection, "default")
    compiler.returning_fields = row._meta.db_returning_fields if returning else None
    return [(sql, repr(tuple(values))) for sql, values in compiler.as_sql()]


def test_a_row_is_stored_by_the_same_statement_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [model for model in apps.get_models() if model._meta.managed]
    assert len(models) > 50
    for model in models:
        row = model(pk=None)
        for field in row._meta.local_concrete_fields:
            # What is of the moment would differ between two.
            monkeypatch.setattr(field, "pre_save", lambda made, add, name=field.attname: getattr(made, name))
        for with_id, returning in product((True, False), repeat=2):
            if with_id or len(row._meta.local_concrete_fields) > 1:
                plain = written(Plain, row, with_id=with_id, returning=returning)
                for _ in range(2):  # the first one keeps what the second one finds
                    found = written(SQLInsertCompiler, row, with_id=with_id, returning=returning)
                    assert found == plain, model


def test_an_expression_is_written_where_it_stands() -> None:
    row = Run(pk=1, tenant_id=1)
    for started in (None, Now(), None):
        row.started_at = started
        assert written(SQLInsertCompiler, row, with_id=True, returning=True) == written(
            Plain, row, with_id=True, returning=True
        )
