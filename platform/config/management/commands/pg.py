from __future__ import annotations

import os
import signal
import threading
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config.embedded import EmbeddedPostgres, EmbeddedPostgresError
from config.embedded.account import SYSTEM_DIR, choose_account, programs
from config.embedded.server import remove


class Command(BaseCommand):
    help = (
        "The embedded database: run (in the foreground), status, url, stop, psql, dump FILE, or remove --yes "
        "(deletes all data)."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["run", "status", "url", "stop", "psql", "dump", "remove"])
        parser.add_argument("arguments", nargs="*", help="more arguments of psql, the file of dump")
        parser.add_argument("--port", type=int, help="TCP port on 127.0.0.1 (default: the recorded one)")
        parser.add_argument("--yes", action="store_true", help="confirm the removal")

    def handle(self, *args: Any, **options: Any) -> None:
        postgres = EmbeddedPostgres(settings.DATA_DIR, options["port"], die_with_parent=True)
        try:
            getattr(self, "_" + options["action"])(postgres, options)
        except EmbeddedPostgresError as error:
            raise CommandError(str(error)) from error

    def _run(self, postgres: EmbeddedPostgres, options: dict[str, Any]) -> None:
        stop = threading.Event()
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, lambda *_: stop.set())
        postgres.start()
        self.stdout.write(f"PostgreSQL 18 on 127.0.0.1:{postgres.port}; log: {postgres.log_path}")
        self.stdout.flush()
        while not stop.wait(0.5):
            if not postgres.is_running():
                postgres.reap()
                self.stdout.write("the database ended; starting it again")
                postgres.start()
        if not postgres.stop():
            self.stdout.write("left running: another process uses it")

    def _status(self, postgres: EmbeddedPostgres, options: dict[str, Any]) -> None:
        if postgres.is_ready():
            self.stdout.write(f"ready on 127.0.0.1:{postgres.port}, files in {postgres.pgdata}")
        elif postgres.is_running():
            raise CommandError("starting or stopping")
        else:
            raise CommandError("not running")

    def _url(self, postgres: EmbeddedPostgres, options: dict[str, Any]) -> None:
        self.stdout.write(postgres.url)

    def _stop(self, postgres: EmbeddedPostgres, options: dict[str, Any]) -> None:
        postgres.stop(force=True)
        self.stdout.write("stopped")

    def _psql(self, postgres: EmbeddedPostgres, options: dict[str, Any]) -> None:
        self._client(postgres, "psql", options["arguments"])

    def _dump(self, postgres: EmbeddedPostgres, options: dict[str, Any]) -> None:
        if len(options["arguments"]) != 1:
            raise CommandError("dump needs the name of the file to write")
        # Vectors do not compress: -Z0 is several times faster and hardly larger.
        self._client(postgres, "pg_dump", ["-Fc", "-Z0", "-f", options["arguments"][0]])

    def _remove(self, postgres: EmbeddedPostgres, options: dict[str, Any]) -> None:
        if not options["yes"]:
            raise CommandError(
                "This deletes the database with the data of all workspaces. Add --yes to confirm."
            )
        remove(settings.DATA_DIR)
        self.stdout.write("removed")

    def _client(self, postgres: EmbeddedPostgres, name: str, arguments: list[str]) -> None:
        """Become one of Postgres' own client programs, as the superuser (row-level security would hide rows)."""
        url = urlsplit(postgres.superuser_url)
        program = programs(choose_account(postgres.pgdata), SYSTEM_DIR) / name
        environment = {**os.environ, "PGPASSWORD": url.password or ""}
        where = ["-h", str(url.hostname), "-p", str(url.port), "-U", str(url.username)]
        os.execve(program, [name, *where, "-d", url.path.lstrip("/"), *arguments], environment)  # noqa: S606 - its own program
