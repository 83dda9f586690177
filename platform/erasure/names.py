"""Replace a person's names and addresses in text, JSON and lists of every table that may have them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from psycopg import sql

from erasure.rules import columns_of, models_all
from tenancy.models import AuditEvent, User

_NAME_CHARS = 5
"""A shorter name would be found in words that mean something else."""
_BEFORE = r"(?<![[:alnum:].+-]|[[:alnum:]]_)"
_AFTER = r"(?![[:alnum:]]|[._+-][[:alnum:]])"
_APART = {AuditEvent}  # whose rows are sealed: see erasure.trail


@dataclass(frozen=True, slots=True)
class Identity:
    """What a person is called, and what stands there afterwards.

    Attributes:
        pattern: matches every form of it, as a regular expression of Postgres.
        pseudonym: tells nothing but the number that the person had here.
    """

    pattern: str
    pseudonym: str


def identity_of(user: User) -> Identity:
    """Return what to look for: addresses, and first and last name where a person gave both."""
    mails = EmailAddress.objects.filter(user=user).values_list("email", flat=True)
    known = {user.email, *mails}
    if user.first_name and user.last_name and len(user.get_full_name()) >= _NAME_CHARS:
        known |= {user.get_full_name(), f"{user.last_name}, {user.first_name}"}
    forms = set()
    for one in filter(None, known):
        forms |= {one, json.dumps(one, ensure_ascii=False)[1:-1], json.dumps(one)[1:-1]}
    forms_escaped = "|".join(escaped(one) for one in sorted(forms, key=len, reverse=True))
    return Identity(f"{_BEFORE}({forms_escaped}){_AFTER}", f"person-{user.pk}")


def escaped(text: str) -> str:
    """Return a text as a regular expression of Postgres that matches nothing else."""
    return "".join(c if c.isalnum() else f"\\{c}" if c.isascii() else c for c in text)


def names_replace(who: Identity) -> dict[str, int]:
    """Replace a person's names in every table; returns how many rows of which table that changed.

    As the owner of the tables (``as_login_role``), because some rows nobody else may change.
    """
    found = {}
    for model in models_all():
        columns = [f for f in columns_of(model, "names") if _is_text(f)]
        if columns and model not in _APART and (count := _replace(model, columns, who)):
            found[model._meta.label] = count
    return found


def names_kept(who: Identity) -> dict[str, int]:
    """Count the rows of each table whose content, which stays, names a person."""
    found = {}
    with connection.cursor() as cursor:
        for model in models_all():
            columns = [f for f in columns_of(model, "content") if _is_text(f)]
            if not columns:
                continue
            statement = sql.SQL("SELECT count(*) FROM {} WHERE {}").format(
                sql.Identifier(model._meta.db_table), matches(columns)
            )
            cursor.execute(statement, {"pattern": who.pattern})
            if count := int(cursor.fetchone()[0]):
                found[model._meta.label] = count
    return found


def names_columns(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    """Return the columns of a table in which names are replaced."""
    return [f for f in columns_of(model, "names") if _is_text(f)]


def set_clause(columns: Iterable[models.Field[Any, Any]]) -> sql.Composed:
    """Return ``column = …`` for each, with names replaced; parameters ``pattern`` and ``pseudonym``."""
    parts: list[sql.Composable] = [
        sql.SQL("{} = {}").format(sql.Identifier(str(f.column)), _replaced(f)) for f in columns
    ]
    return sql.SQL(", ").join(parts)


def _replace(model: type[models.Model], columns: list[models.Field[Any, Any]], who: Identity) -> int:
    statement = sql.SQL("UPDATE {} SET {} WHERE {}").format(
        sql.Identifier(model._meta.db_table), set_clause(columns), matches(columns)
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, {"pattern": who.pattern, "pseudonym": who.pseudonym})
        return int(cursor.rowcount)


def _is_text(field: models.Field[Any, Any]) -> bool:
    if isinstance(field, ArrayField):
        field = field.base_field
    return isinstance(field, (models.CharField, models.TextField, models.JSONField, models.FileField))


def matches(columns: Iterable[models.Field[Any, Any]]) -> sql.Composed:
    """Return a condition that is true where one of the columns has a name; parameter ``pattern``."""
    plain = sql.SQL("{}::text ~* %(pattern)s")
    listed = sql.SQL("EXISTS (SELECT FROM unnest({}) AS one WHERE one::text ~* %(pattern)s)")
    parts: list[sql.Composable] = [
        (listed if isinstance(f, ArrayField) else plain).format(sql.Identifier(str(f.column)))
        for f in columns
    ]
    return sql.SQL(" OR ").join(parts)


def _replaced(field: models.Field[Any, Any]) -> sql.Composed:
    column = sql.Identifier(str(field.column))
    if isinstance(field, ArrayField):
        return sql.SQL(
            "CASE WHEN {c} IS NULL THEN NULL ELSE ARRAY(SELECT regexp_replace(one, %(pattern)s, %(pseudonym)s, 'gi') "
            "FROM unnest({c}) WITH ORDINALITY AS o (one, n) ORDER BY n) END"
        ).format(c=column)
    if isinstance(field, models.JSONField):
        return sql.SQL("regexp_replace({}::text, %(pattern)s, %(pseudonym)s, 'gi')::jsonb").format(column)
    width = field.max_length
    replaced = sql.SQL("regexp_replace({}, %(pattern)s, %(pseudonym)s, 'gi')").format(column)
    return sql.SQL("left({}, {})").format(replaced, sql.Literal(width)) if width else replaced
