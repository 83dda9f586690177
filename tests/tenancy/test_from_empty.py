"""An empty database gets its tables at once, and they are those that all migrations would leave one after the other."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import ProgrammingError, connection, migrations, models
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ModelState

from tenancy.database.base import as_login_role
from tenancy.database.from_empty import make_from_empty
from tests.old_schema import dumped

pytestmark = pytest.mark.django_db(transaction=True)

STATEMENTS = 2_500
"""So many at most make 150 tables with all walls; step by step it took 3,540."""


@pytest.fixture
def empty() -> Iterator[str]:
    """An empty database that this process works on; its name."""
    before = str(connection.settings_dict["NAME"])
    name = f"groundwork_empty_{os.getpid()}"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    _work_on(name)
    try:
        yield name
    finally:
        _work_on(before)
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")


def _work_on(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count how often models are rendered, and statements."""
    counts: Counter[str] = Counter()
    render = ModelState.render

    def rendered(self: ModelState, *args: Any) -> Any:
        counts["renders"] += 1
        return render(self, *args)

    def run(execute: Any, *args: Any) -> Any:
        counts["statements"] += 1
        return execute(*args)

    with monkeypatch.context() as patch, connection.execute_wrapper(run):
        patch.setattr(ModelState, "render", rendered)
        yield counts


def test_models_are_rendered_once_to_make_tables_and_once_for_what_follows(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(monkeypatch) as counts:
        call_command("migrate", verbosity=0)
    assert 0 < counts["renders"] <= 2 * len(apps.get_models(include_auto_created=True))
    assert 0 < counts["statements"] <= STATEMENTS
    assert set(MigrationRecorder(connection).applied_migrations()) == set(
        MigrationLoader(None).disk_migrations
    )


def test_the_schema_is_that_of_all_migrations_one_after_the_other(empty: str) -> None:
    with as_login_role():
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
    call_command("migrate", verbosity=0)  # the walls
    step_by_step = dumped(empty)
    assert len(step_by_step) > 1000
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {empty}_too")
    try:
        _work_on(f"{empty}_too")
        call_command("migrate", verbosity=0)
        at_once = dumped(f"{empty}_too")
    finally:
        _work_on(empty)
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {empty}_too")
    assert at_once == step_by_step


def last_steps(monkeypatch: pytest.MonkeyPatch, *steps: Any) -> None:
    """Let the last migration of webhooks do something else as well."""
    loader = MigrationLoader(None)
    ((app, name),) = loader.graph.leaf_nodes("webhooks")
    migration = type(loader.disk_migrations[app, name])
    monkeypatch.setattr(migration, "operations", [*migration.operations, *steps])


def tables() -> list[str]:
    with connection.cursor() as cursor:
        return connection.introspection.table_names(cursor)


def columns() -> set[str]:
    with as_login_role(), connection.cursor() as cursor:
        return {c.name for c in connection.introspection.get_table_description(cursor, "webhooks_webhook")}


def test_what_fails_leaves_the_database_empty_and_names_its_migration(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    last_steps(monkeypatch, migrations.RunSQL("UPDATE webhooks_webhook SET forgotten = 1"))
    with pytest.raises(ProgrammingError, match="forgotten") as failed:
        call_command("migrate", verbosity=0)
    assert "In webhooks.000" in failed.value.__notes__[0]
    assert "elidable=True" in failed.value.__notes__[0]
    assert tables() == []


def test_what_only_concerns_rows_of_before_is_left_out(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    last_steps(monkeypatch, migrations.RunSQL("UPDATE webhooks_webhook SET forgotten = 1", elidable=True))
    call_command("migrate", verbosity=0)
    assert "webhooks_webhook" in tables()


def test_a_column_that_models_have_forgotten_stays_until_its_own_migration(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers of the version before read it, and so does a backup: see "Writing a migration"."""
    added = migrations.AddField("webhook", "mood", models.TextField(null=True))
    gone = migrations.RemoveField("webhook", "mood")
    last_steps(monkeypatch, added, migrations.SeparateDatabaseAndState(state_operations=[gone]))
    with as_login_role():
        assert make_from_empty(connection) > 90
    assert "mood" in columns()


def test_a_column_is_gone_after_its_own_migration(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    added = migrations.AddField("webhook", "mood", models.TextField(null=True))
    gone = migrations.RemoveField("webhook", "mood")
    last_steps(
        monkeypatch,
        added,
        migrations.SeparateDatabaseAndState(state_operations=[gone]),
        migrations.SeparateDatabaseAndState(database_operations=[gone]),
    )
    with as_login_role():
        assert make_from_empty(connection) > 90
    assert "mood" not in columns()


def test_a_database_with_a_table_is_left_to_the_migrations(empty: str) -> None:
    with as_login_role():
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE of_others (id int)")
        assert make_from_empty(connection) == 0
    assert tables() == ["of_others"]


def test_only_the_wanted_migrations_are_made_and_the_rest_follows(empty: str) -> None:
    with as_login_role():
        assert make_from_empty(connection, [("webhooks", "0001_initial")]) == 4
    assert "previous_secret_encrypted" not in columns()
    said = StringIO()
    call_command("migrate", "webhooks", verbosity=1, stdout=said)
    assert "Applying webhooks.0002_previous_secret... OK" in said.getvalue()
    assert "previous_secret_encrypted" in columns()


def test_it_says_what_it_did(empty: str) -> None:
    said = StringIO()
    call_command("migrate", verbosity=1, stdout=said)
    count = len(MigrationLoader(None).graph.nodes)
    assert f"Empty database: made its tables as all {count} migrations leave them." in said.getvalue()
    assert "No migrations to apply." in said.getvalue()
