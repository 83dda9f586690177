from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection

from tenancy.database.base import as_login_role
from tenancy.distributing import SHARDS, distribute, placed, walls_missing
from tenancy.row_security import tenant_models
from tenancy.sharding import breaches, distribution, has_citus
from tenancy.upgrades.locks import direct_line, only_one


class Command(BaseCommand):
    help = (
        "Distribute the tables by workspace on a database with Citus: shared tables are copied to every machine, those of "
        "workspaces are spread. All or nothing; the walls between workspaces are looked at on every machine afterwards. "
        "Stop all servers first. It can be run again, after a migration that brought tables."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="print the statements; also where Citus isn't installed"
        )
        parser.add_argument(
            "--shards", type=int, default=SHARDS, help="into how many parts workspaces' tables are cut"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with as_login_role(), direct_line(connection), connection.cursor() as cursor:
            found = breaches(cursor)
            if found:
                raise CommandError(
                    "This schema can't be distributed yet. Run manage.py schema_contract.\n"
                    + "\n".join(found)
                )
            if options["dry_run"]:
                leave = placed(cursor) if has_citus(cursor) else ()
                for statement in distribution(cursor, leave=leave):
                    self.stdout.write(f"{statement};")
                return
            if not has_citus(cursor):
                raise CommandError(
                    "This database doesn't have the extension citus. With --dry-run the statements are printed."
                )
            with only_one(connection, say=self.stdout.write):
                try:
                    distribute(connection, shards=options["shards"], say=self._say(options["verbosity"]))
                except DatabaseError as error:
                    raise CommandError(f"Nothing was changed. Citus refused a statement: {error}") from error
                tables = sorted(model._meta.db_table for model in tenant_models())
                looked, wrong = walls_missing(cursor, tables)
        if wrong:
            raise CommandError("Keep the servers stopped: walls are missing.\n" + "\n".join(wrong))
        self.stdout.write(
            f"{len(tables)} tables of workspaces are distributed; {looked} parts have their walls"
        )

    def _say(self, verbosity: int) -> Any:
        return self.stdout.write if verbosity > 1 else lambda _: None
