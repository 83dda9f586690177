"""Postings as packed arrays, which a search adds up outside the database, and indexes that end with the chunk."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("collections", "0006_file_revision_kinds")]

    operations = [
        # Postings of the old form are made anew with the next document that goes live; search scans until then.
        migrations.RunSQL(
            "DELETE FROM collections_searchindex WHERE kind = 'postings'", migrations.RunSQL.noop
        ),
        migrations.RemoveConstraint(model_name="posting", name="posting_once"),
        migrations.RemoveField(model_name="posting", name="chunk_ids"),
        migrations.RemoveField(model_name="posting", name="document_ids"),
        migrations.RemoveField(model_name="posting", name="weights"),
        migrations.AddField(
            model_name="posting",
            name="block",
            field=models.IntegerField(
                help_text="Number of the block of chunks; bounds what a build holds."
            ),
        ),
        migrations.AddField(
            model_name="posting",
            name="places",
            field=models.BinaryField(help_text="Places in the index, packed uint32."),
        ),
        migrations.AddField(
            model_name="posting",
            name="weights",
            field=models.BinaryField(help_text="Weights of the term there, packed float32."),
        ),
        migrations.AddConstraint(
            model_name="posting",
            constraint=models.UniqueConstraint(
                fields=["index", "term", "block"], include=["size"], name="posting_once"
            ),
        ),
        migrations.AddField(
            model_name="searchindex", name="chunk_ids", field=models.BinaryField(default=b"")
        ),
        migrations.AddField(
            model_name="searchindex", name="document_ids", field=models.BinaryField(default=b"")
        ),
        migrations.AddField(
            model_name="searchindex",
            name="edited",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                default=list,
                help_text="Chunks whose text has changed since it was built; search weighs them apart.",
                size=None,
            ),
        ),
        # Packed numbers do not compress: keep the time for trying.
        migrations.RunSQL(
            "ALTER TABLE collections_posting ALTER places SET STORAGE EXTERNAL, ALTER weights SET STORAGE EXTERNAL;"
            "ALTER TABLE collections_searchindex ALTER chunk_ids SET STORAGE EXTERNAL, "
            "ALTER document_ids SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
        migrations.RemoveIndex(model_name="embedding", name="embedding_scope"),
        migrations.AddIndex(
            model_name="embedding",
            index=models.Index(
                fields=["collection", "space", "chunk"], name="embedding_scope_chunk"
            ),
        ),
        migrations.RemoveIndex(model_name="chunkterms", name="chunk_terms_collection"),
        migrations.AddIndex(
            model_name="chunkterms",
            index=models.Index(fields=["collection", "chunk"], name="chunk_terms_scope"),
        ),
    ]
