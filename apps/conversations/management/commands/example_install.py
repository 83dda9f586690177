from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.conversations.assistants.examples import EXAMPLES, example_install
from basics.errors import DomainError
from tenancy.actors import system_actor
from tenancy.operator import tenant_named
from tenancy.scope import tenant_scope


class Command(BaseCommand):
    help = "Add a worked example to a workspace: its assistant, published, with its toolkit and the grants it needs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("name", nargs="?", default=EXAMPLES[0], choices=EXAMPLES)

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        with tenant_scope(tenant.pk):
            try:
                made = example_install(tenant=tenant, actor=system_actor(tenant.pk), name=options["name"])
            except DomainError as error:
                raise CommandError(error.message) from error
        self.stdout.write(f"“{made.name}” is ready in {tenant.slug}: ask it under Chat.")
