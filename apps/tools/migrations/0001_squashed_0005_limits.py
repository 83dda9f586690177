"""All earlier migrations of this app in one, for new databases: step by step they take Django a minute to prepare."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tenancy.fields


class Migration(migrations.Migration):

    replaces = [('tools', '0001_initial'), ('tools', '0002_default_grants'), ('tools', '0003_catalog'), ('tools', '0004_approvers'), ('tools', '0005_limits')]

    initial = True

    dependencies = [
        ('collections', '0001_squashed_0011_file_batches'),
        ('tenancy', '0001_squashed_0008_oauth_connections'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Toolkit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80)),
                ('description', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='toolkit_one_per_name')],
            },
        ),
        migrations.CreateModel(
            name='ToolGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('effect', models.CharField(choices=[('allow', 'Allow'), ('ask', 'ask (somebody approves each call)'), ('deny', 'Deny')], max_length=5)),
                ('target_kind', models.CharField(choices=[('tool', 'Tool'), ('group', 'Group'), ('pattern', 'pattern of names'), ('toolkit', 'Toolkit')], max_length=10)),
                ('target', models.CharField(blank=True, help_text='Name, group or pattern; empty for a toolkit.', max_length=120)),
                ('calls', models.CharField(choices=[('any', 'all of them'), ('read_only', 'those that only read'), ('side_effects', 'those with side effects')], default='any', max_length=12)),
                ('subject_kind', models.CharField(choices=[('everyone', 'Everyone'), ('role', 'Role'), ('member', 'Member'), ('api_key', 'API key')], default='everyone', max_length=10)),
                ('subject', models.CharField(blank=True, help_text='The role, or the id of the person or key.', max_length=20)),
                ('arguments', models.JSONField(blank=True, default=list, help_text="Conditions on the call's arguments; all must hold.")),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('note', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('approval_hours', models.PositiveSmallIntegerField(blank=True, help_text="Hours a call may wait; empty takes the server's setting.", null=True)),
                ('approver', models.CharField(blank=True, help_text='The role, or the id of the person.', max_length=20)),
                ('approver_kind', models.CharField(choices=[('self', 'whoever asked'), ('role', 'somebody else of a role, or above it'), ('member', 'one person, who did not ask')], default='self', help_text='Who decides, when the effect is ask.', max_length=6)),
                ('needs_reason', models.BooleanField(default=False, help_text='A rejection must say why.')),
                ('collection', tenancy.fields.TenantForeignKey(blank=True, db_on_delete='CASCADE', null=True, related_name='+', to='collections.collection')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('toolkit', tenancy.fields.TenantForeignKey(blank=True, db_on_delete='CASCADE', null=True, related_name='grants', to='tools.toolkit')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', 'subject_kind', 'subject'], name='tool_grant_of_subject')],
                'constraints': [models.CheckConstraint(condition=models.Q(('effect__in', ['allow', 'ask', 'deny'])), name='tool_grant_effect'), models.CheckConstraint(condition=models.Q(models.Q(('target', ''), ('target_kind', 'toolkit'), ('toolkit__isnull', False)), models.Q(('target_kind__in', ['tool', 'group', 'pattern']), ('toolkit__isnull', True), models.Q(('target', ''), _negated=True)), _connector='OR'), name='tool_grant_target'), models.CheckConstraint(condition=models.Q(('calls__in', ['any', 'read_only', 'side_effects'])), name='tool_grant_calls'), models.CheckConstraint(condition=models.Q(models.Q(('subject', ''), ('subject_kind', 'everyone')), models.Q(('subject_kind__in', ['role', 'member', 'api_key']), models.Q(('subject', ''), _negated=True)), _connector='OR'), name='tool_grant_subject'), models.CheckConstraint(condition=models.Q(models.Q(('approver', ''), ('approver_kind', 'self')), models.Q(('approver_kind__in', ['role', 'member']), ('effect', 'ask'), models.Q(('approver', ''), _negated=True)), _connector='OR'), name='tool_grant_approver'), models.CheckConstraint(condition=models.Q(('approval_hours__isnull', True), ('approval_hours__gt', 0), _connector='OR'), name='tool_grant_approval_hours')],
            },
        ),
        migrations.CreateModel(
            name='ToolkitMember',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tool_name', models.CharField(max_length=64)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('toolkit', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='members', to='tools.toolkit')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('toolkit', 'tool_name'), name='toolkit_member_once')],
            },
        ),
        migrations.CreateModel(
            name='ToolLimit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('tenant', 'the whole workspace together'), ('member', 'a member'), ('key', 'an API key')], max_length=10)),
                ('target_kind', models.CharField(choices=[('all', 'all tools together'), ('group', 'a group of tools together'), ('tool', 'one tool')], default='all', max_length=5)),
                ('target', models.CharField(blank=True, help_text='Name of the tool or group; empty for all.', max_length=120)),
                ('period', models.CharField(choices=[('minute', 'a minute'), ('day', 'a day'), ('month', 'a month')], max_length=6)),
                ('calls', models.PositiveIntegerField(help_text='Most calls in one period.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('api_key', tenancy.fields.TenantForeignKey(blank=True, db_on_delete='CASCADE', null=True, related_name='+', to='tenancy.apikey')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'kind', 'user', 'api_key', 'target_kind', 'target', 'period'), name='tool_limit_one_each', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('calls__gt', 0)), name='tool_limit_positive'), models.CheckConstraint(condition=models.Q(models.Q(('api_key', None), ('kind', 'tenant'), ('user', None)), models.Q(('api_key', None), ('kind', 'member')), models.Q(('kind', 'key'), ('user', None)), _connector='OR'), name='tool_limit_subject_of_kind'), models.CheckConstraint(condition=models.Q(models.Q(('target', ''), ('target_kind', 'all')), models.Q(('target_kind__in', ['group', 'tool']), models.Q(('target', ''), _negated=True)), _connector='OR'), name='tool_limit_target'), models.CheckConstraint(condition=models.Q(('period__in', ['minute', 'day', 'month'])), name='tool_limit_period')],
            },
        ),
        migrations.CreateModel(
            name='ToolLimitUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.CharField(help_text='tenant, member:<id> or key:<id>.', max_length=30)),
                ('starts_at', models.DateTimeField(help_text='When the period began.')),
                ('used', models.PositiveIntegerField()),
                ('limit', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='uses', to='tools.toollimit')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('limit', 'subject'), name='tool_limit_use_one_each')],
            },
        ),
        migrations.CreateModel(
            name='ToolSource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('openapi', 'OpenAPI document'), ('mcp', 'MCP server'), ('plugin', 'plug-in of this installation')], max_length=10)),
                ('name', models.SlugField(help_text='Lower case; the group of its tools.', max_length=24)),
                ('title', models.CharField(blank=True, max_length=120)),
                ('url', models.URLField(blank=True, help_text="Where calls go: the API's or the MCP server's address.", max_length=500)),
                ('document_url', models.URLField(blank=True, help_text='Where the OpenAPI document is read again from.', max_length=500)),
                ('document', models.TextField(blank=True, help_text='The OpenAPI document as it was last read.')),
                ('settings', models.JSONField(blank=True, default=dict)),
                ('allowed_hosts', models.JSONField(blank=True, default=list, help_text='Hosts its calls may go to; empty: only that of its address.')),
                ('is_enabled', models.BooleanField(default=True)),
                ('status', models.CharField(choices=[('new', 'not read yet'), ('ready', 'Ready'), ('failed', 'Failed')], default='new', max_length=10)),
                ('problem', models.TextField(blank=True, help_text='Why it could not be read, and what to do.')),
                ('refreshed_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='tool_source_one_per_name'), models.CheckConstraint(condition=models.Q(('kind__in', ['openapi', 'mcp', 'plugin'])), name='tool_source_kind'), models.CheckConstraint(condition=models.Q(('status__in', ['new', 'ready', 'failed'])), name='tool_source_status')],
            },
        ),
        migrations.CreateModel(
            name='ToolCredential',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('placement', models.CharField(choices=[('bearer', 'bearer token'), ('basic', 'user name and password'), ('header', 'Header'), ('query', 'query parameter')], max_length=10)),
                ('parameter', models.CharField(blank=True, max_length=80)),
                ('secret_encrypted', models.BinaryField()),
                ('last_four', models.CharField(blank=True, max_length=4)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('source', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='credentials', to='tools.toolsource')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('source', 'placement', 'parameter'), name='tool_credential_one_place'), models.CheckConstraint(condition=models.Q(('placement__in', ['bearer', 'basic', 'header', 'query'])), name='tool_credential_placement')],
            },
        ),
        migrations.CreateModel(
            name='ContractTest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tool_name', models.CharField(max_length=64)),
                ('name', models.CharField(max_length=80)),
                ('arguments', models.JSONField(default=dict)),
                ('expected', models.JSONField(blank=True, default=dict, help_text='JSON Schema that the result must satisfy.')),
                ('last_outcome', models.CharField(blank=True, choices=[('passed', 'Passed'), ('failed', 'Failed')], max_length=6)),
                ('last_problem', models.TextField(blank=True)),
                ('last_version', models.PositiveIntegerField(blank=True, null=True)),
                ('last_run_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('source', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='contract_tests', to='tools.toolsource')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'tool_name', 'name'), name='contract_test_one_per_name')],
            },
        ),
        migrations.CreateModel(
            name='ToolVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tool_name', models.CharField(help_text='As models call it.', max_length=64)),
                ('number', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('waiting', 'waits to be accepted'), ('current', 'Current'), ('retired', 'Retired'), ('rejected', 'Rejected')], default='waiting', max_length=10)),
                ('spec', models.JSONField()),
                ('digest', models.CharField(max_length=64)),
                ('is_gone', models.BooleanField(default=False, help_text='The source does not have the tool any more.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('decided_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('source', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='versions', to='tools.toolsource')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['source', 'state'], name='tool_version_of_source')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'tool_name', 'number'), name='tool_version_number'), models.UniqueConstraint(condition=models.Q(('state', 'current')), fields=('tenant', 'tool_name'), name='tool_version_one_current'), models.UniqueConstraint(condition=models.Q(('state', 'waiting')), fields=('tenant', 'tool_name'), name='tool_version_one_waiting'), models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'current', 'retired', 'rejected'])), name='tool_version_state')],
            },
        ),
        migrations.CreateModel(
            name='ToolEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64)),
                ('title', models.CharField(blank=True, max_length=120)),
                ('description', models.TextField(blank=True, help_text='What a model reads in its place.')),
                ('category', models.CharField(blank=True, max_length=60)),
                ('tags', models.JSONField(blank=True, default=list)),
                ('is_enabled', models.BooleanField(default=True)),
                ('cost_hint', models.CharField(blank=True, help_text='For people: what a call costs.', max_length=60)),
                ('timeout_s', models.FloatField(blank=True, help_text='Seconds a call may take.', null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'verbose_name_plural': 'tool entries',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='tool_entry_one_per_name'), models.CheckConstraint(condition=models.Q(('timeout_s__isnull', True), models.Q(('timeout_s__gt', 0), ('timeout_s__lte', 600)), _connector='OR'), name='tool_entry_timeout_sane')],
            },
        ),
    ]
