import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import tenancy.fields
from tenancy.database.initial import InitialMigration


class Migration(InitialMigration):
    dependencies = [
        ('collections', '0001_initial'),
        ('runs', '0001_initial'),
        ('tenancy', '0001_initial'),
        ('tools', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ConversationRules',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('keep_days', models.PositiveIntegerField(help_text="Days after the last question before a conversation is deleted; 0: never; empty: the server's default.", null=True)),
                ('makes_titles', models.BooleanField(default=True, help_text='A model names each conversation after its first answer.')),
                ('support_model', models.CharField(blank=True, help_text='Model that checks each answer against its sources again; empty: none.', max_length=120)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='conversation_rules_one_a_tenant')],
            },
        ),
        migrations.CreateModel(
            name='Assistant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('slug', models.SlugField(help_text='Name in the API.', max_length=60)),
                ('name', models.CharField(max_length=80)),
                ('description', models.CharField(blank=True, max_length=300)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('archived_at', models.DateTimeField(help_text="When it was archived; an archived assistant can't be chosen.", null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'slug'), name='assistant_one_per_slug')],
            },
        ),
        migrations.CreateModel(
            name='AssistantVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('assistant', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='versions', to='conversations.assistant')),
                ('number', models.PositiveIntegerField()),
                ('mode', models.CharField(choices=[('tools', 'tools (the model calls tools as it sees fit)'), ('quick', 'quick (one search, then the answer)'), ('planned', 'planned (a plan, its steps, then the answer)'), ('code', 'code (the model writes programs that call tools)')], default='tools', max_length=8)),
                ('model', models.CharField(blank=True, help_text="Model with its provider prefix; empty: the workspace's default at the time of each question.", max_length=120)),
                ('prompt', models.TextField(blank=True, help_text="Instructions added to the platform's own rules.")),
                ('searches_all', models.BooleanField(default=True, help_text='Searches all collections, including future ones.')),
                ('toolkit', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Tools it can use, limited to what the person asking can call; empty: all of those.', null=True, related_name='+', to='tools.toolkit')),
                ('has_toolkit', models.BooleanField(default=False, help_text='A toolkit was chosen. If it is deleted, the assistant has no tools rather than all.')),
                ('output', models.CharField(choices=[('text', 'Text'), ('structured', 'structured (answer, citations, confidence, follow-up questions)'), ('schema', 'a JSON Schema of this workspace')], default='text', max_length=10)),
                ('output_name', models.CharField(blank=True, help_text='Schema name.', max_length=64)),
                ('output_schema', tenancy.fields.OrderedJSONField(help_text='JSON Schema of type object; models answer in the order of its properties.', null=True)),
                ('options', models.JSONField(default=dict, help_text='Settings of the mode; see apps.conversations.assistants.options.')),
                ('starters', models.JSONField(default=list, help_text='Questions offered in a new conversation.')),
                ('note', models.CharField(blank=True, help_text='What changed.', max_length=200)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('assistant', 'number'), name='assistant_version_number'), models.CheckConstraint(condition=models.Q(models.Q(('output', 'schema'), ('output_schema__isnull', False)), models.Q(models.Q(('output', 'schema'), _negated=True), ('output_schema__isnull', True)), _connector='OR'), name='assistant_version_schema')],
            },
        ),
        migrations.CreateModel(
            name='AssistantCollection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('version', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='scope', to='conversations.assistantversion')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='collections.collection')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'collection'), name='assistant_collection_once')],
            },
        ),
        migrations.CreateModel(
            name='AssistantHelper',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('version', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='helpers', to='conversations.assistantversion')),
                ('assistant', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='conversations.assistant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('version', 'assistant'), name='assistant_helper_once')],
            },
        ),
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('model', models.CharField(max_length=120)),
                ('searches_all', models.BooleanField(default=True, help_text="Searches all collections, including future ones. Deleting a chosen collection doesn't widen the search.")),
                ('assistant', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Assistant that answers, in the version published at the time of each question.', null=True, related_name='conversations', to='conversations.assistant')),
                ('pinned_version', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Version being tried: it answers instead of the published one.', null=True, related_name='+', to='conversations.assistantversion')),
                ('forked_from', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='conversations.conversation')),
                ('tools_off', models.JSONField(blank=True, default=list, help_text='Names of tools that the owner has switched off in this conversation.')),
                ('draft', models.TextField(blank=True, help_text='Text typed but not sent.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='When the owner last had it open; later answers count as new.')),
            ],
            options={
                'indexes': [models.Index(fields=['tenant', 'user', '-updated_at'], name='conversation_recent')],
            },
        ),
        migrations.CreateModel(
            name='ConversationCollection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='scope', to='conversations.conversation')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='collections.collection')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('conversation', 'collection'), name='conversation_collection_once')],
            },
        ),
        migrations.CreateModel(
            name='Turn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='turns', to='conversations.conversation')),
                ('parent', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', help_text='The turn it follows.', null=True, related_name='children', to='conversations.turn')),
                ('assistant_version', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Assistant version that answers; empty: general chat.', null=True, related_name='+', to='conversations.assistantversion')),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='RESTRICT', related_name='turns', to='runs.run')),
                ('index', models.PositiveIntegerField()),
                ('client_id', models.UUIDField()),
                ('is_active', models.BooleanField(default=True)),
                ('removed_markers', models.PositiveIntegerField(default=0, help_text='Citation markers that pointed to no retrieved passage and were removed.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('conversation', 'index'), name='turn_index'), models.UniqueConstraint(fields=('conversation', 'client_id'), name='turn_client_id'), models.UniqueConstraint(condition=models.Q(('is_active', True)), fields=('conversation',), name='turn_one_active')],
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('turn', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='messages', to='conversations.turn')),
                ('author', models.CharField(choices=[('user', 'User'), ('assistant', 'Assistant')], max_length=10)),
                ('text', models.TextField()),
                ('data', tenancy.fields.OrderedJSONField(help_text="The answer in the assistant's output format; empty: text only.", null=True)),
                ('problem', models.TextField(blank=True, help_text='Why an answer that needs a certain format is shown as text.')),
                ('unsupported', models.JSONField(default=list, help_text='Statements that no cited passage supports: [start, end, reason], in characters of the text. The reason is unsupported, number, name, polarity, or language (not checked). Older rows hold pairs, which count as unsupported.')),
                ('compared', models.TextField(blank=True, help_text='What its statements were compared with, in one line; empty: nothing.')),
                ('words', models.GeneratedField(db_persist=True, expression=django.contrib.postgres.search.SearchVector(django.db.models.functions.text.Left('text', 200000), config='simple'), help_text='Search terms of the message. Not indexed, because row-level security would keep the index from being used.', output_field=django.contrib.postgres.search.SearchVectorField())),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('turn', 'author'), name='message_per_author')],
            },
        ),
        migrations.CreateModel(
            name='Citation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('turn', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='citations', to='conversations.turn')),
                ('number', models.PositiveIntegerField()),
                ('chunk_ref', models.BigIntegerField(help_text="The passage's id as the answer cites it.")),
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='collections.chunk')),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='collections.document')),
                ('document_name', models.CharField(max_length=255)),
                ('collection_name', models.CharField(blank=True, max_length=120)),
                ('page', models.PositiveIntegerField(null=True)),
                ('quote', models.TextField(blank=True, help_text='Whole sentences or a table row, with lines joined; “…” marks an excerpt.')),
                ('header', models.TextField(blank=True, db_default='', help_text='Column header of the table if the quote is one of its rows.')),
                ('markers', models.JSONField(db_default=models.Value([], models.JSONField()), default=list, help_text="Which of the answer's markers for the passage refer to this quote, counted from 0; empty: all.")),
                ('char_start', models.PositiveIntegerField(default=0, help_text="Offset of the quote in the document's text.")),
                ('char_end', models.PositiveIntegerField(default=0)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('turn', 'number'), name='citation_number')],
            },
        ),
        migrations.CreateModel(
            name='Feedback',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('turn', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='feedback', to='conversations.turn')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('verdict', models.CharField(choices=[('good', 'Good'), ('bad', 'Bad')], max_length=4)),
                ('reason', models.CharField(blank=True, help_text='Code of one of the offered reasons.', max_length=40)),
                ('comment', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('turn', 'user'), name='feedback_one_a_person')],
            },
        ),
        migrations.CreateModel(
            name='ConversationShare',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='shares', to='conversations.conversation')),
                ('key', models.UUIDField(help_text='Random key in the link.', unique=True)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('snapshot', models.JSONField(help_text='The turns when they were shared: question, answer, citations.')),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('revoked_at', models.DateTimeField(null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ShareReader',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('share', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='readers', to='conversations.conversationshare')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('first_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('share', 'user'), name='share_reader_once')],
            },
        ),
        migrations.CreateModel(
            name='QueuedQuestion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='queued', to='conversations.conversation')),
                ('text', models.TextField()),
                ('model', models.CharField(blank=True, max_length=120)),
                ('client_id', models.UUIDField()),
                ('request', models.JSONField(help_text="Who asks, in the form of a run's request, and the ids of the attached files.")),
                ('problem', models.TextField(blank=True, help_text="Why it wasn't asked when its turn came.")),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('conversation', 'client_id'), name='queued_question_client_id')],
            },
        ),
        migrations.CreateModel(
            name='Attachment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('conversation', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='attachments', to='conversations.conversation')),
                ('turn', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='The question it was sent with; empty: not sent yet.', null=True, related_name='attachments', to='conversations.turn')),
                ('name', models.CharField(max_length=255)),
                ('media_type', models.CharField(max_length=100)),
                ('size', models.PositiveBigIntegerField(help_text='Bytes.')),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='collections.document')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='assistant',
            name='published',
            field=tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='conversations.assistantversion'),
        ),
        migrations.AddField(
            model_name='conversation',
            name='head',
            field=tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', help_text='Last turn of the current branch; the next question follows it.', null=True, related_name='+', to='conversations.turn'),
        ),
    ]
