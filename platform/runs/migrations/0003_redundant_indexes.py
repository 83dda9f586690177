from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0002_settle_by_tenant")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "chunkread": ["tenant"],
                "pendingdecision": ["run", "tenant"],
                "run": ["tenant"],
                "runevent": ["run"],
                "runretention": ["tenant"],
                "runstep": ["run"],
                "toolcall": ["run", "tenant"],
                "usagerecord": ["tenant"],
            }
        )
    ]
