from django.db import migrations, models

from tenancy.upgrades.operations import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('conversations', '0002_pinned'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='conversation',
            index=models.Index(fields=['tenant', 'user', '-is_pinned', '-updated_at'], name='conversation_listed'),
        ),
    ]
