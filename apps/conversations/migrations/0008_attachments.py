from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0007_tools_switched_off"),
        ("collections", "0012_private_collections"),
    ]

    operations = [
        migrations.RemoveField(model_name="attachment", name="text"),
        migrations.AlterField(
            model_name="queuedquestion",
            name="request",
            field=models.JSONField(
                help_text="Who asks, as a run's request has it, and ids of the files that go with it."
            ),
        ),
    ]
