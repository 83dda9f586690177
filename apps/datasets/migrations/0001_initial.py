import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenancy.fields
from tenancy.database.initial import InitialMigration

# No field of the model: nobody reads them, apps.datasets.rows.search finds rows by them. Kept in a column, because a page of
# a frequent word made them anew for each of 1,001 rows.
WORDS = """
ALTER TABLE datasets_datasetrow ADD COLUMN words tsvector GENERATED ALWAYS AS (
    to_tsvector('simple'::regconfig, left(question, 20000) || ' ' || left(answer, 100000))
    || to_tsvector('simple'::regconfig, jsonb_path_query_array(sources, '$[*].document'))
    || to_tsvector('simple'::regconfig,
        regexp_replace(jsonb_path_query_array(sources, '$[*].document')::text, '[^[:alnum:]]+', ' ', 'g'))
    || array_to_tsvector(ARRAY['dataset ' || dataset_id::text])
) STORED;
CREATE INDEX dataset_row_words ON datasets_datasetrow USING gin (words) WITH (fastupdate = off);
"""
UNWORDS = "ALTER TABLE datasets_datasetrow DROP COLUMN words"


class Migration(InitialMigration):
    dependencies = [
        ('jobs', '0001_initial'),
        ('runs', '0001_initial'),
        ('tenancy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Dataset',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('slug', models.SlugField(help_text='Name in the API and in files.', max_length=60)),
                ('name', models.CharField(max_length=120)),
                ('description', models.TextField(blank=True)),
                ('needs_two_people', models.BooleanField(default=False, help_text='A row counts as approved when two people have approved it.')),
                ('options', models.JSONField(default=dict, help_text='Settings that its checks and exports share.')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-updated_at'], name='dataset_recent')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'slug'), name='dataset_one_per_slug')],
            },
        ),
        migrations.CreateModel(
            name='DatasetRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('dataset', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='rows', to='datasets.dataset')),
                ('content_hash', models.CharField(max_length=64)),
                ('question', models.TextField()),
                ('answer', models.TextField(blank=True)),
                ('type', models.CharField(blank=True, choices=[('factual', 'Factual'), ('multi_hop', 'Multi-hop'), ('comparison', 'Comparison'), ('how_to', 'How-to'), ('code', 'Code'), ('unanswerable', 'Unanswerable'), ('adversarial', 'Adversarial'), ('injected', 'Injected instructions'), ('contradictory', 'Contradicting sources'), ('multi_turn', 'Several turns')], help_text='Empty: unknown.', max_length=14)),
                ('difficulty', models.CharField(blank=True, choices=[('easy', 'Easy'), ('medium', 'Medium'), ('hard', 'Hard')], max_length=6)),
                ('expected', models.CharField(choices=[('answer', 'Answers'), ('abstain', "Says the documents don't answer this"), ('refuse', 'Refuses'), ('cite_all', 'Names all conflicting sources')], default='answer', max_length=10)),
                ('language', models.CharField(blank=True, max_length=20)),
                ('rationale', models.TextField(blank=True, help_text='Why the question is worth asking.')),
                ('steps', models.JSONField(default=list, help_text='Reasoning: step, thought, action, input, observation.')),
                ('sources', models.JSONField(default=list, help_text='Passages: document, offsets, quote, chunk.')),
                ('scores', models.JSONField(default=list, help_text='Name, value 0 to 1, level 1 to 5, evidence, author.')),
                ('quality', models.FloatField(help_text='Weighted score, 0 to 1.', null=True)),
                ('extra', models.JSONField(default=dict, help_text='Rarely used fields: rejected, messages, tools, meta.')),
                ('status', models.CharField(choices=[('draft', 'Draft'), ('review', 'In review'), ('approved', 'Approved'), ('rejected', 'Rejected')], default='draft', max_length=8)),
                ('split', models.CharField(blank=True, choices=[('train', 'Train'), ('validation', 'Validation'), ('test', 'Test')], max_length=10)),
                ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=60), blank=True, default=list, size=None)),
                ('lineage', models.JSONField(default=dict, help_text='Origin of the row: generation job and item, import, conversation, edits.')),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='The run that produced the answer.', null=True, related_name='+', to='runs.run')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'indexes': [models.Index(fields=['dataset', 'id'], name='dataset_row_order'), models.Index(fields=['dataset', 'status', 'id'], include=('tenant',), name='dataset_row_status'), models.Index(fields=['dataset', 'type', 'id'], name='dataset_row_type'), models.Index(fields=['dataset', 'difficulty', 'id'], name='dataset_row_difficulty'), models.Index(fields=['dataset', 'split', 'id'], name='dataset_row_split')],
                'constraints': [models.UniqueConstraint(fields=('dataset', 'content_hash'), name='dataset_row_once'), models.CheckConstraint(condition=models.Q(('status__in', ['draft', 'review', 'approved', 'rejected'])), name='dataset_row_status_known')],
            },
        ),
        migrations.CreateModel(
            name='RowReview',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('row', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='reviews', to='datasets.datasetrow')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('verdict', models.CharField(choices=[('approve', 'Approve'), ('reject', 'Reject')], max_length=7)),
                ('note', models.TextField(blank=True)),
                ('content_hash', models.CharField(help_text="Hash of the row's content when it was reviewed.", max_length=64)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='RowContent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('dataset', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='contents', to='datasets.dataset')),
                ('hash', models.CharField(help_text='SHA-256 of the canonical JSON.', max_length=64)),
                ('data', models.JSONField(help_text='See apps.datasets.records.record.Record.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('dataset', 'hash'), name='row_content_once')],
            },
        ),
        migrations.CreateModel(
            name='DatasetVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('dataset', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='versions', to='datasets.dataset')),
                ('number', models.PositiveIntegerField()),
                ('content_hash', models.CharField(help_text="SHA-256 over the rows' hashes, in order.", max_length=64)),
                ('row_count', models.PositiveIntegerField()),
                ('manifest', models.JSONField(default=dict, help_text='Corpus fingerprint, prompts, models, filters, counts.')),
                ('signature', models.CharField(blank=True, help_text="HMAC-SHA-256 of hash and manifest, with the server's key.", max_length=64)),
                ('note', models.CharField(blank=True, max_length=200)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('dataset', 'number'), name='dataset_version_number')],
            },
        ),
        migrations.CreateModel(
            name='VersionRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('version', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='members', to='datasets.datasetversion')),
                ('position', models.PositiveIntegerField()),
                ('content', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='datasets.rowcontent')),
                ('row_ref', models.BigIntegerField(help_text='Id of the row it was made from; versions are compared by it.')),
                ('split', models.CharField(blank=True, choices=[('train', 'Train'), ('validation', 'Validation'), ('test', 'Test')], max_length=10)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'position'), name='version_row_position'), models.UniqueConstraint(fields=('version', 'row_ref'), include=('tenant', 'content'), name='version_row_once')],
            },
        ),
        migrations.CreateModel(
            name='DatasetExport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('status', models.CharField(choices=[('queued', 'Waiting'), ('running', 'Running'), ('completed', 'Completed'), ('blocked', 'Needs a decision'), ('failed', 'Failed'), ('cancelled', 'Stopped')], default='queued', max_length=9)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('error_message', models.TextField(blank=True)),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('dataset', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='exports', to='datasets.dataset')),
                ('version', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='exports', to='datasets.datasetversion')),
                ('format', models.CharField(max_length=20)),
                ('split', models.CharField(blank=True, help_text='Empty: all rows.', max_length=10)),
                ('file', models.CharField(blank=True, help_text='Key in the file storage.', max_length=255)),
                ('size', models.PositiveBigIntegerField(default=0, help_text='Bytes.')),
                ('rows', models.PositiveIntegerField(default=0, help_text='Rows read back from the file unchanged.')),
                ('left_out', models.PositiveIntegerField(default=0, help_text="Rows that the format can't hold.")),
                ('problems', models.JSONField(default=list, help_text='What the validator found.')),
                ('findings', models.JSONField(default=list, help_text='Findings to decide on before exporting: kind, row, field, shown, fingerprint.')),
                ('finding_count', models.PositiveIntegerField(default=0, help_text='Total number of findings, listed or not.')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='DatasetImport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('status', models.CharField(choices=[('queued', 'Waiting'), ('running', 'Running'), ('completed', 'Completed'), ('blocked', 'Needs a decision'), ('failed', 'Failed'), ('cancelled', 'Stopped')], default='queued', max_length=9)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('error_message', models.TextField(blank=True)),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('dataset', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='imports', to='datasets.dataset')),
                ('format', models.CharField(max_length=20)),
                ('name', models.CharField(help_text='Name of the file, as given.', max_length=255)),
                ('file', models.CharField(blank=True, help_text='Key in the file storage.', max_length=255)),
                ('is_trial', models.BooleanField(default=False)),
                ('found', models.PositiveIntegerField(default=0, help_text='Rows that could be read.')),
                ('created', models.PositiveIntegerField(default=0)),
                ('duplicates', models.PositiveIntegerField(default=0, help_text='Rows that already existed or occur twice in the file.')),
                ('failed', models.PositiveIntegerField(default=0, help_text='Rows that could not be read.')),
                ('problems', models.JSONField(default=list, help_text='The first unreadable rows: row, message, text.')),
                ('errors_file', models.CharField(blank=True, help_text='Key of the file that lists all unreadable rows.', max_length=255)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='DatasetCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('status', models.CharField(choices=[('queued', 'Waiting'), ('running', 'Running'), ('completed', 'Completed'), ('blocked', 'Needs a decision'), ('failed', 'Failed'), ('cancelled', 'Stopped')], default='queued', max_length=9)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('error_message', models.TextField(blank=True)),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('dataset', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='checks', to='datasets.dataset')),
                ('kind', models.CharField(choices=[('duplicates', 'Duplicates'), ('contamination', 'Contamination'), ('secrets', 'Personal data and secrets'), ('splits', 'Splits by document'), ('coverage', 'Coverage of the collections')], max_length=13)),
                ('options', models.JSONField(default=dict)),
                ('result', models.JSONField(default=dict, help_text='Counts, and the first findings.')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Acceptance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('dataset', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='acceptances', to='datasets.dataset')),
                ('fingerprint', models.CharField(max_length=64)),
                ('kind', models.CharField(max_length=20)),
                ('shown', models.CharField(help_text='The finding, masked.', max_length=200)),
                ('note', models.CharField(blank=True, max_length=300)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('dataset', 'fingerprint'), name='acceptance_once')],
            },
        ),
        migrations.CreateModel(
            name='GenerationJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('dataset', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='jobs', to='datasets.dataset')),
                ('options', models.JSONField(help_text='See apps.datasets.generation.settings.Settings.')),
                ('model', models.CharField(help_text='Model with its provider prefix.', max_length=120)),
                ('state', models.CharField(choices=[('queued', 'Waiting'), ('running', 'Running'), ('paused', 'Paused'), ('stopped', 'Stopped'), ('completed', 'Completed'), ('failed', 'Failed')], default='queued', max_length=9)),
                ('reason', models.CharField(blank=True, help_text='Why the job is waiting or has ended.', max_length=300)),
                ('actor', models.JSONField(default=dict, help_text='Who requested it, as runs.actors stores it.')),
                ('probe', models.PositiveIntegerField(default=0, help_text="Pause after this many finished items to estimate the rest; 0: don't pause.")),
                ('estimate', models.JSONField(default=dict, help_text='Estimated total cost: low, middle, high in USD, and the number of items it is based on.')),
                ('budget_usd', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ('spent_usd', models.DecimalField(decimal_places=8, default=0, help_text='USD spent on items that have ended.', max_digits=14)),
                ('wanted', models.PositiveIntegerField(default=0, help_text='Rows requested.')),
                ('kept', models.PositiveIntegerField(default=0)),
                ('dropped', models.PositiveIntegerField(default=0)),
                ('failed', models.PositiveIntegerField(default=0)),
                ('shortfall', models.JSONField(default=list, help_text='Quotas that were not met: type, difficulty, missing, why.')),
                ('manifest', models.JSONField(default=dict, help_text='Corpus fingerprint, collections and prompts when the job started.')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-id'], name='generation_job_newest')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'running', 'paused', 'stopped', 'completed', 'failed'])), name='generation_job_state_known')],
            },
        ),
        migrations.CreateModel(
            name='GenerationItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('job', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='items', to='datasets.generationjob')),
                ('slot', models.PositiveIntegerField()),
                ('round', models.PositiveSmallIntegerField(default=0)),
                ('type', models.CharField(choices=[('factual', 'Factual'), ('multi_hop', 'Multi-hop'), ('comparison', 'Comparison'), ('how_to', 'How-to'), ('code', 'Code'), ('unanswerable', 'Unanswerable'), ('adversarial', 'Adversarial'), ('injected', 'Injected instructions'), ('contradictory', 'Contradicting sources'), ('multi_turn', 'Several turns')], max_length=14)),
                ('difficulty', models.CharField(choices=[('easy', 'Easy'), ('medium', 'Medium'), ('hard', 'Hard')], max_length=6)),
                ('chunks', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('state', models.CharField(choices=[('spare', 'Spare'), ('question', 'Question'), ('filter', 'Filter'), ('answer', 'Answer'), ('follow_up', 'Follow-up'), ('synthesis', 'Synthesis'), ('judge', 'Judge'), ('repair', 'Repair'), ('assemble', 'Assembly'), ('kept', 'Kept'), ('dropped', 'Dropped'), ('failed', 'Failed')], default='question', max_length=9)),
                ('reason', models.CharField(blank=True, help_text='Why it was dropped or failed.', max_length=300)),
                ('data', models.JSONField(default=dict, help_text='Results of its stages so far.')),
                ('repairs', models.PositiveSmallIntegerField(default=0)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='Failed attempts.')),
                ('deaths', models.PositiveSmallIntegerField(db_default=0, default=0, help_text='Workers that died in a row while the item made no progress.')),
                ('not_before', models.DateTimeField(help_text='Earliest time of the next attempt.', null=True)),
                ('driver', models.CharField(blank=True, help_text='Job and attempt that are working on it.', max_length=40)),
                ('reserved_usd', models.DecimalField(decimal_places=8, default=0, max_digits=14)),
                ('spent_usd', models.DecimalField(decimal_places=8, default=0, max_digits=14)),
                ('row', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='datasets.datasetrow')),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'indexes': [models.Index(fields=['job', 'state', 'id'], name='generation_item_state'), models.Index(fields=['job', '-updated_at'], name='generation_item_latest')],
                'constraints': [models.UniqueConstraint(fields=('job', 'slot', 'round'), name='generation_item_once')],
            },
        ),
        migrations.CreateModel(
            name='PaidCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('job', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='paid_calls', to='datasets.generationjob')),
                ('item', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='paid_calls', to='datasets.generationitem')),
                ('stage', models.CharField(choices=[('spare', 'Spare'), ('question', 'Question'), ('filter', 'Filter'), ('answer', 'Answer'), ('follow_up', 'Follow-up'), ('synthesis', 'Synthesis'), ('judge', 'Judge'), ('repair', 'Repair'), ('assemble', 'Assembly'), ('kept', 'Kept'), ('dropped', 'Dropped'), ('failed', 'Failed')], max_length=9)),
                ('attempt', models.PositiveSmallIntegerField(help_text='0, or the number of the repair it belongs to.')),
                ('step', models.PositiveSmallIntegerField(help_text="Turn in the stage's loop.")),
                ('turn', models.JSONField(help_text="The model's turn, as the tool loop stores it.")),
                ('results', models.JSONField(default=list, help_text='Results of the tools that the previous turn called.')),
                ('input_tokens', models.BigIntegerField(default=0)),
                ('output_tokens', models.BigIntegerField(default=0)),
                ('cost_usd', models.DecimalField(decimal_places=8, help_text='Empty: the price is unknown.', max_digits=14, null=True)),
                ('duration_ms', models.PositiveIntegerField(default=0)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'indexes': [models.Index(fields=['job', 'stage'], name='paid_call_stage')],
                'constraints': [models.UniqueConstraint(fields=('item', 'stage', 'attempt', 'step'), name='paid_call_once')],
            },
        ),
        migrations.RunSQL(WORDS, UNWORDS),
    ]
