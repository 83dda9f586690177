"""Fields that tables share: the tenant, keys that can't point into another one, JSON in its order, texts for any reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models.lookups import IContains

from basics.texts import MARKS, Told, english, kept, shortened

CASCADE = "CASCADE"
SET_NULL = "SET NULL"
RESTRICT = "RESTRICT"


class TenantForeignKey(models.ForeignKey):  # type: ignore[type-arg]
    """A foreign key between two tenant tables, enforced by the database as (tenant_id, x_id) -> (tenant_id, id).

    Foreign key checks bypass row-level security, so a plain one would accept another tenant's id (and tell whether it
    exists). ``tenancy.row_security`` lays the composite constraint; Django lays none. CASCADE and RESTRICT are the
    database's work too: one statement, however many rows hang below. SET NULL is that of ``tenancy.clearing``, which our
    querysets call.

    Args:
        db_on_delete: CASCADE, SET NULL (needs null=True; clears only this column) or RESTRICT.
    """

    def __init__(self, to: Any, db_on_delete: str = CASCADE, **kwargs: Any) -> None:
        if db_on_delete not in {CASCADE, SET_NULL, RESTRICT}:
            raise ValueError(f"db_on_delete: unknown action {db_on_delete!r}")
        if db_on_delete == SET_NULL and not kwargs.get("null"):
            raise ValueError("db_on_delete=SET NULL needs null=True")
        self.db_on_delete = db_on_delete
        kwargs["on_delete"] = models.DO_NOTHING
        kwargs["db_constraint"] = False
        super().__init__(to, **kwargs)

    def get_extra_restriction(self, alias: str | None, related_alias: str) -> Any:
        """Join by the tenant too, so that a router sees that both rows lie on the same machine; arguments are Django's."""
        if alias is None:  # the join is left out: its table's rows are found by the outer statement
            return None
        return _SameTenant(alias, related_alias)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("on_delete", None)
        kwargs.pop("db_constraint", None)
        kwargs["db_on_delete"] = self.db_on_delete
        return name, path, args, kwargs


class TenantKey(models.ForeignKey):  # type: ignore[type-arg]
    """The tenant of a row. It has an index only in tables where no other index begins with the tenant.

    Migrations see a plain foreign key, with ``db_index=False`` where that is so.
    """

    def contribute_to_class(self, cls: Any, name: str, *args: Any, **kwargs: Any) -> None:
        """Become the field of a model; arguments are Django's."""
        if any(_begins_with(name, rule) for rule in (*cls._meta.indexes, *cls._meta.constraints)):
            self.db_index = False
        super().contribute_to_class(cls, name, *args, **kwargs)

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.ForeignKey", args, kwargs


def _begins_with(name: str, rule: Any) -> bool:
    """Tell whether an index or constraint of a model orders all its rows by a field first."""
    if type(rule) not in {models.Index, models.UniqueConstraint} or rule.condition or rule.opclasses:
        return False
    return bool(rule.fields) and rule.fields[0] == name


class _SameTenant:
    """The condition that rows of two joined tables are the same tenant's."""

    __slots__ = ("left", "right")

    def __init__(self, left: str, right: str) -> None:
        self.left, self.right = left, right

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        """Return SQL and parameters; arguments are Django's."""
        qn = compiler.quote_name_unless_alias
        return f'{qn(self.left)}."tenant_id" = {qn(self.right)}."tenant_id"', []


class OrderedJSONField(models.TextField):  # type: ignore[type-arg]
    """JSON whose objects keep the order of their properties; ``jsonb`` sorts them by length and letter.

    For what a person or a model has put in an order that says something. The database sees text: it can't be filtered on.
    """

    if TYPE_CHECKING:
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Any:
        """Read what the column holds."""
        return None if value is None else json.loads(value)

    def to_python(self, value: Any) -> Any:
        """Read what a fixture holds; anything else is a value already."""
        return json.loads(value) if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> str | None:
        """Write a value as JSON. Raises TypeError or ValueError for what JSON has no word for."""
        return None if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)

    def value_to_string(self, obj: models.Model) -> str:
        """Write a value for a fixture."""
        return json.dumps(self.value_from_object(obj), ensure_ascii=False)


class _ToldMixin:
    """Keeps a text so that it can be told in each reader's language (``basics.texts``); reading gives its English.

    Migrations see Django's own field: in the database it is text like any other.
    """

    max_length: int | None

    def get_prep_value(self, value: Any) -> Any:
        """Return what the column gets; a text that is too long for it is ``shortened``."""
        prepared = super().get_prep_value(value)  # type: ignore[misc]
        if not isinstance(prepared, str):
            return prepared
        return kept(prepared if self.max_length is None else shortened(prepared, self.max_length))

    def from_db_value(self, value: str | None, expression: Any, connection: Any) -> Told | None:
        """Return what a row has, as its English that knows the rest."""
        return None if value is None else Told.of(value)

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()  # type: ignore[misc]
        base = models.TextField if isinstance(self, models.TextField) else models.CharField
        return name, f"django.db.models.{base.__name__}", args, kwargs


class _AsRead(IContains):
    """Looks for words in a told text as it is read: the marks around its values are between words that stand together."""

    def process_lhs(self, *args: Any, **kwargs: Any) -> Any:
        sql, params = super().process_lhs(*args, **kwargs)
        return f"translate({sql}, %s, '')", [*params, MARKS]

    def get_prep_lookup(self) -> Any:
        found = super().get_prep_lookup()
        return english(found) if isinstance(found, str) else found


class ToldTextField(_ToldMixin, models.TextField):  # type: ignore[type-arg]
    """A text of ours for people, of any length."""


class ToldCharField(_ToldMixin, models.CharField):  # type: ignore[type-arg]
    """A text of ours for people, cut where it has more than ``max_length`` characters."""


for _told in (ToldTextField, ToldCharField):
    _told.register_lookup(_AsRead, "icontains")


class ToldJSONField(models.JSONField):
    """A list that has texts of ours for people: its own strings, or those of its objects under some names.

    Args:
        told: the names; they are no matter of the database, and no migration has them.
    """

    def __init__(self, *args: Any, told: tuple[str, ...] = (), **kwargs: Any) -> None:
        self.told = told
        super().__init__(*args, **kwargs)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Keep the texts so that they can be told in each reader's language."""
        return super().get_db_prep_value(self._each(value, kept), connection, prepared)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the list with its texts in English."""
        return self._each(super().from_db_value(value, expression, connection), Told.of)

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs

    def _each(self, value: Any, change: Callable[[str], str]) -> Any:
        if not isinstance(value, list):
            return value
        return [self._one(one, change) for one in value]

    def _one(self, one: Any, change: Callable[[str], str]) -> Any:
        if isinstance(one, str):
            return one if self.told else change(one)
        if not isinstance(one, dict):
            return one
        return one | {name: change(one[name]) for name in self.told if isinstance(one.get(name), str)}
