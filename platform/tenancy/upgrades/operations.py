"""Operations for migrations that run while people work, and that can be run again after they were killed."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.postgres import operations as postgres
from django.db.migrations import AddConstraint
from django.db.migrations.state import ProjectState

from tenancy.upgrades.locks import waiting_long

_LEFT = """SELECT i.indisvalid, EXISTS (SELECT FROM pg_constraint n WHERE n.conindid = i.indexrelid)
           FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
           WHERE c.relname = %s AND c.relnamespace = current_schema()::regnamespace"""
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
    cursor.execute(_LEFT, [name])
    found = cursor.fetchone()
    return None if found is None else (bool(found[0]), bool(found[1]))
