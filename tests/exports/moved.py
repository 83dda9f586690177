"""Numbers that tell where they come from: what a file's rows had is recognised anywhere."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection, models
from psycopg import sql

from exports.moves import moves_of, staying
from tenancy.database.base import as_login_role
from tenancy.models import Tenant, User
from tenancy.row_security import tenant_models

OLD, NEW = 7_100_000_000, 8_200_000_000
_OLD = re.compile(r"(?<!\d)71\d{8}(?!\d)|(?<![\w/])t71\d{8}/")


MADE_AGAIN = {
    "collections.Collection": {"average_length"},
    "conversations.ConversationShare": {"key"},
    "datasets.DatasetRow": {"content_hash"},
    "datasets.RowContent": {"hash"},
    "datasets.RowReview": {"content_hash"},
    "datasets.DatasetVersion": {"content_hash", "signature"},
}
"""Columns that an import makes again: an identity, hashes that hold numbers, signatures, a running mean."""


def sequences_begin(base: int) -> dict[str, int]:
    """Let the numbers of every table begin at a place of its own; returns where they were."""
    found = {}
    with as_login_role(), connection.cursor() as cursor:
        every: list[type[models.Model]] = [*tenant_models(), Tenant, User]
        for place, model in enumerate(every):
            if not isinstance(model._meta.pk, models.AutoField):
                continue
            cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [model._meta.db_table])
            (name,) = cursor.fetchone()
            statement = sql.SQL("SELECT last_value FROM {}").format(sql.SQL(name))
            cursor.execute(statement)
            found[name] = int(cursor.fetchone()[0])
            cursor.execute("SELECT setval(%s, %s)", [name, base + place * 100_000])
    return found


def sequences_set(found: dict[str, int]) -> None:
    """Put sequences where they were."""
    with as_login_role(), connection.cursor() as cursor:
        for name, value in found.items():
            cursor.execute("SELECT setval(%s, %s)", [name, value])


def old_numbers(tenant_id: int) -> list[str]:
    """Return the rows of a workspace in which a number of the file is left, by table and column."""
    found = []
    with as_login_role(), connection.cursor() as cursor:
        for model in tenant_models():
            table = sql.Identifier(model._meta.db_table)
            statement = sql.SQL("SELECT to_jsonb(t) FROM {} AS t WHERE tenant_id = %s").format(table)
            cursor.execute(statement, [tenant_id])
            for (row,) in cursor.fetchall():
                values = row if isinstance(row, dict) else json.loads(row)
                for column, value in values.items():
                    if marks := _OLD.findall(json.dumps(value)):
                        found.append(f"{model._meta.label}.{column}: {marks[:3]}")
    return sorted(set(found))


def rows_in(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a file by table."""
    with zipfile.ZipFile(path) as archive:
        return {
            name[5:-6]: [json.loads(line) for line in archive.read(name).splitlines()]
            for name in archive.namelist()
            if name.startswith("rows/")
        }


def canonical(path: Path) -> dict[str, str]:
    """Return the values of a file that move, by table, place and column, with each large number as the place of its row in its table.

    Columns that an import makes again are left out.
    """
    rows = rows_in(path)
    places = {
        str(row["id"]): f"<{label} {place}>"
        for label, every in rows.items()
        for place, row in enumerate(every)
        if row.get("id", 0) > OLD
    }
    number = re.compile(r"\d{10}")
    found: dict[str, str] = {}
    for label, every in rows.items():
        if label not in staying() and label != Tenant._meta.label:
            left = MADE_AGAIN.get(label, set()) | _staying_columns(label)
            kept = [{column: value for column, value in row.items() if column not in left} for row in every]
            for place, row in enumerate(kept):
                for column, value in row.items():
                    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
                    told = number.sub(lambda n: places.get(n[0], "<none>"), text)
                    found[f"{label} {place} {column}"] = told
    return found


def _staying_columns(label: str) -> set[str]:
    """Return the columns that refer to what stays in the file."""
    model = apps.get_model(label)
    columns = {
        f.attname: f.related_model._meta.label
        for f in model._meta.concrete_fields
        if f.related_model is not None
    }
    return {c for c, target in {**columns, **moves_of(model).numbers}.items() if target in staying()}


def files_in(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a workspace's file."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("files/"):
                yield name, archive.read(name)
