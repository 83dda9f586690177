from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("audit", "0001_initial")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "contentread": ["tenant"],
            }
        )
    ]
