"""Documents say in which form their terms are, so that rows of an earlier one are asked in it until they are made again."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("collections", "0013_code_forms")]

    operations = [
        migrations.AddField(
            model_name="collection",
            name="lexical_forms",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=30),
                default=list,
                help_text="Forms in which its rows hold terms: a question is asked in each; see apps.collections.lexical.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="document",
            name="language",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="The language its text is plainly in, by its English name, else its script; see toolloop.languages.",
                max_length=20,
            ),
        ),
        migrations.AddField(
            model_name="document",
            name="lexical_form",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="How its words become terms: a version and how they are reduced; see apps.collections.lexical.",
                max_length=30,
            ),
        ),
        migrations.AddField(
            model_name="document",
            name="cover",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="What search knows of it with each of its passages: title, name, who, date, period.",
                max_length=200,
            ),
        ),
        # The walls are not raised while migrations run.
        migrations.RunSQL(
            [
                "UPDATE collections_document d SET lexical_form = '1:' || c.language "
                "FROM collections_collection c WHERE c.id = d.collection_id AND d.chunk_count > 0",
                "UPDATE collections_collection c SET lexical_forms = ARRAY['1:' || c.language]::varchar(30)[] "
                "WHERE EXISTS (SELECT FROM collections_document d WHERE d.collection_id = c.id AND d.chunk_count > 0)",
            ],
            migrations.RunSQL.noop,
        ),
    ]
