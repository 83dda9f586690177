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
            name='Job',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('kind', models.CharField(max_length=60)),
                ('payload', models.JSONField(default=dict)),
                ('lane', models.CharField(default='cpu', max_length=4)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                ('dedupe_key', models.CharField(blank=True, max_length=120)),
                ('topic', models.CharField(blank=True, help_text='Channel on which progress is published.', max_length=60)),
                ('user_id', models.BigIntegerField(help_text='Id of the user on whose behalf it runs.', null=True)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('max_attempts', models.PositiveSmallIntegerField(default=3)),
                ('failures', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='Errors raised by its handler.')),
                ('deaths', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='Workers that died in a row during the current step.')),
                ('worker', models.CharField(blank=True, max_length=80)),
                ('lease_expires_at', models.DateTimeField(null=True)),
                ('weight', models.BigIntegerField(help_text='Bytes to process, if known.', null=True)),
                ('worked_s', models.FloatField(default=0, help_text='Seconds worked in the cpu lane so far.')),
                ('recent_s', models.FloatField(default=0, help_text='Seconds worked in the cpu lane recently, as of ``turn_at``.')),
                ('turn_at', models.DateTimeField(help_text='When its last slice ended.', null=True)),
                ('run_after', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('woken_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='When the queue was last notified.')),
                ('progress_current', models.BigIntegerField(default=0)),
                ('progress_total', models.BigIntegerField(default=0)),
                ('progress_message', models.CharField(blank=True, max_length=200)),
                ('cancel_requested_at', models.DateTimeField(null=True)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('error_message', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('status', 'queued')), fields=['status', 'run_after'], name='job_queue'), models.Index(condition=models.Q(('status', 'running')), fields=['lease_expires_at'], name='job_leases'), models.Index(fields=['tenant', '-created_at'], name='job_tenant_newest'), models.Index(condition=models.Q(('lane', 'cpu')), fields=['tenant', 'turn_at'], name='job_turns')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['queued', 'running', 'succeeded', 'failed', 'cancelled'])), name='job_status_known'), models.UniqueConstraint(condition=models.Q(('status__in', ['queued', 'running']), models.Q(('dedupe_key', ''), _negated=True)), fields=('tenant', 'kind', 'dedupe_key'), name='job_one_active_per_dedupe_key')],
            },
        ),
        migrations.CreateModel(
            name='Worker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, unique=True)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('processes', models.PositiveSmallIntegerField(default=1)),
            ],
        ),
    ]
