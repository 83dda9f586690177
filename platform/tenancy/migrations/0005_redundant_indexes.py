from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("tenancy", "0004_tenant_sign_in_rules")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "auditchain": ["tenant"],
                "auditevent": ["tenant"],
                "idempotentanswer": ["tenant"],
                "membership": ["tenant"],
                "modelentry": ["tenant"],
                "outgoinghost": ["tenant"],
                "providercredential": ["tenant"],
                "ratebucket": ["tenant"],
                "ratelimit": ["tenant"],
                "writemark": ["tenant"],
            }
        )
    ]
