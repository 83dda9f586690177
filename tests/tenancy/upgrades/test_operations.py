"""Indexes that are built while people work: the same as Django's, and built again after a build that was killed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError, NotSupportedError, connection, migrations, models
from django.db.migrations.state import ModelState, ProjectState

from tenancy.database.base import as_login_role
from tenancy.upgrades.operations import AddIndexConcurrently, AddUniqueConcurrently

pytestmark = pytest.mark.django_db(transaction=True)

UNIQUES = [
    models.UniqueConstraint(fields=["title"], name="one"),
    models.UniqueConstraint(fields=["title", "pages"], name="one", nulls_distinct=False),
    models.UniqueConstraint(fields=["title"], name="one", deferrable=models.Deferrable.DEFERRED),
    models.UniqueConstraint(fields=["title"], name="one", condition=models.Q(pages__gt=3)),
    models.UniqueConstraint(fields=["title"], name="one", include=["pages"]),
]


@pytest.fixture
def state() -> Iterator[ProjectState]:
    found = ProjectState()
    fields: list[tuple[str, models.Field[Any, Any]]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("title", models.TextField()),
        ("pages", models.IntegerField(null=True)),
    ]
    found.add_model(ModelState("shelf", "Book", fields))
    with as_login_role():
        with connection.schema_editor() as editor:
            editor.create_model(found.apps.get_model("shelf", "Book"))
        yield found
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE shelf_book")


def run(operation: Any, state: ProjectState, atomic: bool = False) -> None:
    after = state.clone()
    operation.state_forwards("shelf", after)
    with connection.schema_editor(atomic=atomic) as editor:
        operation.database_forwards("shelf", editor, state, after)


def schema() -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'shelf_book'::regclass ORDER BY 1"
        )
        constraints = cursor.fetchall()
        cursor.execute(
            "SELECT pg_get_indexdef(indexrelid), indisvalid FROM pg_index "
            "WHERE indrelid = 'shelf_book'::regclass ORDER BY 1"
        )
        return constraints, cursor.fetchall()


def insert(*titles: str) -> None:
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO shelf_book (title, pages) VALUES (%s, 5)", [[t] for t in titles])


@pytest.mark.parametrize("constraint", UNIQUES, ids=["plain", "nulls", "deferred", "condition", "include"])
def test_it_is_the_constraint_that_django_adds(
    constraint: models.UniqueConstraint, state: ProjectState
) -> None:
    plain = migrations.AddConstraint("book", constraint)
    run(plain, state, atomic=True)
    expected = schema()
    with connection.cursor() as cursor:
        has_constraint = constraint.condition is None and not getattr(constraint, "include", ())
        cursor.execute(
            "ALTER TABLE shelf_book DROP CONSTRAINT one" if has_constraint else "DROP INDEX one",
        )
    run(AddUniqueConcurrently("book", constraint), state)
    assert schema() == expected
    # Killed between the last statement and its mark in the history, it is run again.
    run(AddUniqueConcurrently("book", constraint), state)
    assert schema() == expected


def test_a_build_that_failed_is_done_again(state: ProjectState) -> None:
    insert("Sums", "Sums")
    unique = AddUniqueConcurrently("book", UNIQUES[0])
    with pytest.raises(IntegrityError):
        run(unique, state)
    assert [valid for text, valid in schema()[1] if "one" in text] == [False]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM shelf_book WHERE id = (SELECT min(id) FROM shelf_book)")
    run(unique, state)
    assert [valid for text, valid in schema()[1] if "one" in text] == [True]
    with pytest.raises(IntegrityError):
        insert("Sums")


def test_an_index_that_is_not_valid_is_built_again(state: ProjectState) -> None:
    insert("Sums", "Sums")
    with connection.cursor() as cursor, pytest.raises(IntegrityError):
        cursor.execute("CREATE UNIQUE INDEX CONCURRENTLY by_title ON shelf_book (title)")
    operation = AddIndexConcurrently("book", models.Index(fields=["title"], name="by_title"))
    run(operation, state)
    found = [(text, valid) for text, valid in schema()[1] if "by_title" in text]
    assert [valid for _, valid in found] == [True]
    assert "UNIQUE" not in found[0][0]
    run(operation, state)
    assert [(text, valid) for text, valid in schema()[1] if "by_title" in text] == found


def test_both_refuse_a_transaction(state: ProjectState) -> None:
    for operation in (
        AddIndexConcurrently("book", models.Index(fields=["title"], name="by_title")),
        AddUniqueConcurrently("book", UNIQUES[0]),
    ):
        with pytest.raises(NotSupportedError):
            run(operation, state, atomic=True)


def test_it_can_be_taken_back_and_is_described(state: ProjectState) -> None:
    operation = AddUniqueConcurrently("book", UNIQUES[0])
    before = schema()
    run(operation, state)
    after = state.clone()
    operation.state_forwards("shelf", after)
    with connection.schema_editor(atomic=False) as editor:
        operation.database_backwards("shelf", editor, after, state)
    assert schema() == before
    assert operation.describe() == "Concurrently create constraint one on model book"
