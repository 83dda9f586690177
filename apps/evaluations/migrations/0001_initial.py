import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenancy.fields


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('datasets', '0002_record_fields'),
        ('jobs', '0001_initial'),
        ('runs', '0007_reads_and_retention'),
        ('tenancy', '0006_rate_limits'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='AnnotationQueue',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120)),
                ('reviews', models.PositiveSmallIntegerField(default=2, help_text='People per answer.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('closed_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='AnnotationItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('queue', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='items', to='evaluations.annotationqueue')),
            ],
        ),
        migrations.CreateModel(
            name='Arm',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField()),
                ('name', models.CharField(max_length=160)),
                ('target', models.JSONField(help_text='See apps.evaluations.targets.')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('open', 'Open'), ('done', 'Done'), ('skipped', 'Skipped')], default='open', max_length=7)),
                ('note', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('item', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='assignments', to='evaluations.annotationitem')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['user', 'state'], name='assignment_of_person')],
                'constraints': [models.UniqueConstraint(fields=('item', 'user'), name='assignment_one_a_person')],
            },
        ),
        migrations.CreateModel(
            name='Baseline',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(default='main', max_length=60)),
                ('note', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('arm', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='evaluations.arm')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('dataset', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='datasets.dataset')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['dataset', 'name', '-id'], name='baseline_newest')],
            },
        ),
        migrations.CreateModel(
            name='Experiment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120)),
                ('split', models.CharField(blank=True, help_text='Empty: all rows.', max_length=10)),
                ('repeats', models.PositiveSmallIntegerField(default=1)),
                ('scorers', models.JSONField(help_text='List of kind and options; see scorers.registry.')),
                ('concurrency', models.PositiveSmallIntegerField(default=4, help_text='Trials at a time.')),
                ('budget_usd', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ('state', models.CharField(choices=[('running', 'Running'), ('paused', 'Paused'), ('stopped', 'Stopped'), ('completed', 'Completed')], default='running', max_length=9)),
                ('reason', models.CharField(blank=True, help_text='Why it waits or was stopped.', max_length=300)),
                ('corpus', models.CharField(blank=True, help_text='Fingerprint of the documents its arms search.', max_length=64)),
                ('actor', models.JSONField(default=dict, help_text='Who asked, as runs.actors keeps it.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('dataset', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', help_text='Of the version.', related_name='+', to='datasets.dataset')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('version', tenancy.fields.TenantForeignKey(db_on_delete='RESTRICT', help_text='The rows.', related_name='+', to='datasets.datasetversion')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-id'], name='experiment_newest')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['running', 'paused', 'stopped', 'completed'])), name='experiment_state_known'), models.CheckConstraint(condition=models.Q(('repeats__gte', 1)), name='experiment_repeats_positive')],
            },
        ),
        migrations.AddField(
            model_name='arm',
            name='experiment',
            field=tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='arms', to='evaluations.experiment'),
        ),
        migrations.AddField(
            model_name='annotationqueue',
            name='experiment',
            field=tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='evaluations.experiment'),
        ),
        migrations.CreateModel(
            name='Rubric',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=40)),
                ('name', models.CharField(max_length=120)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'slug'), name='rubric_one_per_slug')],
            },
        ),
        migrations.CreateModel(
            name='RubricVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('criteria', models.JSONField(help_text='See apps.datasets.rubric.Criterion.')),
                ('note', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('rubric', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='versions', to='evaluations.rubric')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('rubric', 'number'), name='rubric_version_number')],
            },
        ),
        migrations.AddField(
            model_name='annotationqueue',
            name='rubric_version',
            field=tenancy.fields.TenantForeignKey(db_on_delete='RESTRICT', help_text='What is asked.', related_name='+', to='evaluations.rubricversion'),
        ),
        migrations.CreateModel(
            name='ScoreCache',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(help_text="SHA-256 of the judge's prompt, form, model and input.", max_length=64)),
                ('model', models.CharField(max_length=120)),
                ('value', models.JSONField(help_text='The checked answer.')),
                ('cost_usd', models.DecimalField(decimal_places=8, max_digits=14, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'key'), name='score_cache_once')],
            },
        ),
        migrations.CreateModel(
            name='Trial',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('row_ref', models.BigIntegerField(help_text="The row's id, the same in every version.")),
                ('position', models.PositiveIntegerField(help_text='Of the row in the version.')),
                ('repeat', models.PositiveSmallIntegerField(default=0)),
                ('state', models.CharField(choices=[('pending', 'Waiting'), ('answering', 'Answering'), ('scoring', 'Scoring'), ('done', 'Done'), ('failed', 'Failed')], default='pending', max_length=9)),
                ('answer', models.TextField(blank=True)),
                ('outcome', models.JSONField(default=dict, help_text='Passages, citations, calls, labels; see apps.evaluations.outcomes.')),
                ('error', models.CharField(blank=True, help_text='Why there is no answer.', max_length=500)),
                ('latency_ms', models.FloatField(null=True)),
                ('cost_usd', models.DecimalField(decimal_places=8, help_text='Empty: the price is not known.', max_digits=14, null=True)),
                ('judge_usd', models.DecimalField(decimal_places=8, default=0, max_digits=14)),
                ('finished_at', models.DateTimeField(null=True)),
                ('arm', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='trials', to='evaluations.arm')),
                ('content', tenancy.fields.TenantForeignKey(db_on_delete='RESTRICT', related_name='+', to='datasets.rowcontent')),
                ('experiment', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='trials', to='evaluations.experiment')),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='runs.run')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['experiment', 'state', 'id'], name='trial_state'), models.Index(fields=['arm', 'position', 'repeat'], name='trial_order')],
                'constraints': [models.UniqueConstraint(fields=('arm', 'row_ref', 'repeat'), name='trial_once'), models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'answering', 'scoring', 'done', 'failed'])), name='trial_state_known')],
            },
        ),
        migrations.CreateModel(
            name='Score',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('value', models.FloatField(help_text='0 to 1; empty: unscored.', null=True)),
                ('level', models.FloatField(help_text='On the scale it was judged by, 1 to 5.', null=True)),
                ('reason', models.TextField(blank=True)),
                ('evidence', models.TextField(blank=True)),
                ('details', models.JSONField(default=dict)),
                ('author_kind', models.CharField(choices=[('rule', 'Rule'), ('judge', 'Judge'), ('person', 'Person')], max_length=6)),
                ('author', models.CharField(help_text='Scorer with its version, or person with their number.', max_length=300)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('assignment', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='scores', to='evaluations.assignment')),
                ('rubric_version', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='evaluations.rubricversion')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('trial', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='scores', to='evaluations.trial')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('trial', 'name', 'author'), name='score_once'), models.CheckConstraint(condition=models.Q(('value__isnull', True), models.Q(('value__gte', 0), ('value__lte', 1)), _connector='OR'), name='score_value_range')],
            },
        ),
        migrations.AddField(
            model_name='annotationitem',
            name='trial',
            field=tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='evaluations.trial'),
        ),
        migrations.AddConstraint(
            model_name='arm',
            constraint=models.UniqueConstraint(fields=('experiment', 'position'), name='arm_position'),
        ),
        migrations.AddConstraint(
            model_name='annotationqueue',
            constraint=models.CheckConstraint(condition=models.Q(('reviews__gte', 1)), name='annotation_reviews_positive'),
        ),
        migrations.AddConstraint(
            model_name='annotationitem',
            constraint=models.UniqueConstraint(fields=('queue', 'trial'), name='annotation_item_once'),
        ),
        migrations.AddConstraint(
            model_name='annotationitem',
            constraint=models.UniqueConstraint(fields=('queue', 'position'), name='annotation_item_position'),
        ),
    ]
