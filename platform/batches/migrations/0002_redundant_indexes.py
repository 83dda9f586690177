from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("batches", "0001_initial")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "batch": ["tenant"],
                "batchline": ["tenant"],
            }
        )
    ]
