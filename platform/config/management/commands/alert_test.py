from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.operate.alerting import TEST, send


class Command(BaseCommand):
    help = "Send a test alert to each receiver of GROUNDWORK_ALERTS_TO. Exits with 1 if one doesn't take it."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.ALERTS_TO:
            raise CommandError(
                "No one is told about alerts: set GROUNDWORK_ALERTS_TO to mail addresses or https:// addresses."
            )
        problems = []
        for number, address in enumerate(settings.ALERTS_TO, 1):
            if problem := send(address, [TEST]):
                problems.append(problem)
            elif "://" not in address and "console" in settings.EMAIL_BACKEND:
                problems.append(f"{address}: mail is printed here only; set GROUNDWORK_EMAIL_URL")
            else:
                self.stdout.write(f"receiver {number} took the test alert")
        if problems:
            raise CommandError("; ".join(problems))
