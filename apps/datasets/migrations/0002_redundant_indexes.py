from django.db import migrations

from tenancy.upgrades.operations import DropKeyIndexesConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("datasets", "0001_initial")]
    operations = [
        DropKeyIndexesConcurrently(
            {
                "acceptance": ["dataset"],
                "dataset": ["tenant"],
                "datasetversion": ["dataset"],
                "generationjob": ["tenant"],
            }
        )
    ]
