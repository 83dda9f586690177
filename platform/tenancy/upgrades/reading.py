"""Reads the operations of a migration: what each does to a table that is in use.

The operations are Django's (its schema editor for PostgreSQL says which statements they become) and
``tenancy.upgrades.operations``. One that isn't known is a finding, never a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

from django.contrib.postgres import operations as postgres
from django.db import models
from django.db.migrations import Migration, RunPython
from django.db.migrations import operations as plain
from django.db.migrations.state import ProjectState

from tenancy.upgrades import operations as ours
from tenancy.upgrades.columns import CONCURRENTLY, CONTRACT, EXPAND, column_added, column_altered, has_default
from tenancy.upgrades.effects import Effect, Lock, Mark, Work
from tenancy.upgrades.statements import statements_read


class Reader:
    """Goes through the operations of one migration, with the models as they are before each.

    Args:
        migration: what is read.
        state: the models before it; changed to those after it.
    """

    def __init__(self, migration: Migration, state: ProjectState) -> None:
        self.app = migration.app_label
        self.migration = migration
        self.state = state
        self.new_tables: set[str] = set()
        self._not_valid: set[str] = set()

    def read(self) -> list[Effect]:
        """Return what the operations do, the first one first."""
        found: list[Effect] = []
        for operation in self.migration.operations:
            for effect in self._operation(operation):
                if effect.table and effect.table in self.new_tables:
                    effect = replace(effect, is_new=True, problem="", instead="")
                found.append(effect)
            operation.state_forwards(self.app, self.state)
        return [*found, *self._whole(found)]

    def _whole(self, found: list[Effect]) -> Iterator[Effect]:
        """Yield what is wrong with the migration itself, whatever its steps are."""
        changing = [e for e in found if e.lock]
        if any(e.mark is Mark.CONTRACT and e.problem for e in found) and any(
            e.lock and e.mark is not Mark.CONTRACT for e in found
        ):
            yield Effect(
                "contract",
                problem="it removes and adds in one step, so that it is too early for the one or too late for the other",
                instead="Put what it removes into a migration of its own.",
            )
        if not self.migration.atomic and len(changing) > 1:
            yield Effect(
                "atomic = False",
                problem="killed between two steps, it could not be run again",
                instead="One step in each migration that is not atomic.",
            )

    def table(self, model: str) -> str:
        """Return the table of a model of this app, by its name in any case."""
        known = self.state.models.get((self.app, model.lower()))
        return str((known.options.get("db_table") if known else "") or f"{self.app}_{model.lower()}")

    def _operation(self, operation: Any) -> Iterator[Effect]:
        for kind in type(operation).__mro__:
            if read := _READERS.get(kind):
                yield from read(self, operation)
                return
        yield Effect(
            type(operation).__name__,
            problem="it isn't known what this operation locks",
            instead="Give the reason in `explained`: what it locks, and for how long.",
        )

    def _field(self, model: str, name: str) -> models.Field[Any, Any]:
        return cast("models.Field[Any, Any]", self.state.models[self.app, model.lower()].fields[name])

    # --- tables

    def create_model(self, operation: plain.CreateModel) -> Iterator[Effect]:
        table = str(operation.options.get("db_table") or f"{self.app}_{operation.name_lower}")
        if operation.options.get("managed", True) and not operation.options.get("proxy"):
            self.new_tables.add(table)
            yield Effect(f"CreateModel {operation.name_lower}", table)

    def delete_model(self, operation: plain.DeleteModel) -> Iterator[Effect]:
        yield Effect(
            f"DeleteModel {operation.name_lower}",
            self.table(operation.name),
            Lock.ACCESS_EXCLUSIVE,
            problem="servers of the version before still read and write this table",
            instead=CONTRACT,
            mark=Mark.CONTRACT,
        )

    def rename_model(self, operation: plain.RenameModel) -> Iterator[Effect]:
        known = self.state.models.get((self.app, operation.old_name_lower))
        if known and known.options.get("db_table"):
            return  # its table keeps the name it was given
        yield Effect(
            f"RenameModel {operation.old_name_lower}",
            self.table(operation.old_name),
            Lock.ACCESS_EXCLUSIVE,
            problem="servers of the version before use the old name",
            instead="Keep the table: give the model db_table first.",
        )

    def rename_table(self, operation: plain.AlterModelTable) -> Iterator[Effect]:
        before = self.table(operation.name)
        if (operation.table or f"{self.app}_{operation.name_lower}") != before:
            yield Effect(
                f"AlterModelTable {operation.name_lower}",
                before,
                Lock.ACCESS_EXCLUSIVE,
                problem="servers of the version before use the old name",
                instead=EXPAND,
            )

    # --- columns

    def add_field(self, operation: plain.AddField) -> Iterator[Effect]:
        yield column_added(
            f"AddField {operation.model_name_lower}.{operation.name}",
            self.table(operation.model_name),
            operation.field,
        )

    def remove_field(self, operation: plain.RemoveField) -> Iterator[Effect]:
        yield Effect(
            f"RemoveField {operation.model_name_lower}.{operation.name}",
            self.table(operation.model_name),
            Lock.ACCESS_EXCLUSIVE,
            problem="servers of the version before name this column in every statement",
            instead=CONTRACT,
            mark=Mark.CONTRACT,
        )

    def rename_field(self, operation: plain.RenameField) -> Iterator[Effect]:
        if self._field(operation.model_name, operation.old_name).db_column:
            return  # the column keeps the name it was given
        yield Effect(
            f"RenameField {operation.model_name_lower}.{operation.old_name}",
            self.table(operation.model_name),
            Lock.ACCESS_EXCLUSIVE,
            problem="servers of the version before use the old name",
            instead="Keep the column: give the field db_column.",
        )

    def alter_field(self, operation: plain.AlterField) -> Iterator[Effect]:
        step = f"AlterField {operation.model_name_lower}.{operation.name}"
        before = self._field(operation.model_name, operation.name)
        for lock, work, problem, instead in column_altered(operation.name, before, operation.field):
            yield Effect(step, self.table(operation.model_name), lock, work, problem=problem, instead=instead)

    def order(self, operation: plain.AlterOrderWithRespectTo) -> Iterator[Effect]:
        yield Effect(
            f"AlterOrderWithRespectTo {operation.name_lower}",
            self.table(operation.name),
            Lock.ACCESS_EXCLUSIVE,
            problem="it adds a column that servers of the version before don't fill",
            instead="Add a field of your own with a database default.",
        )

    # --- indexes and constraints

    def add_index(self, operation: plain.AddIndex) -> Iterator[Effect]:
        yield Effect(
            f"AddIndex {operation.model_name}.{operation.index.name}",
            self.table(operation.model_name),
            Lock.SHARE,
            Work.INDEX,
            problem="writes wait until the index is built",
            instead=CONCURRENTLY,
        )

    def add_index_concurrently(self, operation: postgres.AddIndexConcurrently) -> Iterator[Effect]:
        wrong, instead = "", ""
        if not isinstance(operation, ours.AddIndexConcurrently):
            wrong, instead = "killed midway, it could not be run again", CONCURRENTLY
        elif self.migration.atomic:
            wrong, instead = (
                "an index can't be built concurrently in a transaction",
                "Set atomic = False in this migration.",
            )
        step = f"AddIndexConcurrently {operation.model_name}.{operation.index.name}"
        yield Effect(
            step,
            self.table(operation.model_name),
            Lock.SHARE_UPDATE_EXCLUSIVE,
            Work.INDEX,
            problem=wrong,
            instead=instead,
        )

    def remove_index(self, operation: plain.RemoveIndex) -> Iterator[Effect]:
        is_concurrent = isinstance(operation, postgres.RemoveIndexConcurrently)
        yield Effect(
            f"RemoveIndex {operation.model_name}.{operation.name}",
            self.table(operation.model_name),
            Lock.SHARE_UPDATE_EXCLUSIVE if is_concurrent else Lock.ACCESS_EXCLUSIVE,
        )

    def rename_index(self, operation: plain.RenameIndex) -> Iterator[Effect]:
        step = f"RenameIndex {operation.model_name_lower}.{operation.new_name}"
        yield Effect(step, self.table(operation.model_name), Lock.SHARE_UPDATE_EXCLUSIVE)

    def add_unique_concurrently(self, operation: ours.AddUniqueConcurrently) -> Iterator[Effect]:
        is_wrong = self.migration.atomic
        yield Effect(
            f"AddUniqueConcurrently {operation.model_name}.{operation.constraint.name}",
            self.table(operation.model_name),
            Lock.SHARE_UPDATE_EXCLUSIVE,
            Work.INDEX,
            problem="an index can't be built concurrently in a transaction" if is_wrong else "",
            instead="Set atomic = False in this migration." if is_wrong else "",
        )

    def drop_key_indexes(self, operation: ours.DropKeyIndexesConcurrently) -> Iterator[Effect]:
        is_wrong = self.migration.atomic
        yield Effect(
            "DropKeyIndexesConcurrently",
            lock=Lock.SHARE_UPDATE_EXCLUSIVE,
            problem="an index can't be dropped concurrently in a transaction" if is_wrong else "",
            instead="Set atomic = False in this migration." if is_wrong else "",
        )

    def add_constraint(self, operation: plain.AddConstraint) -> Iterator[Effect]:
        step = f"AddConstraint {operation.model_name}.{operation.constraint.name}"
        table = self.table(operation.model_name)
        if isinstance(operation.constraint, models.CheckConstraint):
            yield Effect(
                step,
                table,
                Lock.ACCESS_EXCLUSIVE,
                Work.READ,
                problem="every row is checked while nobody can use the table",
                instead="Use AddConstraintNotValid, and ValidateConstraint in the next migration.",
            )
            return
        yield Effect(
            step,
            table,
            Lock.ACCESS_EXCLUSIVE,
            Work.INDEX,
            problem="its index is built while nobody can use the table",
            instead="Use tenancy.upgrades.operations.AddUniqueConcurrently in a migration of its own, with atomic = False.",
        )

    def add_not_valid(self, operation: postgres.AddConstraintNotValid) -> Iterator[Effect]:
        self._not_valid.add(str(operation.constraint.name))
        step = f"AddConstraintNotValid {operation.model_name}.{operation.constraint.name}"
        yield Effect(step, self.table(operation.model_name), Lock.ACCESS_EXCLUSIVE)

    def validate(self, operation: postgres.ValidateConstraint) -> Iterator[Effect]:
        is_same = operation.name in self._not_valid
        yield Effect(
            f"ValidateConstraint {operation.model_name}.{operation.name}",
            self.table(operation.model_name),
            Lock.SHARE_UPDATE_EXCLUSIVE,
            Work.READ,
            problem="every row is read under the lock of the step that added the constraint"
            if is_same
            else "",
            instead="Validate in the next migration." if is_same else "",
        )

    def remove_constraint(self, operation: plain.RemoveConstraint) -> Iterator[Effect]:
        known = self.state.models[self.app, operation.model_name.lower()]
        is_check = isinstance(known.get_constraint_by_name(operation.name), models.CheckConstraint)
        yield Effect(
            f"RemoveConstraint {operation.model_name}.{operation.name}",
            self.table(operation.model_name),
            Lock.ACCESS_EXCLUSIVE,
            problem="" if is_check else "servers of the version before may name it in ON CONFLICT",
            instead="" if is_check else CONTRACT,
            mark=Mark.CONTRACT,
        )

    def together(self, operation: Any) -> Iterator[Effect]:
        before = self.state.models[self.app, operation.name_lower].options.get(operation.option_name) or set()
        if {tuple(fields) for fields in operation.option_value or ()} - set(before):
            yield Effect(
                f"{type(operation).__name__} {operation.name_lower}",
                self.table(operation.name),
                Lock.ACCESS_EXCLUSIVE,
                Work.INDEX,
                problem="its index is built while nobody can use the table",
                instead="Use tenancy.upgrades.operations.AddUniqueConcurrently in a migration of its own, with atomic = False.",
            )

    # --- code and statements of one's own

    def sql(self, operation: plain.RunSQL) -> Iterator[Effect]:
        given: Any = operation.sql
        for part in [given] if isinstance(given, str) else given:
            text = part if isinstance(part, str) else part[0]
            yield from statements_read(text, self.new_tables)

    def python(self, operation: RunPython) -> Iterator[Effect]:
        if operation.code is not RunPython.noop:
            yield Effect(
                f"RunPython {getattr(operation.code, '__name__', 'code')}",
                "",
                Lock.ROWS,
                Work.DATA,
                problem="a data move in a migration holds its row locks until all of it is done",
                instead="Move rows in a job that can be resumed, or give the reason in `explained`.",
            )

    def separate(self, operation: plain.SeparateDatabaseAndState) -> Iterator[Effect]:
        for step in operation.database_operations:
            yield from self._operation(step)
        for step in operation.state_operations:
            if isinstance(step, plain.RemoveField):
                yield from self._forgotten(step)

    def _forgotten(self, operation: plain.RemoveField) -> Iterator[Effect]:
        """The column stays while the code forgets it: rows of the new code leave it empty."""
        field = self._field(operation.model_name, operation.name)
        if not field.null and not has_default(field):
            yield Effect(
                f"RemoveField {operation.model_name_lower}.{operation.name}",
                self.table(operation.model_name),
                problem="the new code inserts rows without this column, which has neither null nor a database default",
                instead="Make it nullable, or give it a database default, in the release before.",
            )

    def nothing(self, operation: Any) -> Iterator[Effect]:
        yield from ()


_READERS: dict[type, Callable[[Reader, Any], Iterator[Effect]]] = {
    plain.CreateModel: Reader.create_model,
    plain.DeleteModel: Reader.delete_model,
    plain.RenameModel: Reader.rename_model,
    plain.AlterModelTable: Reader.rename_table,
    plain.AddField: Reader.add_field,
    plain.RemoveField: Reader.remove_field,
    plain.RenameField: Reader.rename_field,
    plain.AlterField: Reader.alter_field,
    plain.AlterOrderWithRespectTo: Reader.order,
    plain.AddIndex: Reader.add_index,
    postgres.AddIndexConcurrently: Reader.add_index_concurrently,
    plain.RemoveIndex: Reader.remove_index,
    plain.RenameIndex: Reader.rename_index,
    ours.AddUniqueConcurrently: Reader.add_unique_concurrently,
    ours.DropKeyIndexesConcurrently: Reader.drop_key_indexes,
    plain.AddConstraint: Reader.add_constraint,
    postgres.AddConstraintNotValid: Reader.add_not_valid,
    postgres.ValidateConstraint: Reader.validate,
    plain.RemoveConstraint: Reader.remove_constraint,
    plain.AlterUniqueTogether: Reader.together,
    plain.AlterIndexTogether: Reader.together,
    plain.AlterModelOptions: Reader.nothing,
    plain.AlterModelManagers: Reader.nothing,
    plain.AlterModelTableComment: Reader.nothing,
    plain.RunSQL: Reader.sql,
    plain.RunPython: Reader.python,
    plain.SeparateDatabaseAndState: Reader.separate,
    postgres.CreateExtension: Reader.nothing,
}
