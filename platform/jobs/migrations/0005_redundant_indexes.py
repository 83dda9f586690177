from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("jobs", "0004_failed_index")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "job": ["tenant"],
            }
        )
    ]
