import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import tenancy.fields
import tenancy.models.base
from tenancy.database.initial import InitialMigration

# jsonb has one text for one value (keys sorted, numbers kept as written), so that it is the canonical JSON of the row.
# tenancy.audit_chain holds the same expression and hashes its text in Python.
SEAL = """
CREATE FUNCTION audit_seal(event bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    given tenancy_auditevent%ROWTYPE;
    row tenancy_auditevent%ROWTYPE;
    head tenancy_auditchain%ROWTYPE;
    digest text;
BEGIN
    SELECT * INTO given FROM tenancy_auditevent WHERE id = event;
    IF NOT FOUND OR given.hash <> '' THEN  -- its workspace is gone, or an event of the same transaction sealed it
        RETURN;
    END IF;
    SELECT * INTO head FROM tenancy_auditchain WHERE tenant_id = given.tenant_id FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO tenancy_auditchain (tenant_id, seq, hash) VALUES (given.tenant_id, 0, '')
            ON CONFLICT (tenant_id) DO NOTHING;
        SELECT * INTO head FROM tenancy_auditchain WHERE tenant_id = given.tenant_id FOR UPDATE;
    END IF;
    -- All events of the same (sub)transaction at once: the head is then written once, not once an event, which would
    -- make a bulk act of n events cost n squared. Events of others that have no seal are left alone: they are forged.
    FOR row IN
        SELECT * FROM tenancy_auditevent
        WHERE tenant_id = given.tenant_id AND seq IS NULL
            AND (id = event OR xmin = (SELECT xmin FROM tenancy_auditevent WHERE id = event))
        ORDER BY id
    LOOP
        digest := encode(sha256(convert_to(jsonb_build_object(
            'seq', head.seq + 1,
            'previous_hash', head.hash,
            'id', row.id,
            'tenant', row.tenant_id,
            'at', to_char(row.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
            'actor_kind', row.actor_kind,
            'actor_name', row.actor_name,
            'user', row.user_id,
            'api_key', row.api_key_id,
            'action', row.action,
            'object_type', row.object_type,
            'object_id', row.object_id,
            'object_name', row.object_name,
            'data', row.data,
            'ip', host(row.ip),
            'request_id', row.request_id
        )::text, 'UTF8')), 'hex');
        UPDATE tenancy_auditevent SET seq = head.seq + 1, previous_hash = head.hash, hash = digest
            WHERE id = row.id;
        head.seq := head.seq + 1;
        head.hash := digest;
    END LOOP;
    UPDATE tenancy_auditchain SET seq = head.seq, hash = head.hash WHERE id = head.id;
END
$$;
REVOKE ALL ON FUNCTION audit_seal(bigint) FROM PUBLIC;

-- What the application gives as a seal is not taken.
CREATE FUNCTION audit_unsealed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.seq := NULL;
    NEW.previous_hash := '';
    NEW.hash := '';
    RETURN NEW;
END
$$;

CREATE FUNCTION audit_seal_new() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM audit_seal(NEW.id);
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION audit_seal_new() FROM PUBLIC;

-- Deferred: the head is locked only while the act commits, after every other lock it takes, so that writers of a tenant
-- wait for each other's commit and not for each other's work, and the lock cannot be part of a deadlock.
CREATE CONSTRAINT TRIGGER audit_seal_new AFTER INSERT ON tenancy_auditevent
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION audit_seal_new();
CREATE TRIGGER audit_unsealed BEFORE INSERT ON tenancy_auditevent FOR EACH ROW EXECUTE FUNCTION audit_unsealed();
"""

UNSEAL = """
DROP TRIGGER audit_seal_new ON tenancy_auditevent;
DROP TRIGGER audit_unsealed ON tenancy_auditevent;
DROP FUNCTION audit_seal_new();
DROP FUNCTION audit_unsealed();
DROP FUNCTION audit_seal(bigint);
UPDATE tenancy_auditevent SET seq = NULL, previous_hash = '', hash = '';
DELETE FROM tenancy_auditchain;
"""
# Counts of the last minutes: what a crash empties is soon full again, and each request writes one.
UNLOGGED = "ALTER TABLE tenancy_ratebucket SET UNLOGGED"
LOGGED = "ALTER TABLE tenancy_ratebucket SET LOGGED"


