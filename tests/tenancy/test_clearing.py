"""A deletion clears what refers to its rows: of each kind, by each way that rows go, and against what comes between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction

from apps.conversations.models import Conversation, Turn
from apps.evaluations.models import Assignment, Score
from tenancy.clearing import TRIES, paths_from
from tenancy.database.base import as_login_role
from tenancy.database.direct import direct_connection
from tenancy.fields import SET_NULL
from tenancy.row_security import row_security_apply, tenant_foreign_keys, tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tests.old_schema import keys_as_before
from tests.permissions.world import Side, make_row

CLEARED: list[Any] = [
    f for m in tenant_models() for f in tenant_foreign_keys(m) if f.db_on_delete == SET_NULL
]
DELETED = [f for f in CLEARED if not f.related_model.append_only]
PATHS = [(m, path) for m in tenant_models() for path in paths_from(m) if path[0]]


def refer(side: Side, field: Any) -> tuple[Any, Any]:
    """Make a row, and another one that refers to it and doesn't go with it by another way; both apart from each other."""
    target = make_row(field.related_model, side.tenant, side.user("owner"))
    row = make_row(field.model, side.tenant, side.user("owner"))
    with as_login_role():  # some of these rows may not be changed
        field.model.objects.filter(pk=row.pk).update(**{field.name: target})
    return target, row


def left(row: Any, field: Any) -> Any:
    return type(row).objects.values_list(field.attname, flat=True).get(pk=row.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("field", DELETED, ids=str)
@pytest.mark.parametrize("by", ["row", "queryset"])
def test_a_reference_is_cleared_when_its_row_goes(field: Any, by: str) -> None:
    side = Side()
    with tenant_scope(side.tenant.pk):
        target, row = refer(side, field)
        other = field.model.objects.exclude(pk=row.pk).filter(**{f"{field.name}__isnull": False})
        before = other.count()
        if by == "row":
            target.delete()
        else:
            assert field.related_model.objects.filter(pk=target.pk).delete()[0] >= 1
        assert left(row, field) is None
        assert other.count() == before


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("model", "path"), PATHS, ids=lambda p: str(p[-1]) if isinstance(p, tuple) else p.__name__
)
def test_a_reference_is_cleared_when_its_row_goes_with_another(model: Any, path: Any) -> None:
    side = Side()
    chain, field = path
    with tenant_scope(side.tenant.pk):
        target, row = refer(side, field)
        keys = [target.pk]
        for link in reversed(chain):
            keys = list(link.model.objects.filter(pk__in=keys).values_list(link.attname, flat=True))
        assert keys[0] is not None
        model.objects.filter(pk__in=keys).delete()
        assert not field.related_model.objects.filter(pk=target.pk).exists()
        assert left(row, field) is None


@pytest.mark.django_db
def test_a_deletion_across_workspaces_clears_in_each() -> None:
    sides = [Side(), Side()]
    field: Any = Conversation._meta.get_field("head")
    rows = []
    for side in sides:
        with tenant_scope(side.tenant.pk):
            rows.append(refer(side, field))
    with platform_scope():
        Turn.objects.filter(pk__in=[turn.pk for turn, _ in rows]).delete()
        assert [left(row, field) for _, row in rows] == [None, None]


@pytest.mark.django_db
def test_rows_that_may_not_be_changed_lose_a_reference_and_nothing_else() -> None:
    side = Side()
    with tenant_scope(side.tenant.pk):
        target, row = refer(side, Score._meta.get_field("assignment"))
        for change in ({"author": "other"}, {"name": "other"}):
            with pytest.raises(Exception, match="permission denied"), transaction.atomic():
                Score.objects.filter(pk=row.pk).update(**change)
        Assignment.objects.filter(pk=target.pk).delete()
        assert left(row, Score._meta.get_field("assignment")) is None


@pytest.mark.django_db
def test_a_statement_by_hand_that_forgets_to_clear_is_refused() -> None:
    side = Side()
    field: Any = Conversation._meta.get_field("head")
    with tenant_scope(side.tenant.pk):
        turn, row = refer(side, field)
        with pytest.raises(IntegrityError, match=r"conversation_head_id_wall"), transaction.atomic():  # noqa: SIM117
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM conversations_turn WHERE id = %s", [turn.pk])
        assert left(row, field) == turn.pk


@pytest.fixture
def between() -> Iterator[list[str]]:
    """Statements of another session, each run right before the next DELETE of turns."""
    waiting: list[str] = []
    with direct_connection() as session:
        session.execute("SET lock_timeout = '10s'")

        def watch(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
            if waiting and str(sql).startswith('DELETE FROM "conversations_turn"'):
                session.execute(waiting.pop(0))
            return execute(sql, params, many, context)

        with connection.execute_wrapper(watch):
            yield waiting


def others(side: Side, turn: Any, count: int) -> list[str]:
    """Return statements that each let another conversation refer to a turn."""
    found = [make_row(Conversation, side.tenant, side.user("owner")) for _ in range(count)]
    return [f"UPDATE conversations_conversation SET head_id = {turn.pk} WHERE id = {row.pk}" for row in found]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_inside", [False, True], ids=["alone", "in a transaction"])
def test_what_refers_to_a_row_after_it_was_cleared_is_cleared_too(
    between: list[str], is_inside: bool
) -> None:
    side = Side()
    field: Any = Conversation._meta.get_field("head")
    with tenant_scope(side.tenant.pk):
        turn, _ = refer(side, field)
        between += others(side, turn, 2)
        with transaction.atomic() if is_inside else nullcontext():
            Turn.objects.filter(pk=turn.pk).delete()
        assert between == []
        assert not Conversation.objects.filter(head_id=turn.pk).exists()


@pytest.mark.django_db(transaction=True)
def test_a_deletion_that_never_gets_clear_is_refused_whole(between: list[str]) -> None:
    side = Side()
    field: Any = Conversation._meta.get_field("head")
    with tenant_scope(side.tenant.pk):
        turn, row = refer(side, field)
        between += others(side, turn, TRIES)
        with pytest.raises(IntegrityError) as refused:
            Turn.objects.filter(pk=turn.pk).delete()
        assert isinstance(refused.value.__cause__, psycopg.errors.ForeignKeyViolation)
        assert left(row, field) == turn.pk


@pytest.mark.django_db(transaction=True)
def test_the_database_of_the_version_before_clears_by_itself() -> None:
    side = Side()
    field: Any = Conversation._meta.get_field("head")
    try:
        with as_login_role(), connection.cursor() as cursor:
            keys_as_before(cursor, "conversations_turn", "conversations_conversation")
        row_security_apply(connection)
        with tenant_scope(side.tenant.pk):
            turn, row = refer(side, field)
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM conversations_turn WHERE id = %s", [turn.pk])
            assert left(row, field) is None
    finally:
        row_security_apply(connection, contract=True)


def test_who_has_no_such_references_is_deleted_as_before() -> None:
    assert paths_from(Score) == ()
