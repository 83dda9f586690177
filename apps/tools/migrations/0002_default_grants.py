from django.db import migrations

# What apps.tools.services.grants.DEFAULTS was when this migration was written; no app imports here.
DEFAULTS = (
    ("allow", "builtin", "read_only"),
    ("allow", "collections", "read_only"),
    ("ask", "builtin", "side_effects"),
    ("ask", "collections", "side_effects"),
)


def grant(apps, schema_editor):
    """Give the workspaces that are there already what new ones start with.

    The walls are not raised yet while migrations run, so the rows of all tenants can be written.
    """
    tenant_ids = apps.get_model("tenancy", "Tenant").objects.values_list("pk", flat=True)
    apps.get_model("tools", "ToolGrant").objects.bulk_create(
        apps.get_model("tools", "ToolGrant")(
            tenant_id=tenant_id,
            effect=effect,
            target_kind="group",
            target=group,
            calls=calls,
            note="Every workspace starts with this.",
        )
        for tenant_id in tenant_ids
        for effect, group, calls in DEFAULTS
    )


class Migration(migrations.Migration):
    dependencies = [("tools", "0001_initial"), ("tenancy", "0002_model_entries_and_endpoints")]

    operations = [migrations.RunPython(grant, migrations.RunPython.noop)]
