from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands.migrate import Command as Base
from django.db import connections

from tenancy.database.base import as_login_role
from tenancy.database.from_empty import make_from_empty
from tenancy.database.history import adopt
from tenancy.sharding import breaches
from tenancy.upgrades.locks import TRIES, WAIT_S, direct_line, in_tries, only_one


class Command(Base):
    """Django's own ``migrate``, run as the role that owns the tables, also on databases from before the new history.

    It waits for locks in short tries (``tenancy.upgrades.locks``), since people work meanwhile, and for another
    ``migrate`` of the same database.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--lock-wait",
            type=float,
            default=WAIT_S,
            metavar="SECONDS",
            help="longest wait for a lock in one try; others wait behind it (default: %(default)s)",
        )
        parser.add_argument(
            "--lock-tries", type=int, default=TRIES, help="tries before it gives up (default: %(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> Any:
        connection = connections[options["database"]]
        once = partial(super().handle, *args, **options)

        is_look = options["plan"] or options["check_unapplied"]
        is_all = not (is_look or options["app_label"] or options["fake"] or options["prune"])

        def work() -> Any:
            if not is_look:
                adopt(connection)
            if is_all:
                made = make_from_empty(connection)
                if made and options["verbosity"] > 0:
                    self._say(f"Empty database: made its tables as all {made} migrations leave them.")
            return once()

        def say(words: str) -> None:
            # Django's "Applying ..." is still without its end then.
            self._say(words if options["verbosity"] < 1 else f"\n{words}")

        tries = max(1, options["lock_tries"])
        with (
            as_login_role(),
            direct_line(connection),
            nullcontext() if is_look else only_one(connection, say=say, tries=tries),
        ):
            result = in_tries(connection, work, say=say, wait_s=options["lock_wait"], tries=tries)
            if not is_look and options["verbosity"] > 0:
                self._say_what_is_left(connection)
            return result

    def _say_what_is_left(self, connection: Any) -> None:
        with connection.cursor() as cursor:
            left = breaches(cursor)
        if left:
            self._say(
                f"{len(left)} keys and references are still as servers of the version before may need them. "
                "Run manage.py schema_contract once all servers are replaced."
            )

    def _say(self, words: str) -> None:
        self.stdout.write(words)
        self.stdout.flush()
