"""Let a workspace's mail domain count as verified without DNS: ``manage.py domain_verify SLUG DOMAIN``."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from basics.errors import DomainError
from sso.domains import domain_add, domain_mark
from tenancy.actors import system_actor
from tenancy.operator import tenant_named


class Command(BaseCommand):
    help = (
        "Confirm that a mail domain belongs to a workspace, so that its identity provider can sign in people "
        "with addresses there. For servers that can't ask the DNS; be sure of it yourself."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", help="The workspace, as in its address.")
        parser.add_argument("domain", help="For example example.com.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["slug"])
        actor = system_actor(tenant.pk)
        try:
            row = domain_add(tenant=tenant, actor=actor, domain=options["domain"])
            domain_mark(tenant=tenant, actor=actor, pk=row.pk)
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{row.domain} is verified for {tenant.name}.")
