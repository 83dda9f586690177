from __future__ import annotations

from typing import Any

from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    help = "Bring the database up to date (migrations, tenant walls) and seed the demo."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--no-demo", action="store_true", help="do not seed the demo workspaces"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("applying migrations")
        self.stdout.flush()
        call_command("migrate", interactive=False, verbosity=1, skip_checks=True)
        if not options["no_demo"] and "seed_demo" in get_commands():
            self.stdout.write("seeding the demo")
            self.stdout.flush()
            call_command("seed_demo")
