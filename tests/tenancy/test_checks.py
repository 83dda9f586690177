"""The system checks find a table that would stand outside the walls."""

from __future__ import annotations

from django.db import models
from django.test.utils import isolate_apps

from apps.collections.models import Collection
from tenancy.checks import tenant_tables
from tenancy.models import Tenant, TenantModel


def ids(*made: type[models.Model]) -> set[tuple[str, str]]:
    return {(m.obj.__name__, str(m.id)) for m in tenant_tables(None) if m.obj in made}


def test_the_models_of_the_platform_pass():
    assert tenant_tables(None) == []


def test_table_outside_the_walls_is_found(monkeypatch):
    with isolate_apps("tenancy"):

        class Loose(models.Model):  # noqa: DJ008
            tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)

            class Meta:
                app_label = "tenancy"

        class Pointing(models.Model):  # noqa: DJ008
            collection = models.ForeignKey(Collection, on_delete=models.CASCADE)

            class Meta:
                app_label = "tenancy"

        class Plain(TenantModel):
            collection = models.ForeignKey(Collection, on_delete=models.CASCADE)

            class Meta:
                app_label = "tenancy"

    made = (Loose, Pointing, Plain)
    monkeypatch.setattr("tenancy.checks.apps.get_models", lambda **kwargs: made)
    assert ids(*made) == {("Loose", "tenancy.E001"), ("Pointing", "tenancy.E002"), ("Plain", "tenancy.E003")}
