from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.demo import EMAIL, OTHER_EMAIL, demo_password, demo_seed


class Command(BaseCommand):
    help = (
        "Create the two demo workspaces with their documents if they are missing, and print how to sign in."
    )
    stealth_options = ("hashed",)  # of a caller that has begun to hash the password

    def handle(self, *args: Any, hashed: Future[str] | None = None, **options: Any) -> None:
        demo_seed(data_dir=settings.DATA_DIR, say=self.stdout.write, hashed=hashed)
        password = demo_password(settings.DATA_DIR)
        self.stdout.write(f"sign in as {EMAIL} (or {OTHER_EMAIL}), password {password}")