class Migration(InitialMigration):
    dependencies = [
        ('auth', '__first__'),
    ]

    operations = [
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
                ('objects', tenancy.models.base.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='Tenant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=40, unique=True)),
                ('name', models.CharField(max_length=120)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('is_active', models.BooleanField(default=True)),
            ],
            options={
                'verbose_name': 'workspace',
            },
        ),
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('name', models.CharField(max_length=80)),
                ('prefix', models.CharField(max_length=16, unique=True)),
                ('secret_sha256', models.CharField(max_length=64)),
                ('scopes', models.JSONField(default=list)),
                ('collections', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, help_text='The only collections it can see, even if they were deleted since; empty: all.', null=True, size=None)),
                ('user', models.ForeignKey(blank=True, help_text="On whose behalf the key acts; its rights never exceed this person's role.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('client_id', models.TextField(blank=True, default='', help_text='The OAuth client of a connected application; empty for a key created by a person.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='OAuthToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('api_key', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='tokens', to='tenancy.apikey')),
                ('kind', models.CharField(choices=[('code', 'Code'), ('access', 'Access'), ('refresh', 'Refresh')], max_length=10)),
                ('sha256', models.CharField(max_length=64, unique=True)),
                ('redirect_uri', models.TextField(blank=True, default='', help_text='For a code: the address it was sent to.')),
                ('challenge', models.CharField(blank=True, default='', help_text='For a code: the PKCE challenge (S256).', max_length=43)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='oauth_token_expiry')],
                'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['code', 'access', 'refresh'])), name='oauth_token_kind_known')],
            },
        ),
        migrations.CreateModel(
            name='RateLimit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('kind', models.CharField(choices=[('member', 'a member'), ('key', 'an API key'), ('tenant', 'the whole workspace')], max_length=10)),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('api_key', tenancy.fields.TenantForeignKey(blank=True, db_on_delete='CASCADE', null=True, related_name='+', to='tenancy.apikey')),
                ('per_minute', models.PositiveIntegerField(help_text='Requests allowed per minute in the long run.')),
                ('burst', models.PositiveIntegerField(help_text='Requests allowed at once.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'kind', 'user', 'api_key'), name='rate_limit_one_each', nulls_distinct=False), models.CheckConstraint(condition=models.Q(('burst__gt', 0), ('per_minute__gt', 0)), name='rate_limit_positive'), models.CheckConstraint(condition=models.Q(models.Q(('api_key', None), ('kind', 'tenant'), ('user', None)), models.Q(('api_key', None), ('kind', 'member')), models.Q(('kind', 'key'), ('user', None)), _connector='OR'), name='rate_limit_subject_of_kind')],
            },
        ),
        migrations.CreateModel(
            name='RateBucket',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('subject', models.CharField(max_length=30)),
                ('tokens', models.FloatField()),
                ('updated_at', models.DateTimeField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'subject'), name='rate_bucket_one_each')],
            },
        ),
        migrations.CreateModel(
            name='IdempotentAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('caller', models.CharField(max_length=30)),
                ('route', models.CharField(max_length=150)),
                ('key', models.CharField(max_length=255)),
                ('fingerprint', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField()),
                ('body_encrypted', models.BinaryField()),
                ('expires_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='idempotent_answer_expiry')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'caller', 'route', 'key'), name='idempotent_answer_one_per_key')],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('admin', 'Admin'), ('member', 'Member'), ('viewer', 'Viewer')], default='member', max_length=10)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'user'), name='membership_one_per_user'), models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'admin', 'member', 'viewer'])), name='membership_role_known')],
            },
        ),
        migrations.CreateModel(
            name='Invite',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('email', models.EmailField(max_length=254)),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('admin', 'Admin'), ('member', 'Member'), ('viewer', 'Viewer')], default='member', max_length=10)),
                ('token_sha256', models.CharField(max_length=64, unique=True)),
                ('invited_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('accepted_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ProviderCredential',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('provider', models.CharField(max_length=20)),
                ('endpoint', models.CharField(blank=True, default='', max_length=30)),
                ('label', models.CharField(blank=True, max_length=80)),
                ('secret_encrypted', models.BinaryField()),
                ('last_four', models.CharField(blank=True, max_length=4)),
                ('base_url', models.URLField(blank=True)),
                ('model_names', models.JSONField(blank=True, default=list)),
                ('is_enabled', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'provider', 'endpoint'), name='credential_one_per_endpoint'), models.CheckConstraint(condition=models.Q(('endpoint', ''), ('provider', 'compatible'), _connector='OR'), name='credential_endpoint_compatible')],
            },
        ),
        migrations.CreateModel(
            name='ModelEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('name', models.CharField(help_text='With its provider, for example openai/gpt-6-sol.', max_length=120)),
                ('label', models.CharField(blank=True, max_length=80)),
                ('is_enabled', models.BooleanField(default=True)),
                ('context_window', models.PositiveIntegerField(blank=True, null=True)),
                ('max_output_tokens', models.PositiveIntegerField(blank=True, null=True)),
                ('prices', models.JSONField(blank=True, null=True)),
                ('capabilities', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name_plural': 'model entries',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='model_entry_one_per_name'), models.CheckConstraint(condition=models.Q(('context_window__isnull', True), ('context_window__gt', 0), _connector='OR'), name='model_entry_window_positive'), models.CheckConstraint(condition=models.Q(('max_output_tokens__isnull', True), ('max_output_tokens__gt', 0), _connector='OR'), name='model_entry_output_positive')],
            },
        ),
        migrations.CreateModel(
            name='OutgoingHost',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('pattern', models.CharField(help_text='A host, such as api.example.com, or *.example.com for all its subdomains.', max_length=253)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'pattern'), name='outgoing_host_once'), models.CheckConstraint(condition=models.Q(('pattern', ''), _negated=True), name='outgoing_host_not_empty')],
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
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
                ('seq', models.BigIntegerField(editable=False, null=True)),
                ('previous_hash', models.CharField(blank=True, default='', editable=False, max_length=64)),
                ('hash', models.CharField(blank=True, default='', editable=False, max_length=64)),
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
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('seq', models.BigIntegerField(default=0)),
                ('hash', models.CharField(max_length=64)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='audit_chain_one_head')],
            },
        ),
        migrations.RunSQL(SEAL, UNSEAL),
        migrations.RunSQL(UNLOGGED, LOGGED),
    ]
