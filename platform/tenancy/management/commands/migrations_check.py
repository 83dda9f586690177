from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tenancy.upgrades.rules import breaches


class Command(BaseCommand):
    help = "Refuse migrations that break the code before them or lock tables for long. Needs no database."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        found = breaches()
        for breach in found:
            self.stderr.write(str(breach))
        if found:
            count = f"{len(found)} steps" if len(found) > 1 else "1 step"
            raise CommandError(
                f"{count} can't run while the version before still works. docs/upgrading.md has the rules."
            )
        self.stdout.write("Migrations only add what the version before can live with")
