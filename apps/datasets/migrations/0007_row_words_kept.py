from django.db import migrations


class Migration(migrations.Migration):
    """Keep the words of a row beside it: a page of a frequent word made them anew for each of 1,001 rows."""

    dependencies = [
        ('datasets', '0006_several_turns_and_coverage'),
    ]

    operations = [
        # No field of the model: nobody reads them, apps.datasets.row_search finds rows by them.
        migrations.RunSQL(
            sql=(
                "DROP INDEX dataset_row_words; "
                "ALTER TABLE datasets_datasetrow ADD COLUMN words tsvector GENERATED ALWAYS AS ("
                "to_tsvector('simple'::regconfig, left(question, 20000) || ' ' || left(answer, 100000)) "
                "|| to_tsvector('simple'::regconfig, jsonb_path_query_array(sources, '$[*].document')) "
                "|| to_tsvector('simple'::regconfig, "
                "regexp_replace(jsonb_path_query_array(sources, '$[*].document')::text, '[^[:alnum:]]+', ' ', 'g')) "
                "|| array_to_tsvector(ARRAY['dataset ' || dataset_id::text])) STORED; "
                "CREATE INDEX dataset_row_words ON datasets_datasetrow USING gin (words) WITH (fastupdate = off)"
            ),
            reverse_sql=(
                "DROP INDEX dataset_row_words; "
                "ALTER TABLE datasets_datasetrow DROP COLUMN words; "
                "CREATE INDEX dataset_row_words ON datasets_datasetrow USING gin (("
                "to_tsvector('simple'::regconfig, left(question, 20000) || ' ' || left(answer, 100000)) "
                "|| to_tsvector('simple'::regconfig, jsonb_path_query_array(sources, '$[*].document')) "
                "|| to_tsvector('simple'::regconfig, "
                "regexp_replace(jsonb_path_query_array(sources, '$[*].document')::text, '[^[:alnum:]]+', ' ', 'g')) "
                "|| array_to_tsvector(ARRAY['dataset ' || dataset_id::text]))) WITH (fastupdate = off)"
            ),
        ),
    ]
