"""An empty database gets its tables at once, and they are those that all migrations would leave one after the other."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@contextmanager
def _empty(name: str) -> Iterator[str]:
    """Let this process work on a new, empty database meanwhile; its name."""
    before = str(connection.settings_dict["NAME"])
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    _work_on(name)
    try:
        yield name
    finally:
        _work_on(before)
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")


@pytest.fixture
def empty() -> Iterator[str]:
    with _empty(f"groundwork_empty_{os.getpid()}") as name:
        yield name


def _work_on(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name


@dataclass(frozen=True)
class Made:
    """What ``migrate`` did to an empty database."""

    counts: Counter[str]
    applied: set[tuple[str, str]]
    said: str
    schema: list[str]


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: Any) -> Made:
    """Migrate an empty database; count how often models are rendered, and statements."""
    counts: Counter[str] = Counter()
    render = ModelState.render

    def rendered(self: ModelState, *args: Any) -> Any:
        counts["renders"] += 1
        return render(self, *args)

    def run(execute: Any, *args: Any) -> Any:
        counts["statements"] += 1
        return execute(*args)

    said = StringIO()
    with django_db_blocker.unblock(), _empty(f"groundwork_made_{os.getpid()}") as name:
        with pytest.MonkeyPatch.context() as patch, connection.execute_wrapper(run):
            patch.setattr(ModelState, "render", rendered)
            call_command("migrate", verbosity=1, stdout=said)
        applied = set(MigrationRecorder(connection).applied_migrations())
        return Made(counts, applied, said.getvalue(), dumped(name))


def test_models_are_rendered_once_to_make_tables_and_once_for_what_follows(made: Made) -> None:
    assert 0 < made.counts["renders"] <= 2 * len(apps.get_models(include_auto_created=True))
    assert 0 < made.counts["statements"] <= STATEMENTS
    assert made.applied == set(MigrationLoader(None).disk_migrations)


def test_it_says_what_it_did(made: Made) -> None:
    count = len(MigrationLoader(None).graph.nodes)
    assert f"Empty database: made its tables as all {count} migrations leave them." in made.said
    assert "No migrations to apply." in made.said


def test_the_schema_is_that_of_all_migrations_one_after_the_other(made: Made, empty: str) -> None:
    with as_login_role():
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
    call_command("migrate", verbosity=0)  # the walls
    step_by_step = dumped(empty)
    assert len(step_by_step) > 1000
    assert made.schema == step_by_step


def webhooks_made(monkeypatch: pytest.MonkeyPatch, *steps: Any) -> int:
    """Make the tables of webhooks and of what they refer to; their last migration does something else as well."""
    loader = MigrationLoader(None)
    ((app, name),) = loader.graph.leaf_nodes("webhooks")
    migration = type(loader.disk_migrations[app, name])
    monkeypatch.setattr(migration, "operations", [*migration.operations, *steps])
    with as_login_role():
        return make_from_empty(connection, [(app, name)])


def tables() -> list[str]:
    with connection.cursor() as cursor:
        return connection.introspection.table_names(cursor)


def columns() -> set[str]:
    with as_login_role(), connection.cursor() as cursor:
        return {c.name for c in connection.introspection.get_table_description(cursor, "webhooks_webhook")}


def test_what_fails_leaves_the_database_empty_and_names_its_migration(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProgrammingError, match="forgotten") as failed:
        webhooks_made(monkeypatch, migrations.RunSQL("UPDATE webhooks_webhook SET forgotten = 1"))
    assert "In webhooks.000" in failed.value.__notes__[0]
    assert "elidable=True" in failed.value.__notes__[0]
    assert tables() == []


def test_what_only_concerns_rows_of_before_is_left_out(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    past = migrations.RunSQL("UPDATE webhooks_webhook SET forgotten = 1", elidable=True)
    assert webhooks_made(monkeypatch, past) > 4
    assert "webhooks_webhook" in tables()


def test_a_column_that_models_have_forgotten_stays_until_its_own_migration(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers of the version before read it, and so does a backup: see "Writing a migration"."""
    added = migrations.AddField("webhook", "mood", models.TextField(null=True))
    gone = migrations.RemoveField("webhook", "mood")
    forgotten = migrations.SeparateDatabaseAndState(state_operations=[gone])
    assert webhooks_made(monkeypatch, added, forgotten) > 4
    assert "mood" in columns()


def test_a_column_is_gone_after_its_own_migration(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    added = migrations.AddField("webhook", "mood", models.TextField(null=True))
    gone = migrations.RemoveField("webhook", "mood")
    forgotten = migrations.SeparateDatabaseAndState(state_operations=[gone])
    dropped = migrations.SeparateDatabaseAndState(database_operations=[gone])
    assert webhooks_made(monkeypatch, added, forgotten, dropped) > 4
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
