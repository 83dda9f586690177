from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0011_service_tiers_and_background")]

    operations = [
        migrations.AlterField(
            model_name="chunkread",
            name="chunk_id",
            field=models.BigIntegerField(help_text="Empty: lines of the file itself.", null=True),
        ),
        migrations.AddConstraint(
            model_name="chunkread",
            constraint=models.UniqueConstraint(
                condition=models.Q(("chunk_id", None)),
                fields=("run_id", "document_id"),
                name="file_read_once_a_run",
            ),
        ),
    ]
