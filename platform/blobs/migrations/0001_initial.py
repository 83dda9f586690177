import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

from tenancy.database.initial import InitialMigration


class Migration(InitialMigration):
    dependencies = [
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='PendingBlob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=300)),
                ('due_at', models.DateTimeField()),
                ('removed_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('removed_at__isnull', True)), fields=['due_at'], name='pending_blob_due'), models.Index(condition=models.Q(('removed_at__isnull', False)), fields=['removed_at'], name='pending_blob_gone'), models.Index(fields=['tenant', 'key'], name='pending_blob_key')],
            },
        ),
    ]
