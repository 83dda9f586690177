from __future__ import annotations

from typing import Any

from django.core.management.commands.flush import Command as Base

from tenancy.database.base import as_login_role


class Command(Base):
    """Django's own ``flush``, run as the role that owns the tables."""

    def handle(self, *args: Any, **options: Any) -> Any:
        with as_login_role():
            return super().handle(*args, **options)
