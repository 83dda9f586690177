from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from config import env


class Command(BaseCommand):
    help = "Print .env.example: every environment variable with its help and default."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(env.example(), ending="")
