"""Make all tables of an empty database at once, as all migrations together leave them.

Step by step, Django renders the models anew after each change, with all that refer to one another: 7,200 times for 150
models, which all know the tenant. Nobody has rows yet that a step in between would have to keep, so the models are
rendered once, in their last state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.contrib.postgres.operations import CreateCollation, CreateExtension
from django.db import transaction
from django.db.migrations import Migration, SeparateDatabaseAndState
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.operations.base import Operation
from django.db.migrations.operations.fields import FieldOperation
from django.db.migrations.operations.models import IndexOperation, ModelOperation
from django.db.migrations.state import ProjectState

from tenancy.upgrades.operations import DropKeyIndexesConcurrently

_OF_TABLES = (ModelOperation, FieldOperation, IndexOperation, DropKeyIndexesConcurrently)
"""What these do is in the last state of the models."""
_BEFORE_TABLES = (CreateExtension, CreateCollation)


def make_from_empty(connection: Any, targets: Sequence[tuple[str, str | None]] | None = None) -> int:
    """Make the tables of a database without any, run what else its migrations do, and record them: all or nothing.

    SQL and code of the migrations run in their order once all tables are there; those marked ``elidable``, which only
    concern rows or tables of before, do not run.

    Args:
        connection: as the role that will own the tables.
        targets: the last migrations, as Django's executor takes them; by default all there are.

    Returns:
        how many migrations that were; 0 where the database has tables already, or nothing is to be made.

    Raises:
        DatabaseError: as of the statement that failed, with a note of the migration; the database is still empty.
    """
    if connection.introspection.table_names():
        return 0
    executor = MigrationExecutor(connection)
    every = executor.loader.graph.leaf_nodes()
    wanted = {m for m, _ in executor.migration_plan(every if targets is None else targets)}
    migrations = [m for m, _ in executor.migration_plan(every) if m in wanted]
    steps = [(m, one) for m in migrations for one in _in_database(m.operations)]
    # Of the tables, which may have a column that the models have forgotten: it goes one release after them.
    state = ProjectState(real_apps=executor.loader.unmigrated_apps)
    for migration, step in steps:
        if isinstance(step, _OF_TABLES):
            step.state_forwards(migration.app_label, state)
    with transaction.atomic(using=connection.alias):
        with connection.schema_editor() as editor:
            for migration, step in steps:
                if isinstance(step, _BEFORE_TABLES):
                    _run(migration, step, state, editor)
            for key in state.models:
                model = state.apps.get_model(*key)
                if Operation().allow_migrate_model(connection.alias, model):
                    editor.create_model(model)
        with (
            connection.schema_editor() as editor
        ):  # the first one has now added what tables need of each other
            for migration, step in steps:
                if not isinstance(step, (*_OF_TABLES, *_BEFORE_TABLES)) and not step.elidable:
                    _run(migration, step, state, editor)
        executor.recorder.ensure_schema()
        executor.recorder.migration_qs.bulk_create(
            executor.recorder.Migration(app=m.app_label, name=m.name) for m in migrations
        )
    return len(migrations)


def _in_database(operations: Iterable[Operation]) -> Iterator[Operation]:
    for operation in operations:
        if isinstance(operation, SeparateDatabaseAndState):
            yield from _in_database(operation.database_operations)
        else:
            yield operation


def _run(migration: Migration, step: Operation, state: ProjectState, editor: Any) -> None:
    try:
        step.database_forwards(migration.app_label, editor, state, state)
    except Exception as error:
        error.add_note(
            f"In {migration}, {step.describe()}: an empty database has its tables in their last state already when this "
            "runs. Mark it elidable=True if it only concerns what was there before."
        )
        raise
