"""Operations for migrations that run while people work, and that can be run again after they were killed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.contrib.postgres import operations as postgres
from django.db.migrations import AddConstraint
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from tenancy.redundant_indexes import redundant_indexes
from tenancy.upgrades.locks import waiting_long

_LEFT = """SELECT c.relname, i.indisvalid, EXISTS (SELECT FROM pg_constraint n WHERE n.conindid = i.indexrelid)
           FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
           WHERE c.relname = ANY(%s) AND c.relnamespace = current_schema()::regnamespace"""
_UNIQUE = re.compile(
    r"ALTER TABLE (?P<table>\S+) ADD CONSTRAINT (?P<name>\S+) UNIQUE(?P<nulls>(?: NULLS \w+ ?\w*)?) "
    r"(?P<columns>\([^)]*\))(?P<when>.*)"
)


class AddIndexConcurrently(postgres.AddIndexConcurrently):
    """Builds an index while rows are read and written; its migration has ``atomic = False`` and nothing else.

    A build that was killed, or waited too long for an old transaction, leaves an index that isn't valid: Django's
    operation would stop at its name. This one drops it and builds again, and leaves alone one that was finished.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Build the index; arguments and errors are those of Django's own."""
        self._ensure_not_in_transaction(schema_editor)
        with waiting_long(schema_editor.connection):
            if not _is_built(schema_editor, self.index.name)[0]:
                super().database_forwards(app_label, schema_editor, from_state, to_state)


class AddUniqueConcurrently(postgres.NotInTransactionMixin, AddConstraint):
    """Adds a ``UniqueConstraint`` whose index is built while rows are read and written.

    Its migration has ``atomic = False`` and nothing else. It can be run again, as ``AddIndexConcurrently`` can.
    """

    atomic = False

    def describe(self) -> str:
        """Return what it does, for ``migrate --plan``."""
        return f"Concurrently create constraint {self.constraint.name} on model {self.model_name}"

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Build the index, and make it the constraint's.

        Raises:
            NotSupportedError: the migration is atomic.
            IntegrityError: rows break the constraint; nothing stays that the next run would stumble over.
        """
        self._ensure_not_in_transaction(schema_editor)
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        said = str(self.constraint.create_sql(model, schema_editor))
        found = _UNIQUE.fullmatch(said)
        index = said
        if found:
            index = (
                f"CREATE UNIQUE INDEX {found['name']} ON {found['table']} {found['columns']}{found['nulls']}"
            )
        with waiting_long(schema_editor.connection):
            is_valid, is_constraint = _is_built(schema_editor, self.constraint.name)
            if not is_valid:
                schema_editor.execute(
                    index.replace("CREATE UNIQUE INDEX", "CREATE UNIQUE INDEX CONCURRENTLY", 1)
                )
        if found and not is_constraint:
            schema_editor.execute(
                f"ALTER TABLE {found['table']} ADD CONSTRAINT {found['name']} UNIQUE USING INDEX {found['name']}"
                f"{found['when']}"
            )


class DropKeyIndexesConcurrently(postgres.NotInTransactionMixin, Operation):
    """Gives foreign keys ``db_index=False``, and drops their indexes while rows are read and written.

    Its migration has ``atomic = False`` and nothing else. It can be run again after it was killed, and leaves an index alone that
    isn't needless in this database. Django's AlterField would lock the tables, and render the models once for each key.

    Args:
        keys: names of fields, by the name of their model.
    """

    reversible = True

    def __init__(self, keys: Mapping[str, Sequence[str]]) -> None:
        self.keys = keys

    def deconstruct(self) -> Any:
        """Return how to make it again, as Django asks."""
        return type(self).__qualname__, [self.keys], {}

    def describe(self) -> str:
        """Return what it does, for ``migrate --plan``."""
        return "Concurrently drop indexes of foreign keys: " + ", ".join(
            f"{model}.{name}" for model, names in self.keys.items() for name in names
        )

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Note that the keys have no index; nothing else in rendered models knows of it, so they stay."""
        rendered = state.__dict__.get("apps")
        for model, names in self.keys.items():
            fields = state.models[app_label, model].fields
            for name in names:
                fields[name] = fields[name].clone()
                fields[name].db_index = False
                if rendered:
                    rendered.get_model(app_label, model)._meta.get_field(name).db_index = False

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Drop the indexes, those of tables without rows in one statement.

        Raises:
            NotSupportedError: the migration is atomic.
        """
        self._ensure_not_in_transaction(schema_editor)
        quote = schema_editor.connection.ops.quote_name
        wanted = set(self._columns(app_label, to_state))
        with schema_editor.connection.cursor() as cursor:
            spare = [r for r in redundant_indexes(cursor) if (r.table, r.columns) in wanted]
            filled = {table for table in {r.table for r in spare} if has_rows(cursor, table)}
        if empty := [quote(r.name) for r in spare if r.table not in filled]:
            schema_editor.execute(f"DROP INDEX {', '.join(empty)}")
        with waiting_long(schema_editor.connection):
            for index in (r for r in spare if r.table in filled):
                schema_editor.execute(f"DROP INDEX CONCURRENTLY {quote(index.name)}")

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        """Build the indexes again, under the names that Django gave them.

        Raises:
            NotSupportedError: the migration is atomic.
        """
        self._ensure_not_in_transaction(schema_editor)
        quote = schema_editor.connection.ops.quote_name
        with waiting_long(schema_editor.connection):
            for table, (column,) in self._columns(app_label, from_state):
                name = schema_editor._create_index_name(table, [column])
                if not _is_built(schema_editor, name)[0]:
                    schema_editor.execute(
                        f"CREATE INDEX CONCURRENTLY {quote(name)} ON {quote(table)} ({quote(column)})"
                    )

    def _columns(self, app_label: str, state: ProjectState) -> Iterator[tuple[str, tuple[str]]]:
        for model, names in self.keys.items():
            known = state.models[app_label, model]
            for name in names:
                column = known.fields[name].db_column or f"{name}_id"
                yield str(known.options.get("db_table") or f"{app_label}_{model}"), (column,)


def _is_built(schema_editor: Any, name: str) -> tuple[bool, bool]:
    """Tell whether an index is there and valid, and whether it is a constraint's; one that isn't valid is dropped."""
    with schema_editor.connection.cursor() as cursor:
        found = index_left(cursor, name)
    if found is None:
        return False, False
    if not found[0]:
        schema_editor.execute(f"DROP INDEX CONCURRENTLY {schema_editor.connection.ops.quote_name(name)}")
        return False, False
    return True, found[1]


def index_left(cursor: Any, name: str) -> tuple[bool, bool] | None:
    """Return whether an index of this name is valid and whether it is a constraint's; None when there is none."""
    return indexes_left(cursor, [name]).get(name)


def indexes_left(cursor: Any, names: Sequence[str]) -> dict[str, tuple[bool, bool]]:
    """Return the same for each of the names that is an index's."""
    cursor.execute(_LEFT, [list(names)])
    return {
        name: (bool(is_valid), bool(is_constraint)) for name, is_valid, is_constraint in cursor.fetchall()
    }


def has_rows(cursor: Any, table: str) -> bool:
    """Tell whether a table has, or had, rows: statements that read all of it take time then."""
    cursor.execute("SELECT pg_relation_size(%s::regclass) > 0", [f'public."{table}"'])
    return bool(cursor.fetchone()[0])


def tables_with_rows(cursor: Any) -> set[str]:
    """Return all tables of which ``has_rows`` would say so."""
    cursor.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' "
        "AND pg_relation_size(oid) > 0"
    )
    return {name for (name,) in cursor.fetchall()}
