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
from tenancy.database.initial import InitialMigration

# Packed numbers do not compress: keep the time for trying. Vectors and weights stay in the row, where a scan reads them.
STORAGE = """
ALTER TABLE collections_embedding ALTER vector SET STORAGE PLAIN;
ALTER TABLE collections_chunkterms ALTER weights SET STORAGE PLAIN;
ALTER TABLE collections_posting ALTER places SET STORAGE EXTERNAL, ALTER weights SET STORAGE EXTERNAL;
ALTER TABLE collections_searchindex
    ALTER chunk_ids SET STORAGE EXTERNAL, ALTER document_ids SET STORAGE EXTERNAL;
"""


class Migration(InitialMigration):
    dependencies = [
        ('jobs', '0001_initial'),
        ('runs', '0001_initial'),
        ('tenancy', '0001_initial'),
    ]

    operations = [
        pgvector.django.VectorExtension(),
        migrations.CreateModel(
            name='EmbeddingSpace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider', models.CharField(max_length=20)),
                ('model', models.CharField(max_length=100)),
                ('dimensions', models.PositiveIntegerField()),
                ('fingerprint', models.CharField(help_text="Identifies the model's weights and precision, which all vectors of a space share.", max_length=80)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('provider', 'model', 'dimensions', 'fingerprint'), name='embedding_space_once')],
            },
        ),
        migrations.CreateModel(
            name='Collection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('name', models.CharField(max_length=120)),
                ('description', models.TextField(blank=True)),
                ('chunk_size', models.PositiveIntegerField(default=1200, help_text='Maximum characters per passage.')),
                ('chunk_overlap', models.PositiveIntegerField(default=200, help_text='Characters shared by neighbouring passages.')),
                ('space', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('owner', models.ForeignKey(help_text="Set for a private collection: only this person can see its documents, and no list shows it.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('language', models.CharField(default='english', help_text='Language of the documents, for better search; “simple” searches words as they are.', max_length=20)),
                ('links_by', models.CharField(choices=[('rule', 'Rules'), ('model', 'A model')], default='rule', help_text='How key points and links between passages are made: by rules or by a model.', max_length=10)),
                ('links_model', models.CharField(blank=True, help_text='Model that writes key points and links, with its provider prefix.', max_length=120)),
                ('reranker', models.CharField(choices=[('default', "The server's, if it has one"), ('none', 'None'), ('cross-encoder', 'A cross-encoder on the server'), ('model', 'A language model')], default='default', help_text='Model that reorders the best passages of a search.', max_length=13)),
                ('reranker_model', models.CharField(blank=True, help_text='Language model that grades passages for reranking, with its provider prefix.', max_length=120)),
                ('keep_versions', models.PositiveIntegerField(default=10, help_text='Earlier versions to keep of each document; older ones are removed.')),
                ('file_rules', models.JSONField(default=dict, help_text='Limits for files: allowed and blocked paths, sizes; see apps.collections.tree.rules.')),
                ('term_total', models.BigIntegerField(default=0, help_text='Terms in all searchable passages, used to compute the average length.')),
                ('chunk_total', models.BigIntegerField(default=0, help_text='Passages that are searchable now.')),
                ('lexical_forms', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=30), default=list, help_text='Forms in which its index stores terms; a question is searched in each of them. See apps.collections.ingestion.lexical.', size=None)),
                ('average_length', models.FloatField(default=0, help_text='Average terms per passage that the stored term weights are based on.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(models.F('tenant'), django.db.models.functions.text.Lower('name'), condition=models.Q(('owner__isnull', True)), name='collection_name_once'), models.CheckConstraint(condition=models.Q(('chunk_size__gte', 200), ('chunk_size__lte', 4000), ('chunk_overlap__lt', django.db.models.expressions.CombinedExpression(models.F('chunk_size'), '/', models.Value(2)))), name='collection_chunk_sizes')],
            },
        ),
        migrations.CreateModel(
            name='InstalledEmbedder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='Selected as local/<name>.', max_length=60, unique=True)),
                ('folder', models.CharField(help_text='Folder of the model, the same path on every machine.', max_length=1000)),
                ('options', models.JSONField(help_text='How texts become vectors: file, pooling, prefixes, maximum text length.')),
                ('digests', models.JSONField(help_text='SHA-256 of each file that affects the vectors, by its name in the folder.')),
                ('dimensions', models.PositiveIntegerField()),
                ('fingerprint', models.CharField(max_length=80)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='imports', to='collections.collection')),
                ('source', models.CharField(choices=[('upload', 'Upload'), ('archive', 'Archive'), ('folder', 'Folder on the server'), ('git', 'Git repository'), ('url', 'Web page'), ('chroma', 'Chroma collection'), ('tool', 'File tool')], max_length=10)),
                ('name', models.CharField(help_text='File name, path or address, as given.', max_length=255)),
                ('options', models.JSONField(default=dict)),
                ('file', models.CharField(blank=True, help_text='Key of the uploaded archive.', max_length=255)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('completed', 'Completed'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                ('entries', models.JSONField(default=dict, help_text='Counts by outcome, such as found, created, updated and skipped.')),
                ('problems', models.JSONField(default=list)),
                ('error_code', models.CharField(blank=True, max_length=60)),
                ('error_message', models.TextField(blank=True)),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='documents', to='collections.collection')),
                ('name', models.CharField(max_length=255)),
                ('path', models.CharField(help_text="Path in the collection; the name alone if it is in no folder.", max_length=1000)),
                ('version', models.PositiveIntegerField(default=1)),
                ('live_from', models.DateTimeField(help_text='When it became searchable.', null=True)),
                ('live_to', models.DateTimeField(help_text='When a newer version replaced it.', null=True)),
                ('restored_from', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='collections.document')),
                ('source', models.CharField(choices=[('upload', 'Upload'), ('archive', 'Archive'), ('folder', 'Folder on the server'), ('git', 'Git repository'), ('url', 'Web page'), ('chroma', 'Chroma collection'), ('tool', 'File tool')], default='upload', max_length=10)),
                ('source_url', models.TextField(blank=True, help_text='Address of the web page it was imported from.')),
                ('batch', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='documents', to='collections.import')),
                ('is_restricted', models.BooleanField(default=False, help_text='Only the listed roles and members can see it.')),
                ('document_type', models.CharField(blank=True, max_length=60)),
                ('type_reason', models.CharField(blank=True, help_text="The rule that decided the type; “set by hand” means that rules don't change it.", max_length=255)),
                ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=60), blank=True, default=list, size=None)),
                ('dated', models.DateField(help_text='Date of the document, if known.', null=True)),
                ('attributes', models.JSONField(default=dict, help_text="The team's own metadata; search can filter on it.")),
                ('media_type', models.CharField(help_text='Guessed from the file name, then detected from the content.', max_length=100)),
                ('title', models.CharField(blank=True, max_length=300)),
                ('language', models.CharField(blank=True, db_default='', help_text="English name of the text's language, or of its script if only that is clear; see toolloop.language_detection.", max_length=20)),
                ('lexical_form', models.CharField(blank=True, db_default='', help_text='How its words become search terms: a version and a stemming language; see apps.collections.ingestion.lexical.', max_length=30)),
                ('cover', models.CharField(blank=True, db_default='', help_text='Searched together with each passage: title, name, company, form, date, period.', max_length=200)),
                ('is_paged', models.BooleanField(default=True)),
                ('warnings', models.JSONField(default=list, help_text='Warnings from reading the file, as sentences for the owner.')),
                ('metadata', models.JSONField(default=dict, help_text='Facts that the reader found in the file.')),
                ('size', models.BigIntegerField()),
                ('sha256', models.CharField(max_length=64)),
                ('file', models.CharField(help_text='Key of the original in the file storage.', max_length=255)),
                ('uploaded_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('processing', 'Processing'), ('ready', 'Ready'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                ('stage', models.CharField(choices=[('fetch', 'Fetching'), ('parse', 'Reading'), ('chunk', 'Splitting'), ('summarise', 'Summarising'), ('embed', 'Embedding'), ('index', 'Indexing')], default='fetch', max_length=10)),
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
                ('code_form', models.CharField(blank=True, help_text='Form in which the index stores its codes; see apps.collections.index.codes.', max_length=40)),
                ('timings', models.JSONField(default=dict, help_text='Seconds per stage.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('finished_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['collection', '-created_at'], name='document_newest'), models.Index(condition=models.Q(('chunk_count__gt', 0), models.Q(models.Q(('status', 'ready'), _negated=True), ('live_to__isnull', False), ('is_restricted', True), _connector='OR')), fields=['collection'], name='document_not_open'), django.contrib.postgres.indexes.GinIndex(fields=['tags'], name='document_tags'), django.contrib.postgres.indexes.GinIndex(fields=['attributes'], name='document_attributes', opclasses=['jsonb_path_ops'])],
                'constraints': [models.UniqueConstraint(condition=models.Q(('live_from__isnull', True), ('live_to__isnull', True)), fields=('collection', 'path', 'sha256'), name='document_once_per_collection'), models.UniqueConstraint(condition=models.Q(('live_from__isnull', False), ('live_to__isnull', True)), fields=('collection', 'path'), name='document_one_live'), models.UniqueConstraint(fields=('collection', 'path', 'version'), name='document_version_once'), models.CheckConstraint(condition=models.Q(('status__in', ['queued', 'processing', 'ready', 'failed', 'cancelled'])), name='document_status_known')],
            },
        ),
        migrations.CreateModel(
            name='DocumentAccess',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='access', to='collections.document')),
                ('role', models.CharField(blank=True, choices=[('owner', 'Owner'), ('admin', 'Admin'), ('member', 'Member'), ('viewer', 'Viewer')], max_length=10)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('document', 'role', 'user'), name='document_access_once', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('role', ''), ('user__isnull', False)), models.Q(models.Q(('role', ''), _negated=True), ('user__isnull', True)), _connector='OR'), name='document_access_role_or_user')],
            },
        ),
        migrations.CreateModel(
            name='Page',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='pages', to='collections.document')),
                ('number', models.PositiveIntegerField()),
                ('text', models.TextField()),
                ('char_start', models.PositiveIntegerField()),
                ('skip_reason', models.CharField(blank=True, max_length=30)),
                ('width', models.FloatField(default=0)),
                ('height', models.FloatField(default=0)),
                ('layout', models.JSONField(default=dict, help_text="Headings and regions, in the reader's wire format.")),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('document', 'number'), name='page_number')],
            },
        ),
        migrations.CreateModel(
            name='Chunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='chunks', to='collections.collection')),
                ('document', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='chunks', to='collections.document')),
                ('index', models.PositiveIntegerField()),
                ('kind', models.CharField(choices=[('doc', 'Text'), ('table', 'Table'), ('function', 'Function'), ('class', 'Class'), ('file', 'File')], default='doc', max_length=10)),
                ('text', models.TextField()),
                ('char_start', models.PositiveIntegerField()),
                ('char_end', models.PositiveIntegerField()),
                ('page_start', models.PositiveIntegerField(null=True)),
                ('page_end', models.PositiveIntegerField(null=True)),
                ('headings', models.JSONField(default=list)),
                ('metadata', models.JSONField(default=dict)),
                ('qualified_name', models.CharField(blank=True, db_default='', help_text='Only for functions and classes: module.Class.method.', max_length=500)),
                ('line_start', models.PositiveIntegerField(help_text='First line of the passage in its source file.', null=True)),
                ('line_end', models.PositiveIntegerField(null=True)),
                ('key_points', models.JSONField(db_default=models.Value([], models.JSONField()), default=list, help_text='Key points of the passage, as sentences.')),
                ('points_by', models.CharField(blank=True, choices=[('rule', 'Rules'), ('model', 'A model')], db_default='', max_length=10)),
                ('is_disabled', models.BooleanField(db_default=False, help_text='Excluded from every search.')),
                ('is_edited', models.BooleanField(db_default=False)),
            ],
            options={
                'verbose_name': 'passage',
                'indexes': [models.Index(fields=['collection', 'id'], name='chunk_collection'), models.Index(condition=models.Q(('qualified_name', ''), _negated=True), fields=['collection', 'qualified_name'], name='chunk_qualified_name'), models.Index(condition=models.Q(('is_disabled', True)), fields=['collection'], name='chunk_disabled')],
                'constraints': [models.UniqueConstraint(fields=('document', 'index'), name='chunk_index')],
            },
        ),
        migrations.CreateModel(
            name='ChunkRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='revisions', to='collections.chunk')),
                ('document', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.document')),
                ('before', models.JSONField()),
                ('after', models.JSONField()),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('note', models.CharField(blank=True, max_length=255)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ChunkLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='links', to='collections.document')),
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='links', to='collections.chunk')),
                ('target', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='+', to='collections.chunk')),
                ('relation', models.CharField(help_text='continues, continued_by, same_section, parent, child, shares_terms, ...', max_length=40)),
                ('common_topic', models.CharField(blank=True, max_length=200)),
                ('made_by', models.CharField(choices=[('rule', 'Rules'), ('model', 'A model')], max_length=10)),
                ('weight', models.FloatField(default=1.0, help_text='0 to 1, stronger first.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('chunk', 'target', 'relation'), name='chunk_link_once'), models.CheckConstraint(condition=models.Q(('chunk', models.F('target')), _negated=True), name='chunk_link_elsewhere')],
            },
        ),
        migrations.CreateModel(
            name='CodeEdge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('document', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='edges', to='collections.document')),
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='edges', to='collections.chunk')),
                ('kind', models.CharField(choices=[('defines', 'Defines'), ('imports', 'Imports'), ('calls', 'Calls'), ('inherits', 'Inherits')], max_length=10)),
                ('source_name', models.CharField(help_text='Qualified name of the code in which the edge starts.', max_length=500)),
                ('target_name', models.CharField(help_text='Qualified name of the target if it was resolved, otherwise as written.', max_length=500)),
                ('name', models.CharField(db_default='', help_text='Last part of the target as written, used to look up its definition.', max_length=200)),
                ('written', models.CharField(db_default='', help_text='The target as written in the source code; for a definition, its kind and name.', max_length=500)),
                ('is_stale', models.BooleanField(db_default=False, help_text='A definition of this name was added or removed, so the edge must be resolved again.')),
                ('target', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='edges_in', to='collections.chunk')),
                ('is_ambiguous', models.BooleanField(default=False, help_text='Matched by name only, or several definitions match.')),
                ('line', models.PositiveIntegerField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['collection', 'name', 'kind'], name='code_edge_name'), models.Index(condition=models.Q(('is_stale', True)), fields=['collection', 'document'], name='code_edge_stale'), models.Index(fields=['collection', 'target_name', 'kind'], name='code_edge_to'), models.Index(fields=['collection', 'source_name', 'kind'], name='code_edge_from')],
            },
        ),
        migrations.CreateModel(
            name='DocumentTypeRules',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('rules', models.JSONField(default=list)),
                ('updated_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='document_type_rules_once')],
            },
        ),
        migrations.CreateModel(
            name='CodePatterns',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('patterns', models.JSONField()),
                ('digest', models.CharField(blank=True, help_text='Digest of the patterns, part of the form of the index.', max_length=12)),
                ('late', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=30), default=list, help_text='Patterns that took too long on some passages, where their codes may be missing.', size=None)),
                ('updated_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='code_patterns_once')],
            },
        ),
        migrations.CreateModel(
            name='Recognition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('is_on', models.BooleanField(db_default=True, default=True)),
                ('languages', models.CharField(blank=True, db_default='', help_text="Tesseract language codes joined with +; empty: the included models (English, Chinese).", max_length=100)),
                ('cpu_seconds', models.PositiveIntegerField(help_text="CPU seconds per month; empty: the server's default.", null=True)),
                ('used_seconds', models.FloatField(db_default=0, default=0)),
                ('used_month', models.DateField(help_text='First day of the month of ``used_seconds``.', null=True)),
                ('updated_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant',), name='recognition_once')],
            },
        ),
        migrations.CreateModel(
            name='Repository',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='repositories', to='collections.collection')),
                ('folder', models.CharField(blank=True, help_text='Folder of the collection that holds its files; empty: the whole collection.', max_length=1000)),
                ('head', models.CharField(help_text='Current branch (refs/heads/…), or a commit if the head is detached.', max_length=255)),
                ('refs', models.JSONField(default=dict, help_text='Commits and tags, by ref name.')),
                ('shallow', models.JSONField(default=list, help_text='Commits whose parents were not imported.')),
                ('left_out', models.JSONField(default=list, help_text="Files of the last commit that were not imported; they don't count as deleted.")),
                ('is_limited', models.BooleanField(db_default=False, default=False, help_text='Its history may contain deleted documents that only some people could see, so only owners can read it.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name_plural': 'repositories',
                'constraints': [models.UniqueConstraint(fields=('collection', 'folder'), name='repository_once')],
            },
        ),
        migrations.CreateModel(
            name='RepositoryPack',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('repository', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='packs', to='collections.repository')),
                ('file', models.CharField(db_index=True, help_text='Key of the pack in the file storage.', max_length=255)),
                ('index', models.CharField(db_index=True, help_text="Key of the pack's index in the file storage.", max_length=255)),
                ('size', models.BigIntegerField(help_text='Bytes of the pack and its index.')),
                ('is_made_here', models.BooleanField(help_text='Holds commits made here, not imported ones.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('repository', 'file'), name='repository_pack_once')],
            },
        ),
        migrations.CreateModel(
            name='Embedding',
            fields=[
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('pk', models.CompositePrimaryKey('chunk_id', 'space_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('chunk', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='embeddings', to='collections.chunk')),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('document_id', models.BigIntegerField()),
                ('vector', pgvector.django.halfvec.HalfVectorField()),
            ],
            options={
                'indexes': [models.Index(fields=['collection', 'space', 'chunk'], name='embedding_scope_chunk')],
            },
        ),
        migrations.CreateModel(
            name='ChunkTerms',
            fields=[
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('chunk', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', primary_key=True, related_name='+', serialize=False, to='collections.chunk')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('document_id', models.BigIntegerField(help_text="Copied from the passage; see Embedding.")),
                ('length', models.PositiveIntegerField()),
                ('weights', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000)),
                ('lexemes', django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                'indexes': [models.Index(fields=['collection', 'chunk'], name='chunk_terms_scope'), django.contrib.postgres.indexes.GinIndex(fastupdate=False, fields=['lexemes'], name='chunk_terms_lexemes')],
            },
        ),
        migrations.CreateModel(
            name='TermFrequency',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('term', models.IntegerField()),
                ('chunks', models.IntegerField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('collection', 'term'), name='term_once')],
            },
        ),
        migrations.CreateModel(
            name='SearchIndex',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='indexes', to='collections.collection')),
                ('space', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace')),
                ('kind', models.CharField(choices=[('hnsw', 'HNSW'), ('postings', 'Postings')], max_length=10)),
                ('status', models.CharField(choices=[('building', 'Building'), ('ready', 'Ready'), ('retired', 'retired (replaced or no longer needed, to be dropped)')], default='building', max_length=10)),
                ('last_chunk', models.BigIntegerField(default=0, help_text='The index covers passages up to this id; later ones are scanned.')),
                ('chunk_count', models.BigIntegerField(default=0, help_text='Rows when it was built.')),
                ('chunk_ids', models.BinaryField(default=b'')),
                ('document_ids', models.BinaryField(default=b'')),
                ('edited', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, help_text='Passages edited since the index was built; search weighs them separately.', size=None)),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('built_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'retired'), _negated=True), fields=('collection', 'kind', 'space', 'status'), name='search_index_once', nulls_distinct=False)],
            },
        ),
        migrations.CreateModel(
            name='Posting',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('index', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.searchindex')),
                ('term', models.IntegerField()),
                ('block', models.IntegerField(help_text='Number of the block of passages; blocks limit the memory that a build needs.')),
                ('size', models.IntegerField(help_text='Number of passages.')),
                ('places', models.BinaryField(help_text='Positions in the index, as packed uint32.')),
                ('weights', models.BinaryField(help_text='Weights of the term at these positions, as packed float32.')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('index', 'term', 'block'), include=('size',), name='posting_once')],
            },
        ),
        migrations.CreateModel(
            name='SpaceSwap',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='swaps', to='collections.collection')),
                ('from_space', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace')),
                ('to_space', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='collections.embeddingspace')),
                ('status', models.CharField(choices=[('building', 'Building'), ('ready', 'ready to switch'), ('switched', 'Switched'), ('undone', 'Undone'), ('dropped', 'old vectors removed'), ('cancelled', 'Cancelled'), ('failed', 'Failed')], default='building', max_length=10)),
                ('done', models.BigIntegerField(default=0, help_text='Passages with a vector from the new model.')),
                ('total', models.BigIntegerField(default=0)),
                ('comparison', models.JSONField(default=dict, help_text='How well the results of both models agree on sampled questions.')),
                ('job', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='jobs.job')),
                ('error_message', models.TextField(blank=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('switched_at', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['building', 'ready', 'switched'])), fields=('collection',), name='space_swap_one_open')],
            },
        ),
        migrations.CreateModel(
            name='SearchCase',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='cases', to='collections.collection')),
                ('query', models.TextField()),
                ('filters', models.JSONField(default=dict)),
                ('k', models.PositiveIntegerField(default=10)),
                ('expected', models.JSONField(default=list)),
                ('note', models.TextField(blank=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='CollectionSnapshot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='snapshots', to='collections.collection')),
                ('name', models.CharField(max_length=120)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('collection', 'name'), name='snapshot_name_once')],
            },
        ),
        migrations.CreateModel(
            name='FileBlob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('sha256', models.CharField(max_length=64)),
                ('size', models.BigIntegerField()),
                ('content', models.BinaryField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'sha256'), name='file_blob_once')],
            },
        ),
        migrations.CreateModel(
            name='FileBatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('collection', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='file_batches', to='collections.collection')),
                ('action', models.CharField(choices=[('write', 'Write'), ('edit', 'Edit'), ('delete', 'Delete'), ('move', 'Move'), ('undo', 'Undo'), ('redo', 'Redo'), ('restore', 'Restore')], max_length=10)),
                ('note', models.CharField(blank=True, max_length=255)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('run', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='+', to='runs.run')),
                ('undoes', tenancy.fields.TenantForeignKey(db_on_delete='SET NULL', null=True, related_name='undone_by', to='collections.filebatch')),
                ('is_undone', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'verbose_name_plural': 'file batches',
                'indexes': [models.Index(fields=['collection', '-id'], name='file_batch_newest')],
            },
        ),
        migrations.CreateModel(
            name='FileRevision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenancy.tenant')),
                ('batch', tenancy.fields.TenantForeignKey(db_on_delete='CASCADE', related_name='revisions', to='collections.filebatch')),
                ('collection', tenancy.fields.TenantForeignKey(db_index=False, db_on_delete='CASCADE', related_name='+', to='collections.collection')),
                ('path', models.CharField(max_length=1000)),
                ('before', tenancy.fields.TenantForeignKey(db_on_delete='RESTRICT', null=True, related_name='+', to='collections.fileblob')),
                ('after', tenancy.fields.TenantForeignKey(db_on_delete='RESTRICT', null=True, related_name='+', to='collections.fileblob')),
                ('is_indexed', models.BooleanField(default=True, help_text='The file is also a document, and exists as long as that document does.')),
                ('is_restricted', models.BooleanField(default=False, help_text='The document was restricted when this revision was written.')),
            ],
            options={
                'indexes': [models.Index(fields=['collection', 'path', '-id'], name='file_revision_path')],
                'constraints': [models.UniqueConstraint(fields=('batch', 'path'), name='file_revision_once')],
            },
        ),
        migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
    ]
