from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from config import env
from config.embedded import EmbeddedPostgres
from tenancy.database import snapshot
from tenancy.database.base import as_login_role


class Command(BaseCommand):
    help = (
        "Write the schema that new databases start from: runs every migration in a database of its own, "
        "which it drops again, and records what they send."
    )
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        url, server = env.get("DATABASE_URL"), None
        if not url:
            server = EmbeddedPostgres(settings.DATA_DIR, die_with_parent=True)
            server.start()
            url = server.url
        connection.settings_dict.update(env.database_settings(url, pool=False))
        name = f"groundwork_snapshot_{os.getpid()}"
        try:
            with connection._nodb_cursor() as cursor:
                cursor.execute(f"CREATE DATABASE {name}")
            try:
                connection.settings_dict["NAME"] = name
                with as_login_role():
                    found = snapshot.record(connection)
            except ValueError as error:
                raise CommandError(str(error)) from error
            finally:
                connection.close()
                with connection._nodb_cursor() as cursor:
                    cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
        finally:
            if server is not None:
                server.stop()
        snapshot.PATH.write_text(str(found), encoding="utf-8")
        self.stdout.write(f"{snapshot.PATH}: {len(found.scripts)} migrations")
