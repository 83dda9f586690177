from django.db import migrations, models

from tenancy.upgrades.operations import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('conversations', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='is_pinned',
            field=models.BooleanField(db_default=False, default=False, help_text="Kept at the top of its owner's list."),
        ),
        AddIndexConcurrently(
            model_name='conversation',
            index=models.Index(fields=['tenant', 'user', '-is_pinned', '-updated_at'], name='conversation_listed'),
        ),
    ]
