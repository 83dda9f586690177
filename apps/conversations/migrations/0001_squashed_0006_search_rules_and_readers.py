"""All earlier migrations of this app in one, for new databases: step by step they take Django a minute to prepare."""

import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import tenancy.fields


class Migration(migrations.Migration):

    replaces = [('conversations', '0001_initial'), ('conversations', '0002_searches_all'), ('conversations', '0003_modes_branches_and_assistants'), ('conversations', '0004_parents_of_turns'), ('conversations', '0005_assistants_tried'), ('conversations', '0006_search_rules_and_readers')]

    initial = True

    dependencies = [
        ('collections', '0001_squashed_0011_file_batches'),
        ('runs', '0001_squashed_0008_budget_columns'),
        ('tenancy', '0001_squashed_0008_oauth_connections'),
        ('tools', '0001_squashed_0005_limits'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Assistant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(help_text='Its name in the API.', max_length=60)),
                ('name', models.CharField(max_length=80)),
                ('description', models.CharField(blank=True, max_length=300)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('archived_at', models.DateTimeField(help_text='Since then nobody can choose it.', null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='AssistantVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('mode', models.CharField(choices=[('tools', 'tools (the model calls tools as it sees fit)'), ('quick', 'quick (one search, then the answer)'), ('planned', 'planned (a plan, its steps, then the answer)'), ('code', 'code (the model writes programs that call tools)')], default='tools', max_length=8)),
                ('model', models.CharField(blank=True, help_text="With its routing prefix; empty: the workspace's default when a question is asked.", max_length=120)),
                ('prompt', models.TextField(blank=True, help_text='What the model reads beside our own rules.')),
                ('searches_all', models.BooleanField(default=True, help_text='Every collection, later ones too.')),
                ('has_toolkit', models.BooleanField(default=False, help_text='A toolkit was chosen: when it is deleted, no tool is left, not all.')),
                ('output', models.CharField(choices=[('text', 'Text'), ('structured', 'structured (answer, citations, confidence, follow-up questions)'), ('schema', 'a JSON Schema of this workspace')], default='text', max_length=10)),
                ('output_name', models.CharField(blank=True, help_text='Of the schema.', max_length=64)),
                ('output_schema', models.JSONField(help_text='JSON Schema of type object.', null=True)),
                ('options', models.JSONField(default=dict, help_text='Settings of the mode; see apps.conversations.assistants.')),
                ('starters', models.JSONField(default=list, help_text='Questions that a new conversation offers.')),
                ('note', models.CharField(blank=True, help_text='What has changed.', max_length=200)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('assistant', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='versions', to='conversations.assistant')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('toolkit', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Tools it may use, as far as the person who asks may; empty: all of them.', null=True, related_name='+', to='tools.toolkit')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('assistant', 'number'), name='assistant_version_number'), models.CheckConstraint(condition=models.Q(models.Q(('output', 'schema'), ('output_schema__isnull', False)), models.Q(models.Q(('output', 'schema'), _negated=True), ('output_schema__isnull', True)), _connector='OR'), name='assistant_version_schema')],
            },
        ),
        migrations.CreateModel(
            name='AssistantHelper',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('assistant', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='conversations.assistant')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('version', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='helpers', to='conversations.assistantversion')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'assistant'), name='assistant_helper_once')],
            },
        ),
        migrations.CreateModel(
            name='AssistantCollection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('version', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='scope', to='conversations.assistantversion')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'collection'), name='assistant_collection_once')],
            },
        ),
        migrations.AddField(
            model_name='assistant',
            name='published',
            field=tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='conversations.assistantversion'),
        ),
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('title', models.CharField(blank=True, max_length=200)),
                ('model', models.CharField(max_length=120)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('searches_all', models.BooleanField(default=True, help_text='Every collection, later ones too. A chosen one that is deleted does not widen the search.')),
                ('draft', models.TextField(blank=True, help_text='What its owner has typed and not sent.')),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='When its owner last had it open; a later answer is news.')),
                ('assistant', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Who answers; its published version at the time of each question.', null=True, related_name='conversations', to='conversations.assistant')),
                ('forked_from', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='conversations.conversation')),
                ('pinned_version', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='The version that answers in place of the published one, while somebody tries it.', null=True, related_name='+', to='conversations.assistantversion')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='ConversationCollection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='scope', to='conversations.conversation')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('conversation', 'collection'), name='conversation_collection_once')],
            },
        ),
        migrations.CreateModel(
            name='ConversationRules',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('keep_days', models.PositiveIntegerField(help_text="Deleted so long after the last question; 0 never, empty: the server's default.", null=True)),
                ('makes_titles', models.BooleanField(default=True, help_text='A model names each conversation after its first answer.')),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='conversation_rules_one_a_tenant')],
            },
        ),
        migrations.CreateModel(
            name='ConversationShare',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.UUIDField(help_text='Random; part of the link.', unique=True)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('snapshot', models.JSONField(help_text='Turns as they were: question, answer, citations.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('revoked_at', models.DateTimeField(null=True)),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='shares', to='conversations.conversation')),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='QueuedQuestion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text', models.TextField()),
                ('model', models.CharField(blank=True, max_length=120)),
                ('client_id', models.UUIDField()),
                ('request', models.JSONField(help_text="Who asks, as a run's request has it.")),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('problem', models.TextField(blank=True, help_text='Why it was not asked when its time came.')),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='queued', to='conversations.conversation')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('conversation', 'client_id'), name='queued_question_client_id')],
            },
        ),
        migrations.CreateModel(
            name='ShareReader',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('first_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('share', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='readers', to='conversations.conversationshare')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('share', 'user'), name='share_reader_once')],
            },
        ),
        migrations.CreateModel(
            name='Turn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.PositiveIntegerField()),
                ('client_id', models.UUIDField()),
                ('is_active', models.BooleanField(default=True)),
                ('removed_markers', models.PositiveIntegerField(default=0, help_text='Citation markers that named no retrieved chunk.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('assistant_version', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Who answers this question; empty: the model alone.', null=True, related_name='+', to='conversations.assistantversion')),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='turns', to='conversations.conversation')),
                ('parent', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', help_text='The turn it follows.', null=True, related_name='children', to='conversations.turn')),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='RESTRICT', related_name='turns', to='runs.run')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('conversation', 'index'), name='turn_index'), models.UniqueConstraint(fields=('conversation', 'client_id'), name='turn_client_id'), models.UniqueConstraint(condition=models.Q(('is_active', True)), fields=('conversation',), name='turn_one_active')],
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('author', models.CharField(choices=[('user', 'User'), ('assistant', 'Assistant')], max_length=10)),
                ('text', models.TextField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('data', models.JSONField(help_text="The answer as the assistant's output format has it; empty: text alone.", null=True)),
                ('problem', models.TextField(blank=True, help_text='Why an answer that should have a form is shown as text.')),
                ('unsupported', models.JSONField(default=list, help_text='Stretches of the text that no cited passage supports: [start, end] in characters.')),
                ('words', models.GeneratedField(db_persist=True, expression=django.contrib.postgres.search.SearchVector(django.db.models.functions.text.Left('text', 200000), config='simple'), help_text='What search finds it by. No index: row-level security lets none of this kind be used.', output_field=django.contrib.postgres.search.SearchVectorField())),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('turn', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='messages', to='conversations.turn')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('turn', 'author'), name='message_per_author')],
            },
        ),
        migrations.CreateModel(
            name='Feedback',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdict', models.CharField(choices=[('good', 'Good'), ('bad', 'Bad')], max_length=4)),
                ('reason', models.CharField(blank=True, help_text='One of the offered ones.', max_length=40)),
                ('comment', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('turn', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='feedback', to='conversations.turn')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('turn', 'user'), name='feedback_one_a_person')],
            },
        ),
        migrations.AddField(
            model_name='conversation',
            name='head',
            field=tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Last turn of the branch that is shown; the next question follows it.', null=True, related_name='+', to='conversations.turn'),
        ),
        migrations.CreateModel(
            name='Citation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('chunk_ref', models.BigIntegerField(help_text="The chunk's id as the answer names it.")),
                ('document_name', models.CharField(max_length=255)),
                ('collection_name', models.CharField(blank=True, max_length=120)),
                ('page', models.PositiveIntegerField(null=True)),
                ('quote', models.TextField(blank=True, help_text='The cited passage, verbatim from the chunk.')),
                ('char_start', models.PositiveIntegerField(default=0, help_text="Offset in the document's text.")),
                ('char_end', models.PositiveIntegerField(default=0)),
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='collections.chunk')),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='collections.document')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('turn', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='citations', to='conversations.turn')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('turn', 'number'), name='citation_number')],
            },
        ),
        migrations.CreateModel(
            name='Attachment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('media_type', models.CharField(max_length=100)),
                ('size', models.PositiveBigIntegerField(help_text='Bytes.')),
                ('text', models.TextField(blank=True, help_text='What the model reads, when it reads all of it.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='collections.document')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='attachments', to='conversations.conversation')),
                ('turn', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Empty: not sent yet.', null=True, related_name='attachments', to='conversations.turn')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddConstraint(
            model_name='assistant',
            constraint=models.UniqueConstraint(fields=('tenant', 'slug'), name='assistant_one_per_slug'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(fields=['tenant', 'user', '-updated_at'], name='conversation_recent'),
        ),
    ]
