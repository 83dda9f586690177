"""Needless indexes of foreign keys go while people work, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError, NotSupportedError, connection, migrations, models
from django.db.migrations.state import ModelState, ProjectState

from tenancy.database.base import as_login_role
from tenancy.upgrades.operations import DropKeyIndexesConcurrently

pytestmark = pytest.mark.django_db(transaction=True)
KEY = ("id", models.BigAutoField(primary_key=True))
WIDE = models.Index(fields=["room", "title"], name="by_room")


def _reference(**options: Any) -> Any:
    return models.ForeignKey("shelf.Room", models.CASCADE, related_name="+", **options)


@pytest.fixture
def state() -> Iterator[ProjectState]:
    found = ProjectState()
    found.add_model(ModelState("shelf", "Room", [KEY]))
    fields = [
        KEY,
        ("title", models.TextField()),
        ("room", _reference()),
        ("second", _reference(db_column="other")),
    ]
    found.add_model(ModelState("shelf", "Book", fields, {"indexes": [WIDE]}))
    options = {"db_table": "shelf_papers", "indexes": [models.Index(fields=["room", "id"], name="papers")]}
    found.add_model(ModelState("shelf", "Paper", [KEY, ("room", _reference())], options))
    with as_login_role():
        with connection.schema_editor() as editor:
            for name in ("Room", "Book", "Paper"):
                editor.create_model(found.apps.get_model("shelf", name))
        yield found
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE shelf_book, shelf_papers, shelf_room")


DROP = DropKeyIndexesConcurrently({"book": ["room", "second"], "paper": ["room"]})


def _run(before: ProjectState, *, backwards: bool = False, atomic: bool = False) -> list[str]:
    """Run the operation; return the statements that it sent about indexes."""
    after, sent = before.clone(), []
    DROP.state_forwards("shelf", after)

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if " INDEX " in str(sql):
            sent.append(str(sql))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note), connection.schema_editor(atomic=atomic) as editor:
        if backwards:
            DROP.database_backwards("shelf", editor, after, before)
        else:
            DROP.database_forwards("shelf", editor, before, after)
    return sent


def _indexes() -> dict[str, bool]:
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT pg_get_indexdef(indexrelid), indisvalid FROM pg_index WHERE NOT indisprimary
               AND indrelid = ANY (ARRAY['shelf_book', 'shelf_papers']::regclass[])"""
        )
        return {
            text.partition(" ON public.")[2].replace(" USING btree", ""): v for text, v in cursor.fetchall()
        }


WITH_ROOM = "shelf_book (room_id)"
ALL = {
    WITH_ROOM: True,
    "shelf_book (other)": True,
    "shelf_book (room_id, title)": True,
    "shelf_papers (room_id)": True,
    "shelf_papers (room_id, id)": True,
}
NEEDED = {name: True for name in ALL if name not in {WITH_ROOM, "shelf_papers (room_id)"}}


def _filled() -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO shelf_room DEFAULT VALUES RETURNING id")
        (room,) = cursor.fetchone()
        cursor.executemany(
            "INSERT INTO shelf_book (title, room_id, other) VALUES ('Sums', %s, %s)", [(room, room)] * 2
        )


def test_indexes_go_that_another_one_makes_needless(state: ProjectState) -> None:
    assert _indexes() == ALL
    (sent,) = _run(state)
    assert sent.count("shelf_book_room_id") == sent.count("shelf_papers_room_id") == 1
    assert _indexes() == NEEDED
    assert _run(state) == []
    assert len(_run(state, backwards=True)) == 2
    assert _indexes() == ALL
    assert len(_run(state, backwards=True)) == 0


def test_those_of_a_table_with_rows_go_concurrently(state: ProjectState) -> None:
    _filled()
    papers, book = _run(state)
    assert papers.startswith('DROP INDEX "shelf_papers_room_id')
    assert book.startswith('DROP INDEX CONCURRENTLY "shelf_book_room_id')
    assert _indexes() == NEEDED
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("0",)


def test_an_index_stays_while_the_one_that_would_replace_it_is_not_whole(state: ProjectState) -> None:
    _filled()
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX by_room")
        with pytest.raises(IntegrityError):
            cursor.execute("CREATE UNIQUE INDEX CONCURRENTLY broken ON shelf_book (room_id, title)")
    _run(state)
    assert _indexes()[WITH_ROOM]


def test_a_build_backwards_that_failed_is_done_again(state: ProjectState) -> None:
    _run(state)
    _filled()
    editor: Any = connection.schema_editor()
    name = editor._create_index_name("shelf_book", ["room_id"])
    with connection.cursor() as cursor, pytest.raises(IntegrityError):
        cursor.execute(f'CREATE UNIQUE INDEX CONCURRENTLY "{name}" ON shelf_book (room_id)')
    assert _indexes()[WITH_ROOM] is False
    _run(state, backwards=True)
    assert _indexes() == ALL


def test_it_refuses_a_transaction(state: ProjectState) -> None:
    for backwards in (False, True):
        with pytest.raises(NotSupportedError):
            _run(state, backwards=backwards, atomic=True)
    assert _indexes() == ALL


@pytest.mark.parametrize("is_rendered", [True, False], ids=["rendered", "plain"])
def test_later_migrations_know_that_the_key_has_no_index(state: ProjectState, is_rendered: bool) -> None:
    after = state.clone()
    if not is_rendered:
        after.__dict__.pop("apps")
    DROP.state_forwards("shelf", after)
    assert not after.models["shelf", "book"].fields["room"].db_index
    assert state.models["shelf", "book"].fields["room"].db_index
    _run(state)
    again = migrations.AlterField("book", "room", _reference())
    last = after.clone()
    again.state_forwards("shelf", last)
    with connection.schema_editor() as editor:
        again.database_forwards("shelf", editor, after, last)
    assert _indexes()[WITH_ROOM]
