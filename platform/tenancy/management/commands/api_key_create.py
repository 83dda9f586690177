from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from basics.errors import DomainError
from tenancy.models import Membership, Role, Tenant
from tenancy.operator import tenant_named
from tenancy.permissions import BY_NAME_ALONE, KEY_SCOPES
from tenancy.scope import tenant_scope
from tenancy.selectors import user_actor
from tenancy.services import api_key_create


class Command(BaseCommand):
    help = "Create an API key and print it once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument(
            "--scopes",
            required=True,
            help=f"comma-separated, noun.* for all of a noun but {', '.join(sorted(BY_NAME_ALONE))}, "
            f"which must be named; known: {', '.join(sorted(KEY_SCOPES))}",
        )
        parser.add_argument("--name", default="made at the command line")
        parser.add_argument(
            "--user", metavar="EMAIL", help="who it acts for: an owner or admin (default: the first owner)"
        )
        parser.add_argument("--expires-days", type=int, metavar="N", help="default: never")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_named(options["tenant"])
        days = options["expires_days"]
        try:
            row, key = api_key_create(
                tenant=tenant,
                actor=user_actor(self._member(tenant, options["user"])),
                name=options["name"],
                scopes=[s.strip() for s in options["scopes"].split(",") if s.strip()],
                expires_at=timezone.now() + timedelta(days=days) if days is not None else None,
            )
        except DomainError as error:
            raise CommandError(error.message) from error
        if options["json"]:
            found = {
                "id": row.pk,
                "key": key,
                "tenant": tenant.slug,
                "scopes": row.scopes,
                "expires_at": row.expires_at.isoformat() if row.expires_at else None,
            }
            self.stdout.write(json.dumps(found))
        else:
            self.stdout.write(key)

    def _member(self, tenant: Tenant, email: str | None) -> Membership:
        with tenant_scope(tenant.pk):
            members = Membership.objects.select_related("user", "tenant").filter(tenant=tenant)
            if email:
                found = members.filter(user__email__iexact=email).first()
            else:
                found = members.filter(role=Role.OWNER).order_by("pk").first()
        if found is None:
            who = f"no member {email}" if email else "no owner"
            raise CommandError(f"The workspace “{tenant.slug}” has {who} for the key to act for.")
        return found
