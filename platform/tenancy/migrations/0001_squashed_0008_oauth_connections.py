"""All earlier migrations of this app in one, for new databases: step by step they take Django a minute to prepare."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import tenancy.fields
import tenancy.models


class Migration(migrations.Migration):

    replaces = [('tenancy', '0001_initial'), ('tenancy', '0002_model_entries_and_endpoints'), ('tenancy', '0003_audit_chain'), ('tenancy', '0004_audit_seal'), ('tenancy', '0005_idempotent_answers'), ('tenancy', '0006_rate_limits'), ('tenancy', '0007_key_collections'), ('tenancy', '0008_oauth_connections')]

    initial = True

    dependencies = [
        ('auth', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Tenant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=40, unique=True)),
                ('name', models.CharField(max_length=120)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('is_active', models.BooleanField(default=True)),
            ],
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('email', models.EmailField(max_length=254, unique=True)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'abstract': False,
            },
            managers=[
                ('objects', tenancy.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80)),
                ('prefix', models.CharField(max_length=16, unique=True)),
                ('secret_sha256', models.CharField(max_length=64)),
                ('scopes', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('collections', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, help_text='It sees these collections alone, what was deleted included; empty: all.', null=True, size=None)),
                ('client_id', models.TextField(blank=True, default='', help_text='The OAuth client of a connected application; empty for a key that somebody made.')),
                ('user', models.ForeignKey(blank=True, help_text="On whose behalf the key acts; its rights never exceed this person's role.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Invite',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('email', models.EmailField(max_length=254)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('admin', 'Admin'), ('member', 'Member'), ('viewer', 'Viewer')], default='member', max_length=10)),
                ('token_sha256', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('accepted_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('invited_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'abstract': False,
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
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'kind', 'user', 'api_key'), name='rate_limit_one_each', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('burst__gt', 0), ('per_minute__gt', 0)), name='rate_limit_positive'), models.CheckConstraint(condition=models.Q(models.Q(('api_key', None), ('kind', 'tenant'), ('user', None)), models.Q(('api_key', None), ('kind', 'member')), models.Q(('kind', 'key'), ('user', None)), _connector='OR'), name='rate_limit_subject_of_kind')],
            },
        ),
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
            name='ProviderCredential',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider', models.CharField(max_length=20)),
                ('label', models.CharField(blank=True, max_length=80)),
                ('secret_encrypted', models.BinaryField()),
                ('last_four', models.CharField(blank=True, max_length=4)),
                ('base_url', models.URLField(blank=True)),
                ('model_names', models.JSONField(blank=True, default=list)),
                ('is_enabled', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('endpoint', models.CharField(blank=True, default='', max_length=30)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'provider', 'endpoint'), name='credential_one_per_endpoint'), models.CheckConstraint(condition=models.Q(('endpoint', ''), ('provider', 'compatible'), _connector='OR'), name='credential_endpoint_compatible')],
            },
        ),
        migrations.CreateModel(
            name='OAuthToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('code', 'Code'), ('access', 'Access'), ('refresh', 'Refresh')], max_length=10)),
                ('sha256', models.CharField(max_length=64, unique=True)),
                ('redirect_uri', models.TextField(blank=True, default='', help_text='Of a code: where it was sent.')),
                ('challenge', models.CharField(blank=True, default='', help_text='Of a code: PKCE, S256.', max_length=43)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('api_key', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='tokens', to='tenancy.apikey')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='oauth_token_expiry')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['code', 'access', 'refresh'])), name='oauth_token_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='ModelEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='Routing name, for example openai/gpt-6-sol.', max_length=120)),
                ('label', models.CharField(blank=True, max_length=80)),
                ('is_enabled', models.BooleanField(default=True)),
                ('context_window', models.PositiveIntegerField(blank=True, null=True)),
                ('max_output_tokens', models.PositiveIntegerField(blank=True, null=True)),
                ('prices', models.JSONField(blank=True, null=True)),
                ('capabilities', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'verbose_name_plural': 'model entries',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='model_entry_one_per_name'), models.CheckConstraint(condition=models.Q(('context_window__isnull', True), ('context_window__gt', 0), _connector='OR'), name='model_entry_window_positive'), models.CheckConstraint(condition=models.Q(('max_output_tokens__isnull', True), ('max_output_tokens__gt', 0), _connector='OR'), name='model_entry_output_positive')],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('admin', 'Admin'), ('member', 'Member'), ('viewer', 'Viewer')], default='member', max_length=10)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'user'), name='membership_one_per_user'), models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'admin', 'member', 'viewer'])), name='membership_role_known')],
            },
        ),
        migrations.CreateModel(
            name='IdempotentAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('caller', models.CharField(max_length=30)),
                ('route', models.CharField(max_length=150)),
                ('key', models.CharField(max_length=255)),
                ('fingerprint', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField()),
                ('body_encrypted', models.BinaryField()),
                ('expires_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='idempotent_answer_expiry')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'caller', 'route', 'key'), name='idempotent_answer_one_per_key')],
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('actor_kind', models.CharField(max_length=10)),
                ('actor_name', models.CharField(blank=True, max_length=150)),
                ('user_id', models.BigIntegerField(null=True)),
                ('api_key_id', models.BigIntegerField(null=True)),
                ('action', models.CharField(max_length=60)),
                ('object_type', models.CharField(blank=True, max_length=60)),
                ('object_id', models.CharField(blank=True, max_length=40)),
                ('object_name', models.CharField(blank=True, max_length=200)),
                ('data', models.JSONField(default=dict)),
                ('ip', models.GenericIPAddressField(null=True)),
                ('request_id', models.CharField(blank=True, max_length=36)),
                ('hash', models.CharField(blank=True, default='', editable=False, max_length=64)),
                ('previous_hash', models.CharField(blank=True, default='', editable=False, max_length=64)),
                ('seq', models.BigIntegerField(editable=False, null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', '-at'], name='audit_tenant_at'), models.Index(fields=['tenant', 'object_type', 'object_id'], name='audit_object')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'seq'), name='audit_one_per_seq')],
            },
        ),
        migrations.CreateModel(
            name='AuditChain',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seq', models.BigIntegerField(default=0)),
                ('hash', models.CharField(max_length=64)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='audit_chain_one_head')],
            },
        ),
        migrations.RunSQL(
            sql='\nCREATE FUNCTION audit_seal(event bigint) RETURNS void\nLANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$\nDECLARE\n    given tenancy_auditevent%ROWTYPE;\n    row tenancy_auditevent%ROWTYPE;\n    head tenancy_auditchain%ROWTYPE;\n    digest text;\nBEGIN\n    SELECT * INTO given FROM tenancy_auditevent WHERE id = event;\n    IF NOT FOUND OR given.hash <> \'\' THEN  -- its workspace is gone, or an event of the same transaction sealed it\n        RETURN;\n    END IF;\n    SELECT * INTO head FROM tenancy_auditchain WHERE tenant_id = given.tenant_id FOR UPDATE;\n    IF NOT FOUND THEN\n        INSERT INTO tenancy_auditchain (tenant_id, seq, hash) VALUES (given.tenant_id, 0, \'\')\n            ON CONFLICT (tenant_id) DO NOTHING;\n        SELECT * INTO head FROM tenancy_auditchain WHERE tenant_id = given.tenant_id FOR UPDATE;\n    END IF;\n    -- All events of the same (sub)transaction at once: the head is then written once, not once an event, which would\n    -- make a bulk act of n events cost n squared. Events of others that have no seal are left alone: they are forged.\n    FOR row IN\n        SELECT * FROM tenancy_auditevent\n        WHERE tenant_id = given.tenant_id AND seq IS NULL\n            AND (id = event OR xmin = (SELECT xmin FROM tenancy_auditevent WHERE id = event))\n        ORDER BY id\n    LOOP\n        digest := encode(sha256(convert_to(jsonb_build_object(\n            \'seq\', head.seq + 1,\n            \'previous_hash\', head.hash,\n            \'id\', row.id,\n            \'tenant\', row.tenant_id,\n            \'at\', to_char(row.at AT TIME ZONE \'UTC\', \'YYYY-MM-DD"T"HH24:MI:SS.US"Z"\'),\n            \'actor_kind\', row.actor_kind,\n            \'actor_name\', row.actor_name,\n            \'user\', row.user_id,\n            \'api_key\', row.api_key_id,\n            \'action\', row.action,\n            \'object_type\', row.object_type,\n            \'object_id\', row.object_id,\n            \'object_name\', row.object_name,\n            \'data\', row.data,\n            \'ip\', host(row.ip),\n            \'request_id\', row.request_id\n        )::text, \'UTF8\')), \'hex\');\n        UPDATE tenancy_auditevent SET seq = head.seq + 1, previous_hash = head.hash, hash = digest\n            WHERE id = row.id;\n        head.seq := head.seq + 1;\n        head.hash := digest;\n    END LOOP;\n    UPDATE tenancy_auditchain SET seq = head.seq, hash = head.hash WHERE id = head.id;\nEND\n$$;\nREVOKE ALL ON FUNCTION audit_seal(bigint) FROM PUBLIC;\n\n-- What the application gives as a seal is not taken.\nCREATE FUNCTION audit_unsealed() RETURNS trigger LANGUAGE plpgsql AS $$\nBEGIN\n    NEW.seq := NULL;\n    NEW.previous_hash := \'\';\n    NEW.hash := \'\';\n    RETURN NEW;\nEND\n$$;\n\nCREATE FUNCTION audit_seal_new() RETURNS trigger\nLANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$\nBEGIN\n    PERFORM audit_seal(NEW.id);\n    RETURN NULL;\nEND\n$$;\nREVOKE ALL ON FUNCTION audit_seal_new() FROM PUBLIC;\n\nDO $$\nDECLARE\n    event bigint;\nBEGIN\n    FOR event IN SELECT id FROM tenancy_auditevent WHERE seq IS NULL ORDER BY id LOOP\n        PERFORM audit_seal(event);\n    END LOOP;\nEND\n$$;\nSET CONSTRAINTS ALL IMMEDIATE;\nSET CONSTRAINTS ALL DEFERRED;\n\n-- Deferred: the head is locked only while the act commits, after every other lock it takes, so that writers of a tenant\n-- wait for each other\'s commit and not for each other\'s work, and the lock cannot be part of a deadlock.\nCREATE CONSTRAINT TRIGGER audit_seal_new AFTER INSERT ON tenancy_auditevent\n    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit_seal_new();\nCREATE TRIGGER audit_unsealed BEFORE INSERT ON tenancy_auditevent FOR EACH ROW EXECUTE FUNCTION audit_unsealed();\n',
            reverse_sql="\nDROP TRIGGER audit_seal_new ON tenancy_auditevent;\nDROP TRIGGER audit_unsealed ON tenancy_auditevent;\nDROP FUNCTION audit_seal_new();\nDROP FUNCTION audit_unsealed();\nDROP FUNCTION audit_seal(bigint);\nUPDATE tenancy_auditevent SET seq = NULL, previous_hash = '', hash = '';\nDELETE FROM tenancy_auditchain;\n",
        ),
        migrations.RunSQL(
            sql='ALTER TABLE tenancy_ratebucket SET UNLOGGED',
            reverse_sql='ALTER TABLE tenancy_ratebucket SET LOGGED',
        ),
    ]
