"""Foreign keys that cannot point into another tenant."""

from __future__ import annotations

from typing import Any

from django.db import models

CASCADE = "CASCADE"
SET_NULL = "SET NULL"
RESTRICT = "RESTRICT"


class TenantForeignKey(models.ForeignKey):  # type: ignore[type-arg]
    """A foreign key between two tenant tables, enforced by the database as (tenant_id, x_id) -> (tenant_id, id).

    Foreign key checks bypass row-level security, so a plain one would accept another tenant's id (and tell whether it
    exists). ``tenancy.walls`` lays the composite constraint; Django lays none. What happens on delete is the
    database's work too: one statement, however many rows hang below.

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

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("on_delete", None)
        kwargs.pop("db_constraint", None)
        kwargs["db_on_delete"] = self.db_on_delete
        return name, path, args, kwargs
