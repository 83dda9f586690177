from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from tenancy.database.base import as_login_role
from tenancy.sharding import breaches, distribution, has_citus


class Command(BaseCommand):
    help = (
        "Print the statements that distribute the tables by workspace on a database with Citus: shared tables are copied to "
        "every machine, those of workspaces are spread. Changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="print the statements; also where Citus isn't installed"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with as_login_role(), connection.cursor() as cursor:
            found = breaches(cursor)
            if found:
                raise CommandError(
                    "This schema can't be distributed yet. Run manage.py schema_contract.\n"
                    + "\n".join(found)
                )
            if not options["dry_run"]:
                raise CommandError(
                    "Run it with --dry-run: it prints the statements, and doesn't run them yet."
                    if has_citus(cursor)
                    else "This database doesn't have the extension citus. With --dry-run the statements are printed."
                )
            for statement in distribution(cursor):
                self.stdout.write(f"{statement};")
