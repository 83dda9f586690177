
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import tenancy.fields


class Migration(migrations.Migration):

    dependencies = [
        ('tenancy', '0005_idempotent_answers'),
    ]

    operations = [
        migrations.CreateModel(
            name='RateBucket',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.CharField(max_length=30)),
                ('tokens', models.FloatField()),
                ('updated_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'subject'), name='rate_bucket_one_each')],
            },
        ),
        migrations.CreateModel(
            name='RateLimit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('member', 'a member'), ('key', 'an API key'), ('tenant', 'the whole workspace')], max_length=10)),
                ('per_minute', models.PositiveIntegerField(help_text='Requests a minute that are refilled.')),
                ('burst', models.PositiveIntegerField(help_text='Requests that may come at once.')),
                ('api_key', tenancy.fields.TenantForeignKey(blank=True, db_on_delete='CASCADE', null=True, related_name='+', to='tenancy.apikey')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'kind', 'user', 'api_key'), name='rate_limit_one_each', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('burst__gt', 0), ('per_minute__gt', 0)), name='rate_limit_positive'), models.CheckConstraint(condition=models.Q(models.Q(('api_key', None), ('kind', 'tenant'), ('user', None)), models.Q(('api_key', None), ('kind', 'member')), models.Q(('kind', 'key'), ('user', None)), _connector='OR'), name='rate_limit_subject_of_kind')],
            },
        ),
        migrations.RunSQL(
            "ALTER TABLE tenancy_ratebucket SET UNLOGGED", "ALTER TABLE tenancy_ratebucket SET LOGGED"
        ),
    ]
