"""What adding and changing a column does to a table that is in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connection, models
from django.db.models import expressions
from django.db.models.functions import Now

from tenancy.upgrades.effects import Effect, Lock, Work

_STEADY = (expressions.Value, Now)
CONCURRENTLY = (
    "Use tenancy.upgrades.operations.AddIndexConcurrently in a migration of its own, with atomic = False."
)
CONTRACT = (
    "Take it out of the models first (SeparateDatabaseAndState), and remove it one release later, in a migration with "
    "`contract`."
)
EXPAND = "Add what is new, fill it by a job, and remove the old in a later release."


def has_default(field: models.Field[Any, Any]) -> bool:
    return field.db_default is not models.NOT_PROVIDED


def column_added(step: str, table: str, field: models.Field[Any, Any]) -> Effect:
    everything = Lock.ACCESS_EXCLUSIVE
    if isinstance(field, models.ManyToManyField):
        return Effect(step)  # a table of its own
    if isinstance(field, models.GeneratedField) or (
        has_default(field)
        and isinstance(field.db_default, expressions.BaseExpression)
        and not isinstance(field.db_default, _STEADY)
    ):
        return Effect(
            step,
            table,
            everything,
            Work.REWRITE,
            problem="the table is written again while nobody can use it",
            instead="Add it with a constant db_default or null, and fill it by a job.",
        )
    if not field.null and not has_default(field):
        return Effect(
            step,
            table,
            everything,
            problem="servers of the version before insert rows without it",
            instead="Make it nullable, or give it db_default.",
        )
    if field.unique or getattr(field, "db_index", False):
        return Effect(
            step,
            table,
            everything,
            Work.INDEX,
            problem="its index is built while nobody can use the table",
            instead=f"Add it with db_index=False. {CONCURRENTLY}",
        )
    return Effect(step, table, everything)


_Finding = tuple[Lock, Work, str, str]


def column_altered(
    name: str, before: models.Field[Any, Any], after: models.Field[Any, Any]
) -> Iterator[_Finding]:
    """Yield what becomes of a column; nothing where the database sees no difference."""
    everything = Lock.ACCESS_EXCLUSIVE
    if (before.db_column or name) != (after.db_column or name):
        yield (
            everything,
            Work.CATALOG,
            "servers of the version before use the old name of the column",
            EXPAND,
        )
    if _type(name, before) != _type(name, after):
        if _is_wider(name, before, after):
            yield everything, Work.CATALOG, "", ""
        else:
            yield everything, Work.REWRITE, "the table is written again while nobody can use it", EXPAND
    if before.null and not after.null:
        yield (
            everything,
            Work.READ,
            "servers of the version before may write NULL, and every row is read under the lock",
            "Fill the column and validate a check (IS NOT NULL) in migrations before, then give the reason.",
        )
    if after.null and not before.null:
        yield everything, Work.CATALOG, "", ""
    if has_default(before) and not has_default(after) and not after.null:
        yield everything, Work.CATALOG, "servers of the version before rely on db_default", CONTRACT
    elif before.db_default != after.db_default:
        yield everything, Work.CATALOG, "", ""
    if (after.unique and not before.unique) or (
        getattr(after, "db_index", False) and not getattr(before, "db_index", False)
    ):
        yield everything, Work.INDEX, "its index is built while nobody can use the table", CONCURRENTLY
    if _target(after) and (_target(before) != _target(after) or not getattr(before, "db_constraint", False)):
        yield (
            Lock.SHARE_ROW_EXCLUSIVE,
            Work.READ,
            "every row is checked against the other table under the lock",
            "Add the foreign key NOT VALID by RunSQL, and validate it in the next migration.",
        )


def _type(name: str, field: models.Field[Any, Any]) -> Any:
    """Return the column's type, check and collation; of a reference, what it points at."""
    if isinstance(field, models.ForeignKey):
        return field.deconstruct()[3]["to"].lower()
    own = field.clone()
    own.set_attributes_from_name(name)
    found = own.db_parameters(connection)
    return found.get("type"), found.get("check"), found.get("collation")


def _is_wider(name: str, before: models.Field[Any, Any], after: models.Field[Any, Any]) -> bool:
    """Tell whether PostgreSQL changes the type without a look at the rows: more letters, more digits before the point."""
    if _type(name, before)[1:] != _type(name, after)[1:]:
        return False
    if isinstance(before, models.DecimalField) and isinstance(after, models.DecimalField):
        return after.decimal_places == before.decimal_places and (after.max_digits or 0) >= (
            before.max_digits or 0
        )
    if type(after) is models.TextField:
        return isinstance(before, models.CharField)
    if isinstance(before, models.CharField) and isinstance(after, models.CharField):
        return after.max_length is None or (before.max_length or 0) <= after.max_length
    return False


def _target(field: models.Field[Any, Any]) -> str:
    """Return what Django lays a foreign key to; "" for none."""
    if isinstance(field, models.ForeignKey) and getattr(field, "db_constraint", True):
        return str(field.deconstruct()[3]["to"]).lower()
    return ""
