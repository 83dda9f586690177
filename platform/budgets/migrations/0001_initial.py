import django.contrib.postgres.fields
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
            name='Budget',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('kind', models.CharField(choices=[('tenant', 'the whole workspace'), ('member', 'a member'), ('key', 'an API key'), ('assistant', 'an assistant'), ('job', 'a job')], max_length=10)),
                ('subject_id', models.BigIntegerField(blank=True, help_text='Id of the person, key, assistant or job; empty: each of them.', null=True)),
                ('period', models.CharField(choices=[('day', 'a day'), ('month', 'a month'), ('total', 'in total')], default='month', max_length=5)),
                ('amount_usd', models.DecimalField(decimal_places=4, max_digits=12)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'kind', 'subject_id', 'period'), name='budget_one_each', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('amount_usd__gte', 0)), name='budget_not_negative'), models.CheckConstraint(condition=models.Q(models.Q(('kind', 'tenant'), ('subject_id', None)), ('kind__in', ['member', 'key', 'assistant']), models.Q(('kind', 'job'), ('subject_id__isnull', False)), _connector='OR'), name='budget_subject_of_kind')],
            },
        ),
        migrations.CreateModel(
            name='BudgetSpend',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('budget', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='spends', to='budgets.budget')),
                ('subject_id', models.BigIntegerField(default=0, help_text='Id of the person, key, assistant or job that spent it; 0 for the workspace.')),
                ('starts_at', models.DateTimeField()),
                ('spent_usd', models.DecimalField(decimal_places=8, default=0, max_digits=16)),
                ('warned_at', models.DateTimeField(help_text='When people were told that 80 % was spent.', null=True)),
                ('refused_at', models.DateTimeField(help_text='When a call first found the budget used up.', null=True)),
                ('exceeded_at', models.DateTimeField(help_text='When people were told that it was used up.', null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('budget', 'subject_id', 'starts_at'), name='budget_spend_one_a_period')],
            },
        ),
        migrations.CreateModel(
            name='BudgetHold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('spends', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), help_text='Ids of the BudgetSpend rows it counts towards.', size=None)),
                ('run_id', models.BigIntegerField(null=True)),
                ('amount_usd', models.DecimalField(decimal_places=8, max_digits=16)),
                ('expires_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', 'expires_at'], name='budget_hold_open'), models.Index(condition=models.Q(('run_id__isnull', False)), fields=['run_id'], name='budget_hold_of_run')],
            },
        ),
        migrations.CreateModel(
            name='BudgetRules',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('refuses_unpriced', models.BooleanField(default=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name_plural': 'budget rules',
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='budget_rules_one_a_tenant')],
            },
        ),
    ]
