from __future__ import annotations

from collections import Counter
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import Model

from tenancy.actors import system_actor
from tenancy.crypto import DecryptionError, rotate
from tenancy.models import Tenant
from tenancy.scope import platform_scope, tenant_scope
from tenancy.second_factors import factors_rotate
from tenancy.services import audit_record

SUFFIX = "_encrypted"  # how every column is called that holds what ``tenancy.crypto`` made


class Command(BaseCommand):
    help = (
        "Re-encrypt everything with the first of GROUNDWORK_CREDENTIAL_KEYS, so that older keys can be "
        "removed. Safe to run repeatedly and while the platform is running. Exits with 1 if something can't be "
        "read."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        unreadable = 0
        with platform_scope():
            for model in apps.get_models():
                for field in model._meta.concrete_fields:
                    if field.name.endswith(SUFFIX):
                        unreadable += self._column(model, field.name)
            anew, kept, lost = factors_rotate()
        self.stdout.write(f"mfa.Authenticator: {anew} encrypted again, {kept} left, {lost} unreadable")
        unreadable += lost
        if unreadable:
            raise CommandError(
                f"{unreadable} value(s) cannot be read with any key of this server and were left as they are. Restore the key they were stored with, or enter them again."
            )

    def _column(self, model: type[Model], name: str) -> int:
        """Bring one column to the first key; return how many of its values cannot be read."""
        done: Counter[int] = Counter()
        kept = unreadable = 0
        rows = model._default_manager.filter(**{f"{name}__isnull": False}).order_by("pk")
        for pk, tenant_id, stored in rows.values_list("pk", "tenant_id", name).iterator(chunk_size=200):
            try:
                new = rotate(stored)
            except DecryptionError:
                unreadable += 1
                self.stderr.write(f"{model._meta.label} {pk}: cannot be read")
                continue
            # Only what was read is replaced: a secret that somebody has entered since is under the first key already.
            changed = new is not None and rows.filter(pk=pk, **{name: bytes(stored)}).update(**{name: new})
            done[tenant_id] += changed
            kept += not changed
        for tenant in Tenant.objects.filter(pk__in=+done):
            with tenant_scope(tenant.pk), transaction.atomic():
                audit_record(
                    tenant=tenant,
                    actor=system_actor(tenant.pk),
                    action="credential.rotate",
                    data={"kind": str(model._meta.verbose_name), "count": done[tenant.pk]},
                )
        self.stdout.write(
            f"{model._meta.label}: {done.total()} encrypted again, {kept} left, {unreadable} unreadable"
        )
        return unreadable
