from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from config.demo import EMAIL, OTHER_EMAIL, demo_hash_begin, demo_lock, demo_password, demo_unlock
from tenancy.database.base import as_login_role
from tenancy.database.direct import pooler_found
from tenancy.database.history import adopt
from tenancy.health import migrations_unknown


def _version_check() -> None:
    """Refuse a database that a later version has changed: this one would work on tables it does not know."""
    if unknown := migrations_unknown():
        raise CommandError(
            f"This database was made by another version of Groundwork ({unknown[-1]} is not known here). Start that version, or "
            "set GROUNDWORK_DATA_DIR (or DATABASE_URL) to another database."
        )


class Command(BaseCommand):
    help = "Bring everything up to date: migrations, row-level policies, static files, model, demo."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="do not seed the demo workspaces")
        parser.add_argument(
            "--public",
            action="store_true",
            help="like --no-demo, and switches off the password of an earlier demo, because others can "
            "reach this server",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if wrong := pooler_found():
            raise CommandError(wrong)
        has_demo = not (options["no_demo"] or options["public"])
        hashed = demo_hash_begin(settings.DATA_DIR) if has_demo else None
        with as_login_role():
            adopt(connection)
            _version_check()
            executor = MigrationExecutor(connection)
            pending = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        # Called without pending ones too: the tenant walls are raised after each migrate.
        what = f"applying {pending} migrations" if pending else "checking the tenant walls"
        self._call(what, "migrate", interactive=False, verbosity=0)
        if hasattr(staticfiles_storage, "manifest_name"):  # served from STATIC_ROOT, hashed names
            self._call("collecting static files", "collectstatic", interactive=False, verbosity=0)
        self._call("preparing the embedder's model", "embedder_prepare")
        sign_in = settings.DATA_DIR / "run" / "sign_in.txt"  # `up` shows it
        if not has_demo:
            sign_in.unlink(missing_ok=True)
            if options["public"]:
                self._lock()
            return
        self._call("seeding the demo", "seed_demo", hashed=hashed)
        demo_unlock(settings.DATA_DIR)
        sign_in.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        sign_in.write_text(
            f"Sign in as {EMAIL} or {OTHER_EMAIL} (two workspaces); password of both: "
            f"{demo_password(settings.DATA_DIR)}\n",
            encoding="utf-8",
        )
        sign_in.chmod(0o600)

    def _lock(self) -> None:
        if locked := demo_lock(settings.DATA_DIR):
            self.stdout.write(
                f"an earlier start created demo accounts; their password is switched off: {', '.join(locked)}. "
                f"To keep using one, set your own password: python manage.py changepassword {locked[0]}"
            )

    def _call(self, what: str, command: str, **options: Any) -> None:
        self.stdout.write(what)
        self.stdout.flush()
        call_command(command, **options)
