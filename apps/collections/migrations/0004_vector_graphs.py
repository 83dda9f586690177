from django.db import migrations, models

# A statement's rows as a whole, since most come by hundreds. Per collection, so that each lookup goes by an index. A row
# without a table is of a build that hasn't begun, or of before the table was dropped: nothing follows there.
FOLLOW = """
CREATE SCHEMA vector_graphs;
GRANT USAGE ON SCHEMA vector_graphs TO PUBLIC;
CREATE FUNCTION vector_graphs_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    part record;
    graph record;
    name text;
BEGIN
    FOR part IN SELECT DISTINCT tenant_id, collection_id, space_id FROM changed LOOP
        FOR graph IN
            SELECT i.id, i.last_chunk FROM public.collections_searchindex i
            WHERE i.tenant_id = part.tenant_id AND i.collection_id = part.collection_id
                AND i.space_id = part.space_id AND i.kind = 'graph'
        LOOP
            name := format('vector_graphs.c%s_i%s', part.collection_id, graph.id);
            CONTINUE WHEN to_regclass(name) IS NULL;
            IF TG_OP = 'DELETE' THEN
                EXECUTE format(
                    'DELETE FROM %s g USING changed c WHERE c.tenant_id = $1 AND c.collection_id = $2 '
                    'AND c.space_id = $3 AND g.tenant_id = c.tenant_id AND g.chunk_id = c.chunk_id', name)
                USING part.tenant_id, part.collection_id, part.space_id;
            ELSE
                EXECUTE format(
                    'INSERT INTO %s (tenant_id, chunk_id, document_id, vector) '
                    'SELECT c.tenant_id, c.chunk_id, c.document_id, c.vector FROM changed c '
                    'WHERE c.tenant_id = $1 AND c.collection_id = $2 AND c.space_id = $3 AND c.chunk_id <= $4 '
                    'ON CONFLICT (chunk_id, tenant_id) DO UPDATE SET document_id = EXCLUDED.document_id, '
                    'vector = EXCLUDED.vector', name)
                USING part.tenant_id, part.collection_id, part.space_id, graph.last_chunk;
            END IF;
        END LOOP;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER vector_graphs_insert AFTER INSERT ON collections_embedding
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION vector_graphs_follow();
CREATE TRIGGER vector_graphs_delete AFTER DELETE ON collections_embedding
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION vector_graphs_follow();
"""
UNFOLLOW = """
DROP TRIGGER vector_graphs_insert ON collections_embedding;
DROP TRIGGER vector_graphs_delete ON collections_embedding;
DROP FUNCTION vector_graphs_follow();
DROP SCHEMA vector_graphs CASCADE;
"""


class Migration(migrations.Migration):
    dependencies = [("collections", "0003_redundant_indexes")]
    operations = [
        migrations.RunSQL(FOLLOW, UNFOLLOW),
        migrations.AlterField(
            "searchindex",
            "kind",
            models.CharField(
                choices=[("graph", "Graph"), ("hnsw", "HNSW"), ("postings", "Postings")],
                max_length=10,
            ),
        ),
    ]
