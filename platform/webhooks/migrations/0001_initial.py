import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import tenancy.fields
from tenancy.database.initial import InitialMigration


class Migration(InitialMigration):
    dependencies = [
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('url', models.CharField(max_length=2000)),
                ('description', models.CharField(blank=True, max_length=200)),
                ('events', models.JSONField(default=list)),
                ('secret_encrypted', models.BinaryField()),
                ('is_enabled', models.BooleanField(default=True)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='Events in a row that could not be delivered; a delivered one resets it.')),
                ('disabled_at', models.DateTimeField(help_text='When it was switched off after repeated failures.', null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('webhook', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='deliveries', to='webhooks.webhook')),
                ('event_id', models.UUIDField(default=uuid.uuid4)),
                ('event', models.CharField(choices=[('run.finished', 'Run Finished'), ('approval.needed', 'Approval Needed'), ('ingestion.finished', 'Ingestion Finished'), ('ingestion.failed', 'Ingestion Failed'), ('budget.warned', 'Budget Warned'), ('budget.exceeded', 'Budget Exceeded'), ('ping', 'Ping')], max_length=40)),
                ('object_key', models.CharField(max_length=80)),
                ('payload', models.JSONField()),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('delivered', 'Delivered'), ('failed', 'Failed')], default='queued', max_length=10)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('response_status', models.PositiveSmallIntegerField(null=True)),
                ('error', models.CharField(blank=True, max_length=300)),
                ('duration_ms', models.PositiveIntegerField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('attempted_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name_plural': 'webhook deliveries',
                'indexes': [models.Index(fields=['webhook', '-id'], name='delivery_log'), models.Index(condition=models.Q(('status', 'queued')), fields=['webhook', 'object_key', 'id'], name='delivery_waiting'), models.Index(fields=['created_at'], name='delivery_age')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['queued', 'delivered', 'failed'])), name='delivery_status_known')],
            },
        ),
    ]
