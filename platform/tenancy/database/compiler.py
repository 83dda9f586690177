"""SQL of querysets, for tables that a sharded Postgres takes: it groups by a key with two columns, and clears references.

Models know ``id`` as their key, while the database's is (id, tenant_id).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db.backends.postgresql import compiler as base
from django.db.backends.postgresql.compiler import (
    SQLAggregateCompiler,
    SQLInsertCompiler,
    SQLUpdateCompiler,
)
from django.db.models.sql.query import Query

__all__ = [
    "SQLAggregateCompiler",
    "SQLCompiler",
    "SQLDeleteCompiler",
    "SQLInsertCompiler",
    "SQLUpdateCompiler",
]


class SQLCompiler(base.SQLCompiler):
    """Groups rows of a tenant's table by both columns of its key.

    Django leaves out what depends on the primary key, and takes ``id`` for all of it; Postgres would refuse that.
    """

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


class SQLDeleteCompiler(base.SQLDeleteCompiler):
    """Clears what refers to the rows before it deletes them (``tenancy.clearing``)."""

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
