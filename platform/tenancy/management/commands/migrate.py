from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands.migrate import Command as Base
from django.db import connections

from tenancy.database import snapshot
from tenancy.database.base import as_login_role

_PARTLY = ("app_label", "fake", "fake_initial", "plan", "check_unapplied", "prune")


class Command(Base):
    """Django's own ``migrate``, run as the role that owns the tables.

    An empty database starts from the schema snapshot, and from the migrations that came after it.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--no-snapshot",
            action="store_true",
            help="run every migration, also where an empty database could start from the schema snapshot",
        )

    def handle(self, *args: Any, **options: Any) -> Any:
        with as_login_role():
            if not options["no_snapshot"] and not any(options[name] for name in _PARTLY):
                is_new = snapshot.load(connections[options["database"]])
                if is_new and options["verbosity"] >= 1:
                    self.stdout.write("New database: started from the schema snapshot.")
            return super().handle(*args, **options)
