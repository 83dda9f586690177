"""System checks: a table of a tenant that is not walled is found before it holds a row."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Tags, register

from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel


@register(Tags.models)
def tenant_tables(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Hold every model with a tenant to ``TenantModel``, and its references to ``TenantForeignKey``."""
    found: list[CheckMessage] = []
    for model in apps.get_models(include_auto_created=True):
        is_tenants = issubclass(model, TenantModel)
        names = {f.name for f in model._meta.concrete_fields}
        if "tenant" in names and not is_tenants:
            found.append(
                Error(
                    "A model with a tenant must derive from TenantModel.",
                    hint="Otherwise no wall is raised around its table.",
                    obj=model,
                    id="tenancy.E001",
                )
            )
        for field in model._meta.local_fields:
            target: Any = field.related_model
            if not isinstance(target, type) or not issubclass(target, TenantModel):
                continue
            if not is_tenants:
                found.append(
                    Error(
                        f"“{field.name}” points at a tenant's row from a table without a tenant.",
                        hint="Derive the model from TenantModel.",
                        obj=model,
                        id="tenancy.E002",
                    )
                )
            elif not isinstance(field, TenantForeignKey):
                found.append(
                    Error(
                        f"“{field.name}” must be a TenantForeignKey.",
                        hint="A plain foreign key accepts another tenant's id.",
                        obj=model,
                        id="tenancy.E003",
                    )
                )
        if is_tenants and model._meta.local_many_to_many:
            found.append(
                Error(
                    "A tenant table may have no automatic many-to-many table.",
                    hint="Write the table between as a TenantModel of its own.",
                    obj=model,
                    id="tenancy.E004",
                )
            )
    return found
