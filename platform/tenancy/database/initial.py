"""The first migration of an app that comes to a database in use: all its tables from one rendering of the models.

Django renders the models again after each operation, and with them all that refer to one another: as all know the
tenant, 3,100 times for the ten tables of the app ``sso``. An empty database is made by ``tenancy.database.from_empty``.
"""

from __future__ import annotations

from typing import Any

from django.db.migrations import AddConstraint, AddField, AddIndex, Migration
from django.db.migrations.state import ProjectState


class InitialMigration(Migration):
    """A migration that makes tables where there are none.

    Its operations are plain ones, read and reversed as ever. Only forwards are the models brought to their last state
    first, and each table made as it is then; fields, indexes and constraints that were added for the sake of the order
    are in it already.
    """

    initial = True

    def apply(
        self, project_state: ProjectState, schema_editor: Any, collect_sql: bool = False
    ) -> ProjectState:
        """Run the operations; arguments, result and errors are those of Django's own."""
        before = project_state.clone()
        project_state.__dict__.pop(
            "apps", None
        )  # without rendered models a change of the state costs nothing
        for operation in self.operations:
            operation.state_forwards(self.app_label, project_state)
        for operation in self.operations:
            if not isinstance(operation, AddField | AddIndex | AddConstraint):
                operation.database_forwards(self.app_label, schema_editor, before, project_state)
        return project_state
