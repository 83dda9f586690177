from __future__ import annotations

import json
import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from basics.errors import DomainError
from tenancy.models import User
from tenancy.services import tenant_create


class Command(BaseCommand):
    help = (
        "Create a workspace. Its owner is an existing account, or a new one whose password is printed once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="name that people see")
        parser.add_argument("--slug", required=True, help="its part of the URL")
        parser.add_argument("--owner", required=True, metavar="EMAIL")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        email = options["owner"].strip().lower()
        password = ""
        try:
            with transaction.atomic():
                owner = User.objects.filter(email=email).first()
                if owner is None:
                    password = secrets.token_urlsafe(12)
                    owner = User.objects.create_user(email, password)
                tenant = tenant_create(
                    user=owner, name=options["name"], slug=options["slug"], is_operator=True
                )
        except DomainError as error:
            raise CommandError(error.message) from error
        if options["json"]:
            found = {"id": tenant.pk, "slug": tenant.slug, "owner": email, "password": password or None}
            self.stdout.write(json.dumps(found))
            return
        self.stdout.write(f"workspace {tenant.slug} belongs to {email}")
        if password:
            self.stdout.write(f"password of the new account, shown this once: {password}")
