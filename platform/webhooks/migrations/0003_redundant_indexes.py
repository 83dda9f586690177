from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("webhooks", "0002_previous_secret")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "webhookdelivery": ["webhook"],
            }
        )
    ]
