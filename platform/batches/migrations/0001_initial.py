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
            name='Batch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('owner', models.CharField(help_text='Owner of the calls, such as generation:5.', max_length=60)),
                ('user_id', models.BigIntegerField(help_text='Id of the user on whose behalf it is sent.', null=True)),
                ('round', models.PositiveIntegerField(help_text="1 for the owner's first batch.")),
                ('model', models.CharField(help_text='Model with its provider prefix.', max_length=120)),
                ('mark', models.CharField(help_text="Mark that finds the batch at the provider.", max_length=24)),
                ('handle', models.JSONField(help_text="The provider's reference to the batch, once it has one.", null=True)),
                ('state', models.CharField(choices=[('sending', 'Being sent'), ('out', 'With the provider'), ('ended', 'Ended'), ('refused', 'Refused')], default='sending', max_length=7)),
                ('message', models.CharField(blank=True, help_text='Why it was refused.', max_length=300)),
                ('total', models.PositiveIntegerField(help_text='Number of lines.')),
                ('done', models.PositiveIntegerField(default=0, help_text='Lines with an answer, as far as known.')),
                ('failed', models.PositiveIntegerField(default=0)),
                ('hours', models.PositiveIntegerField(help_text='Hours until the provider gives up on unanswered lines.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('trying_until', models.DateTimeField(help_text='It may be being sent until this time; empty: not started.', null=True)),
                ('sent_at', models.DateTimeField(null=True)),
                ('looked_at', models.DateTimeField(null=True)),
                ('cancelled_at', models.DateTimeField(help_text='When the provider was asked to stop.', null=True)),
                ('ended_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name_plural': 'batches',
                'indexes': [models.Index(fields=['tenant', 'owner', '-id'], name='batch_of_owner')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['sending', 'out', 'ended', 'refused'])), name='batch_state_known')],
            },
        ),
        migrations.CreateModel(
            name='BatchLine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('owner', models.CharField(max_length=60)),
                ('key', models.CharField(help_text="The owner's name for the call.", max_length=39)),
                ('model', models.CharField(help_text='Model with its provider prefix.', max_length=120)),
                ('body', models.TextField(help_text='The request as sent; emptied once it is answered.')),
                ('context', models.JSONField(default=list, help_text='What the owner needs to continue.')),
                ('attribution', models.JSONField(default=dict, help_text='Attribution for the usage record.')),
                ('kind', models.CharField(help_text='Kind for the usage record.', max_length=30)),
                ('state', models.CharField(choices=[('wanted', 'Not sent yet'), ('sent', 'Sent'), ('answered', 'Answered'), ('failed', 'Failed')], default='wanted', max_length=8)),
                ('batch', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', null=True, related_name='lines', to='batches.batch')),
                ('tries', models.PositiveSmallIntegerField(default=0, help_text='Failed attempts.')),
                ('most_usd', models.DecimalField(decimal_places=8, default=0, help_text='Maximum cost in USD, reserved before sending; 0: nothing to reserve.', max_digits=14)),
                ('is_priced', models.BooleanField(default=True)),
                ('hold_id', models.BigIntegerField(help_text='The BudgetHold for it while it is being sent and answered.', null=True)),
                ('turn', models.JSONField(help_text='The answer, as the tool loop stores it.', null=True)),
                ('cost_usd', models.DecimalField(decimal_places=8, max_digits=14, null=True)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('error_message', models.CharField(blank=True, max_length=300)),
                ('wanted_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', 'owner', 'state', 'id'], name='batch_line_of_owner')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['wanted', 'sent', 'answered', 'failed'])), name='batch_line_state_known'), models.UniqueConstraint(fields=('tenant', 'owner', 'key'), name='batch_line_once')],
            },
        ),
    ]
