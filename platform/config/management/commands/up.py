from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config import up


class Command(BaseCommand):
    """Start database, web server and worker, and keep them running.

    manage.py recognizes ``up`` before Django is loaded and runs ``config.up`` directly, which is small and starts at
    once; this command lists it in ``manage.py help`` and serves ``call_command``.
    """

    help = "Start database, web server and worker, and keep them running until Ctrl-C."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        up.arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        argv = ["--host", options["host"]]
        if options["port"] is not None:
            argv += ["--port", str(options["port"])]
        if options["data_dir"] is not None:
            argv += ["--data-dir", str(options["data_dir"])]
        code = up.main(argv)
        if code:
            raise SystemExit(code)
