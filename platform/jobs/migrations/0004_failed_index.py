from django.db import migrations, models

from tenancy.upgrades.operations import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('jobs', '0003_operating'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(condition=models.Q(('retried_at__isnull', True), ('status', 'failed')), fields=['-finished_at'], name='job_failed'),
        ),
    ]
