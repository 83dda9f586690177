from django.db import migrations, models

from tenancy.upgrades.operations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("collections", "0001_initial")]
    operations = [
        AddIndexConcurrently(
            "document", models.Index(fields=["tenant", "sha256"], name="document_content")
        ),
    ]
