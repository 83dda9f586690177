"""SQL of querysets, for tables that a sharded Postgres takes: it names the tenant, groups by both columns of a key, and clears
references. What stores a single row is written once per table.

Models know ``id`` as their key, while the database's is (id, tenant_id). Row-level security lets a statement see one tenant's
rows, but a router reads the statement alone: in a tenant's scope the first table of each SELECT, UPDATE and DELETE gets
``tenant_id = 7``, and joined ones follow by ``TenantForeignKey``.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from django.apps import apps
from django.db.backends.postgresql import compiler as base
from django.db.backends.postgresql.compiler import SQLAggregateCompiler
from django.db.models.expressions import DatabaseDefault
from django.db.models.sql.query import Query
from django.db.models.sql.where import AND, WhereNode

from tenancy.database.cursors import scope_wanted
from tenancy.database.selects import KeptSelects

__all__ = [
    "SQLAggregateCompiler",
    "SQLCompiler",
    "SQLDeleteCompiler",
    "SQLInsertCompiler",
    "SQLUpdateCompiler",
]


class _OfTenant:
    """The condition that a table's rows are one tenant's.

    Written out rather than made of Django's expressions, which would cost each statement three times as much.

    Args:
        alias: what the statement calls the table.
        tenant: the tenant's id.
    """

    __slots__ = ("alias", "tenant")

    def __init__(self, alias: str, tenant: int) -> None:
        self.alias, self.tenant = alias, tenant

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        """Return SQL and parameters; arguments are Django's."""
        return f"{compiler.quote_name_unless_alias(self.alias)}.{_TENANT} = %s", [self.tenant]


_TENANT = '"tenant_id"'


def _of_tenant(query: Any) -> _OfTenant | None:
    """Return the condition for a query's first table, None for shared tables and outside of a tenant's scope."""
    scope = scope_wanted()
    if not scope.isdecimal():
        return None
    for alias, table in query.alias_map.items():
        if query.alias_refcount[
            alias
        ]:  # those that aren't needed any more stay in the map, in front of others
            is_own = table.join_type is None and table.table_name in _tables()
            return _OfTenant(alias, int(scope)) if is_own else None
    return None


def _with(where: Any, own: Any) -> WhereNode:
    return WhereNode([where, own] if where else [own], AND)


@cache
def _tables() -> frozenset[str]:
    """Return the tables of tenants' models."""
    return frozenset(model._meta.db_table for model in apps.get_models(True) if _is_tenants(model))


class SQLCompiler(KeptSelects):
    """Names the tenant, and groups rows of a tenant's table by both columns of its key.

    Django leaves out what depends on the primary key, and takes ``id`` for all of it; Postgres would refuse that.
    """

    where: Any

    def pre_sql_setup(self, *args: Any, **options: Any) -> Any:
        """Get ready to make SQL; arguments and result are Django's."""
        made = super().pre_sql_setup(*args, **options)
        own = _of_tenant(self.query)
        if own is not None:
            self.where = _with(self.where, own)
        return made

    def collapse_group_by(self, expressions: Any, having: Any) -> Any:
        """Return the expressions to group by; arguments are Django's."""
        keys: dict[str, list[Any]] = {}
        whole: set[str] = set()
        for expression in expressions:
            field = getattr(expression, "target", None)
            if field is None:
                continue
            is_tenants = _is_tenants(field.model)
            is_id = field.primary_key and self.connection.features.allows_group_by_selected_pks_on_model(
                field.model
            )
            if is_id or (is_tenants and field.name == "tenant"):
                keys.setdefault(expression.alias, []).append(expression)
                if len(keys[expression.alias]) == (2 if is_tenants else 1):
                    whole.add(expression.alias)
        kept = [expression for alias in whole for expression in keys[alias]]
        return [e for e in expressions if getattr(e, "alias", None) not in whole or e in kept or e in having]


_insert_texts: dict[tuple[Any, ...], str] = {}
"""By model, columns, returned columns and placeholders; as many as the code has ways to store a row."""


class SQLInsertCompiler(base.SQLInsertCompiler):
    """Keeps the text that stores a single row, which Django writes column by column each time."""

    returning_fields: Any

    def as_sql(self) -> list[tuple[str, Any]]:  # type: ignore[override]
        """Return the statement with its values; as Django makes it for several rows and for values that are SQL."""
        query: Any = self.query
        if len(query.objs) != 1 or not query.fields or query.on_conflict is not None:
            return super().as_sql()
        made = self._row(query.objs[0])
        if made is None:
            return super().as_sql()
        places, values = made
        returned = tuple(map(id, self.returning_fields or ()))
        # With the model itself: its fields live as long as it does, and keep their ids.
        key = (query.model, tuple(map(id, query.fields)), returned, places)
        text = _insert_texts.get(key)
        if text is None:
            ((text, given),) = super().as_sql()
            if len(given) != len(values):
                return [(text, given)]
            _insert_texts[key] = text
        return [(text, values)]

    def _row(self, row: Any) -> tuple[tuple[str, ...], tuple[Any, ...]] | None:
        """Return what stands for each column in the text, and the values; None where a value is an expression."""
        places, values = [], []
        for field in self.query.fields:
            value: Any = self.pre_save_val(field, row)
            if isinstance(value, DatabaseDefault):
                places.append("DEFAULT")
                continue
            if hasattr(value, "resolve_expression"):
                return None
            value = field.get_db_prep_save(value, connection=self.connection)
            if hasattr(value, "as_sql"):
                return None
            own = getattr(field, "get_placeholder", None)
            places.append("%s" if own is None else own(value, self, self.connection))
            values.append(value)
        return tuple(places), tuple(values)


class SQLUpdateCompiler(base.SQLUpdateCompiler):
    """Names the tenant."""

    def pre_sql_setup(self) -> None:  # type: ignore[override]
        """Get ready to make SQL."""
        super().pre_sql_setup()
        own = _of_tenant(self.query)
        if own is not None:
            self.query.where = _with(self.query.where, own)


class SQLDeleteCompiler(base.SQLDeleteCompiler):
    """Names the tenant, and clears what refers to the rows before it deletes them (``tenancy.clearing``)."""

    def _as_sql(self, query: Any) -> Any:
        own = _of_tenant(query)
        if own is not None:
            query = query.clone()
            query.where = _with(query.where, own)
        return super()._as_sql(query)  # type: ignore[misc]

    def execute_sql(self, *args: Any, **options: Any) -> Any:
        """Clear and delete; arguments and result are Django's."""
        from tenancy.clearing import deleted_cleanly

        model: Any = self.query.model
        delete = partial(super().execute_sql, *args, **options)
        if not _is_tenants(model):
            return delete()
        return deleted_cleanly(self.connection.alias, model, partial(self._ids, model), delete)

    def _ids(self, model: Any) -> Query:
        ids: Any = self.query.clone()
        ids.__class__ = Query
        ids.clear_select_clause()
        ids.select = (model._meta.pk.get_col(ids.get_initial_alias()),)
        return ids  # type: ignore[no-any-return]


def _is_tenants(model: Any) -> bool:
    from tenancy.models.base import TenantModel  # a backend is imported before the apps are ready

    return issubclass(model, TenantModel)
