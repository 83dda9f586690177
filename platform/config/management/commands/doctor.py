from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from config.doctor import examine


class Command(BaseCommand):
    help = "Check every part the platform needs and say what to do. Exits with 1 if something is wrong."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        found = examine()
        if options["json"]:
            rows = [
                {"name": c.name, "ok": c.ok, "detail": c.detail, "fix": c.fix, "error": c.error}
                for c in found
            ]
            self.stdout.write(json.dumps({"ok": all(c.ok for c in found), "checks": rows}))
        else:
            width = max(len(c.name) for c in found)
            for check in found:
                mark = self.style.SUCCESS("ok  ") if check.ok else self.style.ERROR("FAIL")
                self.stdout.write(f"{mark} {check.name:<{width}}  {check.error or check.detail}")
                if not check.ok and check.fix:
                    self.stdout.write(f"     {'':<{width}}  {check.fix}")
        if not all(c.ok for c in found):
            raise SystemExit(1)
