"""All earlier migrations of this app in one, for new databases: step by step they take Django a minute to prepare."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import django.db.models.functions.text
import pgvector.django
import pgvector.django.halfvec
import pgvector.django.sparsevec
from django.conf import settings
from django.db import migrations, models

import tenancy.fields


class Migration(migrations.Migration):

    replaces = [('collections', '0001_initial'), ('collections', '0002_linked_chunks'), ('collections', '0003_pending_versions'), ('collections', '0004_search_indexes'), ('collections', '0005_code_edge_names'), ('collections', '0006_file_revision_kinds'), ('collections', '0007_packed_postings'), ('collections', '0008_leaner_chunk_tables'), ('collections', '0009_collection_reranker'), ('collections', '0010_retired_indexes'), ('collections', '0011_file_batches')]

    initial = True

    dependencies = [
        ('jobs', '0001_initial'),
        ('runs', '0001_squashed_0008_budget_columns'),
        ('tenancy', '0001_squashed_0008_oauth_connections'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        pgvector.django.VectorExtension(),
        migrations.CreateModel(
            name='Collection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120)),
                ('description', models.TextField(blank=True)),
                ('chunk_size', models.PositiveIntegerField(default=1200, help_text='Characters per chunk, at most.')),
                ('chunk_overlap', models.PositiveIntegerField(default=200, help_text='Characters two neighbours share.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('term_total', models.BigIntegerField(default=0, help_text='Terms in all chunks, for the average length.')),
                ('chunk_total', models.BigIntegerField(default=0, help_text='Chunks that are searchable now.')),
                ('average_length', models.FloatField(default=0, help_text='Terms per chunk that the stored term weights assume.')),
                ('file_rules', models.JSONField(default=dict, help_text='What file tools may touch: allow and deny patterns, sizes; see apps.collections.file_rules.')),
                ('keep_versions', models.PositiveIntegerField(default=10, help_text='Earlier versions kept per document; older ones are removed.')),
                ('language', models.CharField(default='english', help_text='How words are reduced to stems; “simple” leaves them.', max_length=20)),
                ('links_by', models.CharField(choices=[('rule', 'Rules'), ('model', 'A model')], default='rule', help_text='Who writes key points and links between passages: rules, or a model.', max_length=10)),
                ('links_model', models.CharField(blank=True, help_text='Model of the summary pass, with its routing prefix.', max_length=120)),
                ('reranker', models.CharField(choices=[('default', "The server's, if it has one"), ('none', 'None'), ('cross-encoder', 'A cross-encoder on the server'), ('model', 'A language model')], default='default', help_text='What reads the best passages of a search once more and orders them anew.', max_length=13)),
                ('reranker_model', models.CharField(blank=True, help_text='Model that grades passages, with its routing prefix.', max_length=120)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
        ),
        migrations.CreateModel(
            name='Chunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.PositiveIntegerField()),
                ('kind', models.CharField(choices=[('doc', 'Text'), ('table', 'Table'), ('function', 'Function'), ('class', 'Class'), ('file', 'File')], default='doc', max_length=10)),
                ('text', models.TextField()),
                ('char_start', models.PositiveIntegerField()),
                ('char_end', models.PositiveIntegerField()),
                ('page_start', models.PositiveIntegerField(null=True)),
                ('page_end', models.PositiveIntegerField(null=True)),
                ('headings', models.JSONField(default=list)),
                ('metadata', models.JSONField(default=dict)),
                ('is_disabled', models.BooleanField(db_default=False, help_text='Left out of every search.')),
                ('is_edited', models.BooleanField(db_default=False)),
                ('key_points', models.JSONField(db_default=models.Value([], models.JSONField()), default=list, help_text='What it says, in sentences.')),
                ('line_end', models.PositiveIntegerField(null=True)),
                ('line_start', models.PositiveIntegerField(help_text='First line in a source file.', null=True)),
                ('points_by', models.CharField(blank=True, choices=[('rule', 'Rules'), ('model', 'A model')], db_default='', max_length=10)),
                ('qualified_name', models.CharField(blank=True, db_default='', help_text='Of a function or class: module.Class.method.', max_length=500)),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='chunks', to='collections.collection')),
            ],
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=255)),
                ('media_type', models.CharField(help_text='Guessed from the name, then read from the bytes.', max_length=100)),
                ('title', models.CharField(blank=True, max_length=300)),
                ('is_paged', models.BooleanField(default=True)),
                ('warnings', models.JSONField(default=list, help_text='Sentences for the owner, from the reader.')),
                ('metadata', models.JSONField(default=dict, help_text='Facts of the reader.')),
                ('size', models.BigIntegerField()),
                ('sha256', models.CharField(max_length=64)),
                ('file', models.CharField(help_text='Key of the original in the file storage.', max_length=255)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('processing', 'Processing'), ('ready', 'Ready'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                ('stage', models.CharField(choices=[('fetch', 'Fetching'), ('parse', 'Reading'), ('chunk', 'Chunking'), ('summarise', 'Summarising'), ('embed', 'Embedding'), ('index', 'Indexing')], default='fetch', max_length=10)),
                ('progress_current', models.PositiveIntegerField(default=0)),
                ('progress_total', models.PositiveIntegerField(default=0)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('error_message', models.TextField(blank=True)),
                ('page_count', models.PositiveIntegerField(default=0)),
                ('skipped_pages', models.PositiveIntegerField(default=0)),
                ('chunk_count', models.PositiveIntegerField(default=0)),
                ('vector_count', models.PositiveIntegerField(default=0)),
                ('lexical_count', models.PositiveIntegerField(default=0)),
                ('identifiers_found', models.PositiveIntegerField(default=0)),
                ('identifiers_total', models.PositiveIntegerField(default=0)),
                ('timings', models.JSONField(default=dict, help_text='Seconds per stage.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('attributes', models.JSONField(default=dict, help_text="The team's own metadata; search can filter on it.")),
                ('dated', models.DateField(help_text='The date the document is of, where known.', null=True)),
                ('document_type', models.CharField(blank=True, max_length=60)),
                ('is_restricted', models.BooleanField(default=False, help_text='Only the roles and members listed may see it.')),
                ('live_from', models.DateTimeField(help_text='When it began to be searched.', null=True)),
                ('live_to', models.DateTimeField(help_text='When a newer version took its place.', null=True)),
                ('path', models.CharField(help_text="Where it lies in the collection's tree; its name if nowhere else.", max_length=1000)),
                ('source', models.CharField(choices=[('upload', 'Upload'), ('archive', 'Archive'), ('folder', 'Folder on the server'), ('git', 'Git repository'), ('url', 'Web page'), ('chroma', 'Chroma collection'), ('tool', 'File tool')], default='upload', max_length=10)),
                ('source_url', models.TextField(blank=True, help_text='Where a web page came from.')),
                ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=60), blank=True, default=list, size=None)),
                ('type_reason', models.CharField(blank=True, help_text='The rule that decided; “set by hand” keeps it.', max_length=255)),
                ('version', models.PositiveIntegerField(default=1)),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='documents', to='collections.collection')),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('restored_from', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='collections.document')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('uploaded_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='ChunkRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('before', models.JSONField()),
                ('after', models.JSONField()),
                ('note', models.CharField(blank=True, max_length=255)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='revisions', to='collections.chunk')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('document', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.document')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='chunk',
            name='document',
            field=tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='chunks', to='collections.document'),
        ),
        migrations.CreateModel(
            name='DocumentAccess',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(blank=True, choices=[('owner', 'Owner'), ('admin', 'Admin'), ('member', 'Member'), ('viewer', 'Viewer')], max_length=10)),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='access', to='collections.document')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('document', 'role', 'user'), name='document_access_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('role', ''), ('user__isnull', False)), models.Q(models.Q(('role', ''), _negated=True), ('user__isnull', True)), _connector='OR'), name='document_access_role_or_user')],
            },
        ),
        migrations.CreateModel(
            name='DocumentTypeRules',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rules', models.JSONField(default=list)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('updated_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='document_type_rules_once')],
            },
        ),
        migrations.CreateModel(
            name='EmbeddingSpace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider', models.CharField(max_length=20)),
                ('model', models.CharField(max_length=100)),
                ('dimensions', models.PositiveIntegerField()),
                ('fingerprint', models.CharField(help_text='Weights and precision; never mixed in one space.', max_length=80)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('provider', 'model', 'dimensions', 'fingerprint'), name='embedding_space_once')],
            },
        ),
        migrations.CreateModel(
            name='Embedding',
            fields=[
                ('pk', models.CompositePrimaryKey('chunk_id', 'space_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('document_id', models.BigIntegerField()),
                ('vector', pgvector.django.halfvec.HalfVectorField()),
                ('chunk', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='embeddings', to='collections.chunk')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace')),
            ],
            options={
                'indexes': [models.Index(fields=['collection', 'space', 'chunk'], name='embedding_scope_chunk')],
            },
        ),
        migrations.AddField(
            model_name='collection',
            name='space',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace'),
        ),
        migrations.CreateModel(
            name='FileBatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('action', models.CharField(choices=[('write', 'Write'), ('edit', 'Edit'), ('delete', 'Delete'), ('move', 'Move'), ('undo', 'Undo'), ('redo', 'Redo'), ('restore', 'Restore')], max_length=10)),
                ('note', models.CharField(blank=True, max_length=255)),
                ('is_undone', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='file_batches', to='collections.collection')),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='runs.run')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('undoes', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='undone_by', to='collections.filebatch')),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'file batches',
                'indexes': [models.Index(fields=['collection', '-id'], name='file_batch_newest')],
            },
        ),
        migrations.CreateModel(
            name='FileBlob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sha256', models.CharField(max_length=64)),
                ('size', models.BigIntegerField()),
                ('content', models.BinaryField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'sha256'), name='file_blob_once')],
            },
        ),
        migrations.CreateModel(
            name='FileRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('path', models.CharField(max_length=1000)),
                ('is_indexed', models.BooleanField(default=True, help_text='A document too, which then says whether the file is still there.')),
                ('is_restricted', models.BooleanField(default=False, help_text='The document was limited to some when this was written.')),
                ('after', tenancy.fields.TenantForeignKey(db_on_delete='RESTRICT', null=True, related_name='+', to='collections.fileblob')),
                ('batch', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='revisions', to='collections.filebatch')),
                ('before', tenancy.fields.TenantForeignKey(db_on_delete='RESTRICT', null=True, related_name='+', to='collections.fileblob')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['collection', 'path', '-id'], name='file_revision_path')],
                'constraints': [models.UniqueConstraint(fields=('batch', 'path'), name='file_revision_once')],
            },
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.CharField(choices=[('upload', 'Upload'), ('archive', 'Archive'), ('folder', 'Folder on the server'), ('git', 'Git repository'), ('url', 'Web page'), ('chroma', 'Chroma collection'), ('tool', 'File tool')], max_length=10)),
                ('name', models.CharField(help_text='File name, path or address, as given.', max_length=255)),
                ('options', models.JSONField(default=dict)),
                ('file', models.CharField(blank=True, help_text='Key of the uploaded archive.', max_length=255)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('completed', 'Completed'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                ('entries', models.JSONField(default=dict, help_text='found, created, updated, unchanged, skipped.')),
                ('problems', models.JSONField(default=list)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('error_message', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='imports', to='collections.collection')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='document',
            name='batch',
            field=tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='documents', to='collections.import'),
        ),
        migrations.CreateModel(
            name='Page',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('text', models.TextField()),
                ('char_start', models.PositiveIntegerField()),
                ('skip_reason', models.CharField(blank=True, max_length=30)),
                ('width', models.FloatField(default=0)),
                ('height', models.FloatField(default=0)),
                ('layout', models.JSONField(default=dict, help_text="Headings and regions, as the reader's wire format has them.")),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='pages', to='collections.document')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('document', 'number'), name='page_number')],
            },
        ),
        migrations.CreateModel(
            name='SearchCase',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('query', models.TextField()),
                ('filters', models.JSONField(default=dict)),
                ('k', models.PositiveIntegerField(default=10)),
                ('expected', models.JSONField(default=list)),
                ('note', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='cases', to='collections.collection')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='SearchIndex',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('hnsw', 'HNSW'), ('postings', 'Postings')], max_length=10)),
                ('status', models.CharField(choices=[('building', 'Building'), ('ready', 'Ready'), ('retired', 'retired (replaced or not needed any more, to be dropped)')], default='building', max_length=10)),
                ('chunk_count', models.BigIntegerField(default=0, help_text='Rows when it was built.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('built_at', models.DateTimeField(null=True)),
                ('last_chunk', models.BigIntegerField(default=0, help_text='It covers the chunks up to this id; later ones are scanned.')),
                ('chunk_ids', models.BinaryField(default=b'')),
                ('document_ids', models.BinaryField(default=b'')),
                ('edited', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, help_text='Chunks whose text has changed since it was built; search weighs them apart.', size=None)),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='indexes', to='collections.collection')),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('space', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'retired'), _negated=True), fields=('collection', 'kind', 'space', 'status'), name='search_index_once', nulls_distinct=False)],
            },
        ),
        migrations.CreateModel(
            name='Posting',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('term', models.IntegerField()),
                ('size', models.IntegerField(help_text='How many chunks.')),
                ('block', models.IntegerField(help_text='Number of the block of chunks; bounds what a build holds.')),
                ('places', models.BinaryField(help_text='Places in the index, packed uint32.')),
                ('weights', models.BinaryField(help_text='Weights of the term there, packed float32.')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('index', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.searchindex')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('index', 'term', 'block'), include=('size',), name='posting_once')],
            },
        ),
        migrations.CreateModel(
            name='SpaceSwap',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('building', 'Building'), ('ready', 'ready to switch'), ('switched', 'Switched'), ('undone', 'Undone'), ('dropped', 'old vectors removed'), ('cancelled', 'Cancelled'), ('failed', 'Failed')], default='building', max_length=10)),
                ('done', models.BigIntegerField(default=0, help_text='Chunks that have a vector in the new space.')),
                ('total', models.BigIntegerField(default=0)),
                ('comparison', models.JSONField(default=dict, help_text='How far the results of both spaces agree, on sampled questions.')),
                ('error_message', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('switched_at', models.DateTimeField(null=True)),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='swaps', to='collections.collection')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('from_space', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace')),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('to_space', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['building', 'ready', 'switched'])), fields=('collection',), name='space_swap_one_open')],
            },
        ),
        migrations.CreateModel(
            name='TermFrequency',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('term', models.IntegerField()),
                ('chunks', models.IntegerField()),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('collection', 'term'), name='term_once')],
            },
        ),
        migrations.CreateModel(
            name='ChunkTerms',
            fields=[
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', primary_key=True, related_name='+', serialize=False, to='collections.chunk')),
                ('document_id', models.BigIntegerField(help_text="A copy of the chunk's; see Embedding.")),
                ('length', models.PositiveIntegerField()),
                ('weights', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000)),
                ('lexemes', django.contrib.postgres.search.SearchVectorField()),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'indexes': [django.contrib.postgres.indexes.GinIndex(fastupdate=False, fields=['lexemes'], name='chunk_terms_lexemes'), models.Index(fields=['collection', 'chunk'], name='chunk_terms_scope')],
            },
        ),
        migrations.CreateModel(
            name='CollectionSnapshot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='snapshots', to='collections.collection')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('collection', 'name'), name='snapshot_name_once')],
            },
        ),
        migrations.CreateModel(
            name='CodeEdge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('defines', 'Defines'), ('imports', 'Imports'), ('calls', 'Calls'), ('inherits', 'Inherits')], max_length=10)),
                ('source_name', models.CharField(help_text='Qualified name of where it starts.', max_length=500)),
                ('target_name', models.CharField(help_text='As written, or qualified when resolved.', max_length=500)),
                ('is_ambiguous', models.BooleanField(default=False, help_text='Several definitions fit.')),
                ('line', models.PositiveIntegerField(null=True)),
                ('is_stale', models.BooleanField(db_default=False, help_text='A definition of this name came or went: resolve again.')),
                ('name', models.CharField(db_default='', help_text='Last part of the target as written: its definition is looked up by it.', max_length=200)),
                ('written', models.CharField(db_default='', help_text='The target as the source has it.', max_length=500)),
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='edges', to='collections.chunk')),
                ('target', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='edges_in', to='collections.chunk')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='edges', to='collections.document')),
            ],
            options={
                'indexes': [models.Index(fields=['collection', 'target_name', 'kind'], name='code_edge_to'), models.Index(fields=['collection', 'source_name', 'kind'], name='code_edge_from'), models.Index(fields=['collection', 'name', 'kind'], name='code_edge_name'), models.Index(condition=models.Q(('is_stale', True)), fields=['collection', 'document'], name='code_edge_stale')],
            },
        ),
        migrations.CreateModel(
            name='ChunkLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('relation', models.CharField(help_text='continues, continued_by, same_section, parent, child, shares_terms, ...', max_length=40)),
                ('common_topic', models.CharField(blank=True, max_length=200)),
                ('made_by', models.CharField(choices=[('rule', 'Rules'), ('model', 'A model')], max_length=10)),
                ('weight', models.FloatField(default=1.0, help_text='Stronger links first; 0 to 1.')),
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='links', to='collections.chunk')),
                ('target', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='collections.chunk')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='links', to='collections.document')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('chunk', 'target', 'relation'), name='chunk_link_once'), models.CheckConstraint(condition=models.Q(('chunk', models.F('target')), _negated=True), name='chunk_link_elsewhere')],
            },
        ),
        migrations.AddIndex(
            model_name='chunk',
            index=models.Index(fields=['collection', 'id'], name='chunk_collection'),
        ),
        migrations.AddIndex(
            model_name='chunk',
            index=models.Index(condition=models.Q(('qualified_name', ''), _negated=True), fields=['collection', 'qualified_name'], name='chunk_qualified_name'),
        ),
        migrations.AddIndex(
            model_name='chunk',
            index=models.Index(condition=models.Q(('is_disabled', True)), fields=['collection'], name='chunk_disabled'),
        ),
        migrations.AddConstraint(
            model_name='chunk',
            constraint=models.UniqueConstraint(fields=('document', 'index'), name='chunk_index'),
        ),
        migrations.AddConstraint(
            model_name='collection',
            constraint=models.UniqueConstraint(models.F('tenant'), django.db.models.functions.text.Lower('name'), name='collection_name_once'),
        ),
        migrations.AddConstraint(
            model_name='collection',
            constraint=models.CheckConstraint(condition=models.Q(('chunk_size__gte', 200), ('chunk_size__lte', 4000), ('chunk_overlap__lt', django.db.models.expressions.CombinedExpression(models.F('chunk_size'), '/', models.Value(2)))), name='collection_chunk_sizes'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(fields=['collection', '-created_at'], name='document_newest'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=django.contrib.postgres.indexes.GinIndex(fields=['tags'], name='document_tags'),
        ),
        migrations.AddIndex(
            model_name='document',
            index=django.contrib.postgres.indexes.GinIndex(fields=['attributes'], name='document_attributes', opclasses=['jsonb_path_ops']),
        ),
        migrations.AddIndex(
            model_name='document',
            index=models.Index(condition=models.Q(('chunk_count__gt', 0), models.Q(models.Q(('status', 'ready'), _negated=True), ('live_to__isnull', False), ('is_restricted', True), _connector='OR')), fields=['collection'], name='document_not_open'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['queued', 'processing', 'ready', 'failed', 'cancelled'])), name='document_status_known'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('live_from__isnull', False), ('live_to__isnull', True)), fields=('collection', 'path'), name='document_one_live'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(fields=('collection', 'path', 'version'), name='document_version_once'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(condition=models.Q(('live_from__isnull', True), ('live_to__isnull', True)), fields=('collection', 'path', 'sha256'), name='document_once_per_collection'),
        ),
        migrations.RunSQL(
            sql='ALTER TABLE collections_embedding ALTER vector SET STORAGE PLAIN;ALTER TABLE collections_chunkterms ALTER weights SET STORAGE PLAIN',
            reverse_sql='',
        ),
        migrations.RunSQL(
            sql='ALTER TABLE collections_posting ALTER places SET STORAGE EXTERNAL, ALTER weights SET STORAGE EXTERNAL;ALTER TABLE collections_searchindex ALTER chunk_ids SET STORAGE EXTERNAL, ALTER document_ids SET STORAGE EXTERNAL',
            reverse_sql='',
        ),
    ]
