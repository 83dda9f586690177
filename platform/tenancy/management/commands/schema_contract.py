from __future__ import annotations

from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from tenancy.database.base import as_login_role
from tenancy.row_security import row_security_apply
from tenancy.sharding import breaches
from tenancy.upgrades.locks import TRIES, WAIT_S, direct_line, in_tries, only_one


class Command(BaseCommand):
    help = (
        "Change what servers of the version before couldn't live with: keys and references of workspaces' tables. Run it "
        "once all servers are replaced. It can be run again; where nothing is left to do, it changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="tell what would be changed")
        parser.add_argument(
            "--lock-wait", type=float, default=WAIT_S, metavar="SECONDS", help="as of migrate"
        )
        parser.add_argument("--lock-tries", type=int, default=TRIES, help="as of migrate")

    def handle(self, *args: Any, **options: Any) -> None:
        tries = max(1, options["lock_tries"])
        with as_login_role(), direct_line(connection):
            before = self._left()
            if options["dry_run"]:
                for breach in before:
                    self.stdout.write(breach)
                self.stdout.write(f"{len(before)} keys and references to change")
                return
            with only_one(connection, say=self.stdout.write, tries=tries):
                in_tries(
                    connection,
                    partial(row_security_apply, connection, contract=True),
                    say=self.stdout.write,
                    wait_s=options["lock_wait"],
                    tries=tries,
                )
            after = self._left()
        if after:
            raise CommandError("Left, because no model knows of it:\n" + "\n".join(after))
        self.stdout.write(
            f"{len(before)} keys and references changed" if before else "Nothing left to change"
        )

    def _left(self) -> list[str]:
        with connection.cursor() as cursor:
            return breaches(cursor)
