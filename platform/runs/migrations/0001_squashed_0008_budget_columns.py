"""All earlier migrations of this app in one, for new databases: step by step they take Django a minute to prepare."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenancy.fields


class Migration(migrations.Migration):

    replaces = [('runs', '0001_initial'), ('runs', '0002_parking_and_usage'), ('runs', '0003_call_log_columns'), ('runs', '0004_call_log_backfill'), ('runs', '0005_approvers'), ('runs', '0006_call_cost'), ('runs', '0007_reads_and_retention'), ('runs', '0008_budget_columns')]

    initial = True

    dependencies = [
        ('jobs', '0001_initial'),
        ('tenancy', '0001_squashed_0008_oauth_connections'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('model', models.CharField(help_text='With its routing prefix.', max_length=120)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('parked', 'parked (waits for a decision)'), ('completed', 'Completed'), ('stopped', 'Stopped'), ('failed', 'Failed')], default='queued', max_length=10)),
                ('request', models.JSONField(default=dict)),
                ('answer', models.TextField(blank=True)),
                ('last_seq', models.BigIntegerField(default=0)),
                ('stop_requested_at', models.DateTimeField(null=True)),
                ('stop_reason', models.CharField(blank=True, max_length=20)),
                ('limit_reached', models.CharField(blank=True, max_length=30)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('error_message', models.TextField(blank=True)),
                ('is_retryable', models.BooleanField(default=False)),
                ('usage', models.JSONField(default=dict)),
                ('cost_usd', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('pruned_at', models.DateTimeField(help_text='When the retention rule removed what was said in it.', null=True)),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='runs', to='jobs.job')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-created_at'], name='run_tenant_newest'), models.Index(condition=models.Q(('pruned_at__isnull', True)), fields=['tenant', 'finished_at'], name='run_to_prune')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['queued', 'running', 'parked', 'completed', 'stopped', 'failed'])), name='run_status_known')],
            },
        ),
        migrations.CreateModel(
            name='PendingDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.PositiveIntegerField()),
                ('call_id', models.CharField(max_length=200)),
                ('name', models.CharField(max_length=100)),
                ('arguments', models.JSONField(null=True)),
                ('kind', models.CharField(choices=[('approval', 'Approval'), ('external', 'external (answered from outside)')], max_length=10)),
                ('reason', models.TextField(blank=True, help_text='What the tool says to who decides.')),
                ('state', models.JSONField(help_text='What the tool wants back; opaque.', null=True)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('answered', 'Answered'), ('expired', 'Expired'), ('cancelled', 'cancelled (the run ended)')], default='pending', max_length=10)),
                ('decided_at', models.DateTimeField(null=True)),
                ('edited_arguments', models.JSONField(help_text='What runs in their place.', null=True)),
                ('decision_reason', models.TextField(blank=True, help_text='What the model reads.')),
                ('answer', models.TextField(blank=True, help_text="The call's result, given from outside.")),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('expires_at', models.DateTimeField()),
                ('approver', models.CharField(blank=True, help_text='The role, or the id of the person.', max_length=20)),
                ('approver_kind', models.CharField(choices=[('self', 'whoever asked'), ('role', 'somebody else of a role, or above it'), ('member', 'one person, who did not ask')], default='self', help_text="Who decides; whoever asked is the run's user.", max_length=6)),
                ('needs_reason', models.BooleanField(default=False, help_text='A rejection must say why.')),
                ('assigned_to', models.ForeignKey(help_text='Whom somebody has handed it to.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='decisions', to='runs.run')),
            ],
            options={
                'indexes': [models.Index(fields=['run', 'step'], name='decision_of_run'), models.Index(condition=models.Q(('status', 'pending')), fields=['expires_at'], name='decision_expiry'), models.Index(condition=models.Q(('status', 'pending')), fields=['tenant', 'approver_kind', 'approver'], name='decision_inbox'), models.Index(fields=['tenant', '-id'], name='decision_newest')],
                'constraints': [models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'approved', 'rejected', 'answered', 'expired', 'cancelled'])), name='decision_status_known'), models.UniqueConstraint(condition=models.Q(('status', 'pending')), fields=('run', 'step', 'call_id'), name='decision_one_pending_a_call'), models.CheckConstraint(condition=models.Q(models.Q(('approver', ''), ('approver_kind', 'self')), models.Q(('approver_kind__in', ['role', 'member']), models.Q(('approver', ''), _negated=True)), _connector='OR'), name='decision_approver')],
            },
        ),
        migrations.CreateModel(
            name='RunEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seq', models.BigIntegerField()),
                ('kind', models.CharField(max_length=20)),
                ('data', models.JSONField(default=dict)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='events', to='runs.run')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('run', 'seq'), name='run_event_seq')],
            },
        ),
        migrations.CreateModel(
            name='RunRetention',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('days', models.PositiveIntegerField(help_text='0 keeps it for ever.')),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='run_retention_one_a_tenant')],
            },
        ),
        migrations.CreateModel(
            name='RunStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.PositiveIntegerField()),
                ('turn', models.JSONField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='steps', to='runs.run')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('run', 'index'), name='run_step_index')],
            },
        ),
        migrations.CreateModel(
            name='ToolCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.PositiveIntegerField()),
                ('call_id', models.CharField(max_length=200)),
                ('name', models.CharField(max_length=100)),
                ('arguments', models.JSONField(null=True)),
                ('has_side_effects', models.BooleanField(default=False, help_text='Not run again when its outcome is unknown.')),
                ('status', models.CharField(choices=[('running', 'Running'), ('waiting', 'waiting for a decision'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('denied', 'Denied'), ('unknown', 'unknown (started, outcome lost)')], default='running', max_length=10)),
                ('content', models.TextField(blank=True, help_text='What the model was told.')),
                ('payload', models.JSONField(help_text='What stays with the application.', null=True)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('attempts', models.PositiveSmallIntegerField(default=1)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('duration_ms', models.PositiveIntegerField(null=True)),
                ('arguments_masked', models.JSONField(help_text='What is shown in their place, where they hold secrets.', null=True)),
                ('decision', models.CharField(blank=True, choices=[('allow', 'allowed'), ('ask', 'asked (somebody approves each call)'), ('deny', 'denied')], help_text='Of the policy, if asked.', max_length=5)),
                ('decision_why', models.TextField(blank=True)),
                ('parent_call_id', models.CharField(blank=True, help_text='Call of the tool or program that made this one.', max_length=200)),
                ('path', models.CharField(blank=True, choices=[('chat', 'Chat'), ('job', 'Job'), ('code', 'code (a tool or program made it)'), ('rest', 'REST'), ('mcp', 'MCP')], max_length=4)),
                ('result_size', models.PositiveIntegerField(help_text='Characters of the whole output; the model may have been told less.', null=True)),
                ('rule_id', models.BigIntegerField(help_text='The grant that decided.', null=True)),
                ('tool_version', models.CharField(blank=True, max_length=64)),
                ('user_id', models.BigIntegerField(help_text="The run's person; outlives them.", null=True)),
                ('cost_usd', models.DecimalField(decimal_places=8, help_text='Its share of the model turn that made it; empty: not known, or no model made it.', max_digits=14, null=True)),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='tool_calls', to='runs.run')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', 'name', '-started_at'], name='tool_call_by_name'), models.Index(fields=['tenant', '-id'], name='tool_call_newest'), models.Index(fields=['tenant', 'user_id', '-id'], name='tool_call_by_person'), models.Index(fields=['tenant', 'started_at'], name='tool_call_by_time')],
                'constraints': [models.UniqueConstraint(fields=('run', 'step', 'call_id'), name='tool_call_once')],
            },
        ),
        migrations.CreateModel(
            name='UsageRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_id', models.BigIntegerField(null=True)),
                ('user_id', models.BigIntegerField(null=True)),
                ('step', models.PositiveIntegerField(help_text="The run's model turn it paid for.", null=True)),
                ('kind', models.CharField(help_text='What it was for; "turn" for a model turn.', max_length=30)),
                ('provider', models.CharField(max_length=40)),
                ('model', models.CharField(max_length=120)),
                ('input_tokens', models.BigIntegerField(default=0, help_text='All of them, cached ones too.')),
                ('cached_tokens', models.BigIntegerField(default=0, help_text='Read from the prompt cache.')),
                ('cache_write_tokens', models.BigIntegerField(default=0)),
                ('output_tokens', models.BigIntegerField(default=0, help_text='Reasoning included.')),
                ('reasoning_tokens', models.BigIntegerField(default=0)),
                ('cost_usd', models.DecimalField(decimal_places=8, help_text='Empty: the price is not known.', max_digits=14, null=True)),
                ('attribution', models.JSONField(default=dict, help_text='On whose account, and for what.')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('charged_usd', models.DecimalField(decimal_places=8, help_text='What budgets count: the cost, or an estimate where the price is not known.', max_digits=14, null=True)),
                ('hold_id', models.BigIntegerField(help_text='The BudgetHold that this settles.', null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-at'], name='usage_tenant_newest'), models.Index(fields=['tenant', 'user_id', '-at'], name='usage_by_person')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('kind', 'turn')), fields=('run_id', 'step'), name='usage_one_a_turn')],
            },
        ),
        migrations.CreateModel(
            name='ChunkRead',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_id', models.BigIntegerField()),
                ('user_id', models.BigIntegerField(null=True)),
                ('chunk_id', models.BigIntegerField()),
                ('document_id', models.BigIntegerField()),
                ('document_name', models.CharField(max_length=255)),
                ('version', models.PositiveIntegerField(help_text='Of the document.', null=True)),
                ('collection_name', models.CharField(blank=True, max_length=120)),
                ('tool', models.CharField(max_length=100)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-id'], name='chunk_read_newest'), models.Index(fields=['tenant', 'document_id', '-id'], name='chunk_read_of_document'), models.Index(fields=['tenant', 'chunk_id', '-id'], name='chunk_read_of_chunk'), models.Index(fields=['tenant', 'user_id', '-id'], name='chunk_read_by_person')],
                'constraints': [models.UniqueConstraint(fields=('run_id', 'chunk_id'), name='chunk_read_once_a_run')],
            },
        ),
        migrations.RunSQL(
            sql="\nCREATE OR REPLACE FUNCTION budget_settle() RETURNS trigger LANGUAGE plpgsql AS $$\nDECLARE\n    ids bigint[];\n    charged numeric := coalesce(NEW.charged_usd, NEW.cost_usd, 0);\nBEGIN\n    IF charged > 0 THEN\n        ids := ARRAY(\n            SELECT s.spend_id FROM budget_spends(NEW.tenant_id, NEW.user_id, (NEW.attribution->>'api_key_id')::bigint,\n                (NEW.attribution->>'assistant')::bigint, (NEW.attribution->>'budget_job')::bigint) s\n            WHERE NOT s.is_new ORDER BY 1);\n        PERFORM FROM budgets_budgetspend s WHERE s.id = ANY(ids) ORDER BY s.id FOR UPDATE;\n        UPDATE budgets_budgetspend s SET spent_usd = s.spent_usd + charged WHERE s.id = ANY(ids);\n    END IF;\n    IF NEW.hold_id IS NOT NULL THEN\n        DELETE FROM budgets_budgethold h WHERE h.tenant_id = NEW.tenant_id AND h.id = NEW.hold_id;\n    END IF;\n    RETURN NULL;\nEND\n$$;\nCREATE TRIGGER budget_settle AFTER INSERT ON runs_usagerecord FOR EACH ROW EXECUTE FUNCTION budget_settle();\n",
            reverse_sql='DROP TRIGGER budget_settle ON runs_usagerecord; DROP FUNCTION budget_settle();',
        ),
    ]
