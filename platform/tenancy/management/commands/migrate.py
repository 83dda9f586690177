from __future__ import annotations

from typing import Any

from django.core.management.commands.migrate import Command as Base
from django.db import connections

from tenancy.database.base import as_login_role
from tenancy.database.history import adopt


class Command(Base):
    """Django's own ``migrate``, run as the role that owns the tables, also on databases from before the new history."""

    def handle(self, *args: Any, **options: Any) -> Any:
        with as_login_role():
            if not options["plan"] and not options["check_unapplied"]:
                adopt(connections[options["database"]])
            return super().handle(*args, **options)
