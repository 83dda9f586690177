from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from basics.sizes import gigabytes
from config.upgrade import READ_BYTES_S, WRITE_BYTES_S, Planned, Step, as_json, examine_upgrade
from tenancy.upgrades.effects import STOPS


class Command(BaseCommand):
    help = (
        "Tell what an upgrade of this database to this code will do: migrations, locks, sizes, disk, backup. Changes "
        "nothing; ends with 1 when something is in the way."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        report = examine_upgrade()
        if options["json"]:
            self.stdout.write(json.dumps(as_json(report)))
        else:
            width = max(len(c.name) for c in report.checks)
            for check in report.checks:
                mark = self.style.SUCCESS("ok  ") if check.ok else self.style.ERROR("FAIL")
                self.stdout.write(f"{mark} {check.name:<{width}}  {check.error or check.detail}")
                if check.fix:
                    self.stdout.write(f"     {'':<{width}}  {check.fix}")
            if report.migrations is not None:
                self._migrations(report.migrations)
        if not report.ok:
            raise SystemExit(1)

    def _migrations(self, planned: list[Planned]) -> None:
        if not planned:
            self.stdout.write("No migration to run")
            return
        self.stdout.write(f"{len(planned)} migrations to run" if len(planned) > 1 else "1 migration to run")
        for migration in planned:
            self.stdout.write(f"  {migration.name}")
            new = [s for s in migration.steps if s.effect.is_new or not s.effect.lock]
            if new:
                self.stdout.write(f"    {len(new)} steps on tables that it makes, or without a lock")
            for step in migration.steps:
                if step not in new:
                    self.stdout.write(f"    {_words(step)}")
        self.stdout.write(
            f"Times are rough: {READ_BYTES_S / 1e6:.0f} MB read and {WRITE_BYTES_S / 1e6:.0f} MB written a second"
        )


def _words(step: Step) -> str:
    effect = step.effect
    rows = "rows not counted yet" if step.rows is None else f"about {step.rows:,} rows"
    table = f", table {effect.table} ({rows}, {gigabytes(step.all_bytes)})" if effect.table else ""
    if step.seconds is None:
        takes = "as long as its rows take"
    elif step.seconds < 1:
        takes = "under a second"
    else:
        takes = f"about {step.seconds:,.0f} s"
    return f"{effect.step}{table}: lock {effect.lock} ({STOPS[effect.lock]}), {takes}"
